package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// flow is what one system made of a dataflow job.
type flow struct {
	Work  float64 `json:"work_s"`
	Total float64 `json:"total_s"`
	Peak  float64 `json:"peak_rss_mb"`
	Check string  `json:"result_check"`
}

// flows are the jobs with the systems that are run beside ours.
var flows = []struct {
	job     string
	systems []string
}{
	{"wordcount", []string{"duckdb", "polars", "spark-df", "spark-rdd"}},
	{"groupby", []string{"duckdb", "polars", "spark-df", "spark-rdd"}},
	{"sort", []string{"duckdb", "polars", "spark-df", "spark-rdd"}},
	{"join", []string{"duckdb", "polars", "spark-df", "spark-rdd"}},
	{"narrow", []string{"duckdb", "polars", "spark-df"}},
	{"pagerank", []string{"duckdb", "polars", "spark-rdd"}},
	{"window", []string{"duckdb", "polars"}},
	{"secondary", []string{"duckdb", "polars"}},
	{"semijoin", []string{"duckdb", "polars"}},
}

// beside are the jobs that our own script has for other systems.
var beside = []string{"window", "secondary", "semijoin"}

// dataflowPeers runs each job in each system, ours among them, and prints ratios.
// only names jobs and systems to run, separated by commas; all without it.
func dataflowPeers(ctx context.Context, peers, only string) error {
	dir, err := os.MkdirTemp("", "flows-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, f := range flows {
		if !chosen(only, f.job) {
			continue
		}
		ours, err := median(func() (flow, error) { return ourFlow(ctx, dir, f.job) })
		if err != nil {
			return fmt.Errorf("%s: %w", f.job, err)
		}
		fmt.Printf("%s: ours %.2f s (process %.2f s), %.0f MB\n", f.job, ours.Work, ours.Total, ours.Peak)
		for _, system := range f.systems {
			if !chosen(only, system) {
				continue
			}
			theirs, err := median(func() (flow, error) { return theirFlow(ctx, peers, f.job, system) })
			if err != nil {
				fmt.Printf("  %-10s %v\n", system, err)
				continue
			}
			same := "the same result"
			if !sameResult(ours.Check, theirs.Check) {
				same = fmt.Sprintf("ANOTHER RESULT: %q and %q", ours.Check, theirs.Check)
			}
			fmt.Printf("  %-10s %.2f s (process %.2f s), %.0f MB: %.2f x ours, %.2f of its memory; %s\n", system,
				theirs.Work, theirs.Total, theirs.Peak,
				theirs.Work/ours.Work, ours.Peak/theirs.Peak, same)
		}
	}
	return nil
}

// A short run is done several times, since one may be slowed down by what ran
// before it.
const (
	shortRun = 20 // seconds
	runsEach = 3
)

// median returns the run of middle speed.
func median(run func() (flow, error)) (flow, error) {
	var all []flow
	for len(all) < runsEach {
		f, err := run()
		if err != nil {
			return f, err
		}
		if all = append(all, f); f.Work > shortRun {
			break
		}
	}
	slices.SortFunc(all, func(a, b flow) int { return cmp.Compare(a.Work, b.Work) })
	return all[len(all)/2], nil
}

// chosen reports whether something is to be run: where names of its kind are given,
// it must be among them.
func chosen(only, name string) bool {
	names := strings.Split(only, ",")
	isJob := func(n string) bool {
		for _, f := range flows {
			if f.job == n {
				return true
			}
		}
		return false
	}
	alike := slices.DeleteFunc(names, func(n string) bool {
		return n == "" || n == "dataflow" ||
			isJob(n) != isJob(name)
	})
	return len(alike) == 0 || slices.Contains(alike, name)
}

// besideFlow runs another system by our own script, with the Python of PEERS_VENV or the machine's.
func besideFlow(ctx context.Context, job, system string) (f flow, err error) {
	dir, err := os.MkdirTemp("", "beside-*")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	python := "python3"
	if venv := os.Getenv("PEERS_VENV"); venv != "" {
		python = filepath.Join(venv, "bin", "python")
	}
	warm(job)
	output := filepath.Join(dir, "part-00000")
	cmd := exec.CommandContext(ctx, python, "integration/bench/dataflow/beside.py", job, system, dataDir(), output)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return f, fmt.Errorf("%w: %s", err, out)
	}
	_, line, _ := strings.Cut(string(out), "RESULT ")
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		return f, fmt.Errorf("%w: %s", err, out)
	}
	f.Total = time.Since(began).Seconds()
	f.Peak = float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
	if job == "secondary" {
		f.Check, err = sumOfParts(dir)
	}
	return f, err
}

