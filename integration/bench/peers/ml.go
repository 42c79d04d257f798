package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// figure is what one system took: training alone, the whole process, and its
// peak of resident memory.
type figure struct {
	Train  float64  `json:"train_s"`
	Total  float64  `json:"total_s"`
	Peak   float64  `json:"peak_rss_mb"`
	Test   *float64 `json:"test_metric"`
	Within *float64 `json:"suboptimality"`
}

// contest is a job on a data set, and who else does it. Where there is a reference
// value, training ends within 1e-3 of it.
type contest struct {
	job, data, file string
	flags           []string
	peers           []string
}

// contests are in the order of the peers' own plan. Penalties are 1/n, but where
// flags say otherwise, and there is no intercept, as the peers have it.
var contests = []contest{
	{"logistic", "dense1m", "train.parquet", []string{"--intercept=false", "--reg", "1e-6"},
		[]string{"spark-ml", "sklearn-newton-cholesky", "snapml", "sklearnex-lbfgs"}},
	{"logistic", "sparse200k", "train.libsvm", []string{"--intercept=false", "--reg", "5e-6"},
		[]string{"spark-ml", "snapml", "liblinear-s0"}},
	{"logistic", "a9a", "train.libsvm", []string{"--intercept=false", "--reg", "3.071158748195694e-05"},
		[]string{"spark-ml", "liblinear-s0", "snapml"}},
	{"svm", "a9a", "train.libsvm", []string{"--intercept=false", "--reg", "3.071158748195694e-05"},
		[]string{"spark-ml", "liblinear-s3", "snapml"}},
	{"svm", "sparse200k", "train.libsvm", []string{"--intercept=false", "--reg", "5e-6"},
		[]string{"spark-ml", "liblinear-s3", "snapml"}},
	{"svm", "dense1m", "train.parquet", []string{"--intercept=false", "--reg", "1e-6"}, []string{"spark-ml", "snapml"}},
	{"lasso", "lasso1m", "train.parquet", []string{"--reg", "0.02"},
		[]string{"spark-ml-normal", "sklearn-gram", "sklearn"}},
	{"lasso", "blogfeedback", "train.parquet", []string{"--reg", "1"}, []string{"spark-ml-owlqn", "sklearn-gram"}},
	{"ridge", "lasso1m", "train.parquet", []string{"--reg", "0.01"}, []string{"spark-ml-normal", "sklearn-cholesky"}},
	{"kmeans", "km100", "train.parquet", []string{"--k", "100"}, []string{"mllib", "sklearnex", "sklearn-lloyd"}},
	{"kmeans", "km10", "train.parquet", []string{"--k", "10"}, []string{"mllib", "sklearnex", "sklearn-lloyd"}},
	{"als", "als5m", "train.parquet", []string{"--rank", "10", "--reg", "0.1"}, []string{"spark-ml", "cmfrec"}},
}

// mlPeers runs each job in each system and prints ratios. only names jobs, data
// sets and systems, separated by commas; all without it.
func mlPeers(ml, volley, only string) error {
	python := filepath.Join(fromHome("PEERS_VENV", "venv"), "bin", "python")
	if _, err := os.Stat(python); err != nil {
		return fmt.Errorf("the peers are not set up: run %s/setup and generate.py", ml)
	}
	targets, err := references(filepath.Join(ml, "references.json"))
	if err != nil {
		return err
	}
	for _, c := range contests {
		if !named(only, contestNames(), c.job, c.data) {
			continue
		}
		target, ok := targets[c.job+":"+c.data]
		ours, err := median3(func() (figure, error) { return runOurs(volley, c, 1.001*target, ok) })
		if err != nil {
			return err
		}
		fmt.Printf("%s %s: ours %.3f s training, %.2f s whole, %.0f MB%s\n", c.job, c.data, ours.Train, ours.Total,
			ours.Peak, tested(ours))
		for _, name := range c.peers {
			if !named(only, peerNames(), name) {
				continue
			}
			p, err := runPeer(python, ml, name, c)
			if err != nil {
				fmt.Printf("  %s: %v\n", name, err)
				continue
			}
			missed := ""
			if p.Within != nil && *p.Within > 1.01e-3 {
				missed = fmt.Sprintf(", %.1e off the optimum", *p.Within)
			}
			fmt.Printf("  %s: %.3f / %.2f s, %.0f MB%s: training %.1f×, whole %.1f×, memory %.2f of it%s\n",
				name, p.Train, p.Total, p.Peak, tested(p), p.Train/ours.Train, p.Total/ours.Total, ours.Peak/p.Peak,
				missed)
		}
	}
	return nil
}

