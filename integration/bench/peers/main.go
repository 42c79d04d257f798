// Command peers runs other systems beside ours, logistic regressions on the
// same files, what a cluster costs and survives, and dataflow jobs, and prints
// ratios of this one run. It needs the peers' folder
// (its own setup and generate.py done), python3 and Java; the product needs
// none of them.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// figure is what one system took: training alone, the whole process, and its
// peak of resident memory.
type figure struct {
	Train float64 `json:"train_s"`
	Total float64 `json:"total_s"`
	Peak  float64 `json:"peak_rss_mb"`
}

// contests are the data sets with their training files, rows and the peers to
// run on each; the first is the one that the limits are about.
var contests = []struct {
	data, file string
	rows       float64
	limit      float64 // whole process of the first peer over ours
	peers      []string
}{
	{"dense1m", "train.parquet", 1e6, 2, []string{"spark-ml", "sklearn-lbfgs"}},
	{"a9a", "train.libsvm", 32561, 20, []string{"spark-ml", "liblinear-s0"}},
	{"sparse200k", "train.libsvm", 200e3, 3, []string{"spark-ml", "liblinear-s0"}},
}

func main() {
	peers := flag.String("peers", "../shared/peers", "folder of the peers' scripts")
	volley := flag.String("volley", "bin/volley", "our program")
	only := flag.String("only", "", "ml, cluster, or dataflow with jobs and systems after it, separated by commas; all without it")
	flag.Parse()
	err := error(nil)
	flowsOnly := strings.HasPrefix(*only, "dataflow")
	if *only != "cluster" && !flowsOnly {
		err = run(filepath.Join(*peers, "ml"), *volley)
	}
	if err == nil && *only != "ml" && !flowsOnly {
		err = clusterPeers(context.Background(), *peers)
	}
	if err == nil && (*only == "" || flowsOnly) {
		err = dataflowPeers(context.Background(), *peers, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func fromHome(env, rest string) string {
	if v := os.Getenv(env); v != "" {
		return v
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".cache", "volley-peers", rest)
}

func run(ml, volley string) error {
	python := filepath.Join(fromHome("PEERS_VENV", "venv"), "bin", "python")
	if _, err := os.Stat(python); err != nil {
		return fmt.Errorf("the peers are not set up: run %s/setup and generate.py", ml)
	}
	targets, err := references(filepath.Join(ml, "references.json"))
	if err != nil {
		return err
	}
	for _, c := range contests {
		data := filepath.Join(fromHome("PEERS_DATA", "data"), c.data, c.file)
		ours, err := runOurs(volley, data, 1/c.rows, 1.001*targets["logistic:"+c.data])
		if err != nil {
			return err
		}
		fmt.Printf("%s to 1e-3 of the optimum: ours %.3f s training, %.2f s whole, %.0f MB\n", c.data, ours.Train, ours.Total, ours.Peak)
		for i, name := range c.peers {
			p, err := runPeer(python, ml, name, c.data)
			if err != nil {
				fmt.Printf("  %s: %v\n", name, err)
				continue
			}
			limit := ""
			if i == 0 {
				limit = fmt.Sprintf(" (limit %.0f)", c.limit)
			}
			fmt.Printf("  %s: %.3f / %.2f s, %.0f MB: training %.1f×, whole %.1f×%s, memory %.2f of it\n",
				name, p.Train, p.Total, p.Peak, p.Train/ours.Train, p.Total/ours.Total, limit, ours.Peak/p.Peak)
		}
	}
	return nil
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

// runOurs trains to the target in a fresh process with an empty cache.
func runOurs(volley, data string, reg, target float64) (figure, error) {
	dir, err := os.MkdirTemp("", "volley-peers-*")
	if err != nil {
		return figure{}, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(volley, "run", "logistic", "--json", "--data", data, "--data-dir", dir, "--intercept=false",
		"--reg", strconv.FormatFloat(reg, 'g', -1, 64), "--target", strconv.FormatFloat(target, 'g', -1, 64), "--max-iterations", "5000", "--tol", "0")
	began := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return figure{}, fmt.Errorf("volley on %s: %w", data, err)
	}
	total := time.Since(began).Seconds()
	var r struct {
		Train float64 `json:"train_seconds"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return figure{}, err
	}
	f := figure{Train: r.Train, Total: total}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && runtime.GOOS == "linux" {
		f.Peak = float64(u.Maxrss) / 1024
	}
	return f, nil
}

// runPeer runs one peer and reads its last JSON line.
func runPeer(python, ml, system, data string) (figure, error) {
	cmd := exec.Command(python, filepath.Join(ml, "run.py"), "logistic", system, data, "--quick")
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