// sameResult compares the numbers that a job comes to. PageRank's rank differs in
// the last digit printed.
func sameResult(a, b string) bool {
	return a == b || strings.HasPrefix(b, a) && a != ""
}

func dataDir() string {
	if d := os.Getenv("PEERS_DATA"); d != "" {
		return d
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".cache", "volley-peers", "data")
}

// ourFlow builds and runs our program for a job, on warm files like theirs.
func ourFlow(ctx context.Context, dir, job string) (f flow, err error) {
	pkg, args := "./integration/bench/dataflow",
		[]string{"--", "--job", job, "--data", dataDir(), "--output", filepath.Join(dir, "out")}
	if job == "pagerank" {
		pkg, args = "./examples/04-pagerank", []string{"--", "--input", filepath.Join(dataDir(), "graph.txt"),
			"--rounds", "20", "--top", "1"}
	}
	program := filepath.Join(dir, job)
	build := exec.CommandContext(ctx, "go", "build", "-o", program, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return f, fmt.Errorf("%w: %s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil { // of the run before
		return f, err
	}
	warm(job)
	cmd := exec.CommandContext(ctx, program, append([]string{"--data-dir", filepath.Join(dir, "data")}, args...)...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return f, fmt.Errorf("%w: %s", err, out)
	}
	f.Total = time.Since(began).Seconds()
	if job == "pagerank" {
		return pageRankFlow(f, string(out), cmd), nil
	}
	_, line, _ := strings.Cut(string(out), "RESULT ")
	var r struct {
		flow
		Bytes float64 `json:"peak_bytes"`
	}
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		return f, fmt.Errorf("%w: %s", err, out)
	}
	f.Work, f.Check, f.Peak = r.Work, r.Check, r.Bytes/(1<<20)
	if job == "sort" || job == "secondary" {
		f.Check, err = sumOfParts(filepath.Join(dir, "out"))
	}
	return f, err
}

// pageRankFlow reads what the lesson prints: its whole process is what it took.
func pageRankFlow(f flow, out string, cmd *exec.Cmd) flow {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var pages, node int
	var sum, rank float64
	_, _ = fmt.Sscanf(lines[0], "%d pages after 20 rounds: ranks sum to %f,", &pages, &sum)
	_, _ = fmt.Sscan(lines[len(lines)-1], &node, &rank)
	f.Work, f.Check = f.Total, fmt.Sprintf("%d %.9f %d %.9f", pages, sum, node, rank)
	f.Peak = float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
	return f
}

// warm reads the inputs of a job once, as the peers' own script does.
func warm(job string) {
	files := map[string][]string{"wordcount": {"text.txt"}, "groupby": {"kv.parquet"}, "narrow": {"kv.parquet"},
		"sort": {"sort.txt"}, "window": {"kv.parquet"}, "secondary": {"kv.parquet"},
		"semijoin": {"fact.parquet", "dim.parquet"}, "join": {"fact.parquet", "dim.parquet"}, "pagerank": {"graph.txt"}}
	for _, name := range files[job] {
		if f, err := os.Open(filepath.Join(dataDir(), name)); err == nil {
			_, _ = io.Copy(io.Discard, f)
			f.Close()
		}
	}
}

// sumOfParts returns the size and MD5 of a saved dataset, as the peers' script has it.
func sumOfParts(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "part-*"))
	if err != nil {
		return "", err
	}
	sum, size := md5.New(), int64(0)
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		n, err := io.Copy(sum, f)
		f.Close()
		if size += n; err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d %x", size, sum.Sum(nil)), nil
}

// theirFlow runs a job in another system by the peers' script.
func theirFlow(ctx context.Context, peers, job, system string) (f flow, err error) {
	if slices.Contains(beside, job) {
		return besideFlow(ctx, job, system)
	}
	python := "python3"
	if home, err := os.UserHomeDir(); err == nil {
		if venv := filepath.Join(home, ".cache", "volley-peers", "venv", "bin",
			"python"); os.Getenv("PEERS_VENV") == "" {
			if _, err := os.Stat(venv); err == nil {
				python = venv
			}
		}
	}
	cmd := exec.CommandContext(ctx, python, filepath.Join(peers, "dataflow", "run"), job, system, "--timeout", "600")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return f, fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	if err := json.Unmarshal(out, &f); err != nil || f.Work == 0 {
		return f, fmt.Errorf("it failed: %s", strings.TrimSpace(complaint.String()))
	}
	return f, nil
}