func tested(f figure) string {
	if f.Test == nil {
		return ""
	}
	return fmt.Sprintf(", test %.4f", *f.Test)
}

func contestNames() (names []string) {
	for _, c := range contests {
		names = append(names, c.job, c.data)
	}
	return names
}

func peerNames() (names []string) {
	for _, c := range contests {
		names = append(names, c.peers...)
	}
	return names
}

// named reports whether one of some names is asked for: where names of their kind are
// given, it must be among them.
func named(only string, kind []string, mine ...string) bool {
	asked := slices.DeleteFunc(strings.Split(only, ","), func(n string) bool { return !slices.Contains(kind, n) })
	return len(asked) == 0 || slices.ContainsFunc(mine, func(m string) bool { return slices.Contains(asked, m) })
}

// median3 returns the run of middle speed of three, or one that takes long.
func median3(run func() (figure, error)) (figure, error) {
	var all []figure
	for len(all) < runsEach {
		f, err := run()
		if err != nil {
			return f, err
		}
		if all = append(all, f); f.Total > shortRun {
			break
		}
	}
	slices.SortFunc(all, func(a, b figure) int { return int(math.Copysign(1, a.Total-b.Total)) })
	return all[len(all)/2], nil
}

func references(path string) (map[string]float64, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all map[string]struct{ Objective float64 }
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for k, v := range all {
		out[k] = v.Objective
	}
	return out, nil
}

// runOurs trains in a fresh process with an empty cache.
func runOurs(volley string, c contest, target float64, known bool) (figure, error) {
	dir, err := os.MkdirTemp("", "volley-peers-*")
	if err != nil {
		return figure{}, err
	}
	defer os.RemoveAll(dir)
	data := filepath.Join(fromHome("PEERS_DATA", "data"), c.data)
	args := append([]string{"run", c.job, "--json", "--data", filepath.Join(data, c.file), "--data-dir", dir, "--tol",
		"0"}, c.flags...)
	switch {
	case c.job == "kmeans":
		first := filepath.Join(dir, "centres.txt")
		if err := writeCentres(filepath.Join(data, "init.npy"), first); err != nil {
			return figure{}, err
		}
		args = append(args, "--centers", first, "--max-iterations", "20")
	case c.job == "als":
		args = append(args, "--max-iterations", "10", "--test", filepath.Join(data, "test.parquet"))
	case known:
		args = append(args, "--target", strconv.FormatFloat(target, 'g', -1, 64), "--max-iterations", "5000")
	}
	cmd := exec.Command(volley, args...)
	began := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return figure{}, fmt.Errorf("volley on %s: %w", data, err)
	}
	f := figure{Total: time.Since(began).Seconds()}
	var r struct {
		Train   float64            `json:"train_seconds"`
		Metrics map[string]float64 `json:"metrics"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return figure{}, err
	}
	f.Train = r.Train
	if v, ok := r.Metrics["rmse"]; ok && c.job == "als" {
		f.Test = &v
	}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && runtime.GOOS == "linux" {
		f.Peak = float64(u.Maxrss) / 1024
	}
	return f, nil
}

// writeCentres makes text of a matrix that numpy has saved: a line of text that
// says its shape, then float64 row by row.
func writeCentres(npy, path string) error {
	raw, err := os.ReadFile(npy)
	if err != nil {
		return err
	}
	if len(raw) < 10 || string(raw[:6]) != "\x93NUMPY" {
		return fmt.Errorf("%s is no matrix of numpy", npy)
	}
	head := 10 + int(binary.LittleEndian.Uint16(raw[8:]))
	_, shape, _ := strings.Cut(string(raw[10:head]), "'shape': (")
	var rows, cols int
	if _, err := fmt.Sscanf(shape, "%d, %d)", &rows, &cols); err != nil || len(raw)-head != 8*rows*cols {
		return fmt.Errorf("%s is not a matrix of float64: %q", npy, shape)
	}
	var b bytes.Buffer
	for i := range rows * cols {
		v := math.Float64frombits(binary.LittleEndian.Uint64(raw[head+8*i:]))
		b.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
		b.WriteByte(" \n"[map[bool]int{true: 1}[i%cols == cols-1]])
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// runPeer runs one peer and reads its last JSON line.
func runPeer(python, ml, system string, c contest) (figure, error) {
	cmd := exec.Command(python, filepath.Join(ml, "run.py"), c.job, system, c.data, "--quick", "--budget", "120")
	out, err := cmd.Output()
	if err != nil {
		return figure{}, err
	}
	var f figure
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	err = fmt.Errorf("it printed no result")
	for lines.Scan() {
		var line figure
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Total > 0 {
			f, err = line, nil
		}
	}
	return f, err
}
