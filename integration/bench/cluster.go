package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/synth"
)

// processes is a cluster of processes for measuring.
type processes struct {
	program string
	dir     string
	addr    string
	all     []*exec.Cmd
}

// startCluster builds the program and starts a driver and executors.
func startCluster(dir string, executors, slots int) (*processes, error) {
	p := &processes{program: filepath.Join(dir, "volley"), dir: dir}
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", p.program, "./cmd/volley")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	ready, err := p.start("driver", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "driver"))
	if err != nil {
		return nil, err
	}
	p.addr = ready["listening"]
	for i := range executors {
		if _, err := p.start("executor", "--driver", p.addr, "--name", fmt.Sprint("e", i), "--slots", fmt.Sprint(slots), "--data-dir", filepath.Join(dir, "packs")); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

// start starts a daemon and reads the line that it prints when it is ready.
func (p *processes) start(args ...string) (ready map[string]string, err error) {
	cmd := exec.Command(p.program, append(args, "--log-level", "error")...)
	cmd.Env = append(os.Environ(), "VOLLEY_HOME="+filepath.Join(p.dir, "home"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.all = append(p.all, cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, err
	}
	return ready, json.Unmarshal([]byte(line), &ready)
}

func (p *processes) close() {
	_ = p.all[0].Process.Signal(syscall.SIGTERM)
	for _, c := range p.all {
		_ = c.Wait()
	}
}

// submit runs a job to its end and returns its event log's steps.
func (p *processes) submit(args ...string) ([]driver.LogStep, error) {
	log := filepath.Join(p.dir, "log")
	cmd := exec.Command(p.program, append([]string{"submit", "logistic", "--driver", p.addr, "--event-log", log, "--json"}, args...)...)
	cmd.Env = append(os.Environ(), "VOLLEY_HOME="+filepath.Join(p.dir, "home"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return readSteps(log)
}

// readSteps are the step lines of an event log.
func readSteps(log string) ([]driver.LogStep, error) {
	f, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var steps []driver.LogStep
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text()[:20], `"step"`) {
			continue
		}
		var s driver.LogStep
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, lines.Err()
}

func logSeconds(steps []driver.LogStep) []float64 {
	var out []float64
	for _, s := range steps {
		out = append(out, time.Duration(s.Phases.Compute+s.Phases.Collect).Seconds())
	}
	return out
}

// clusterSteps: an empty step on eight executor processes, and how long a
// small job takes from its submission.
func clusterSteps(ctx context.Context, dir string, _ int64) error {
	data := filepath.Join(dir, "tiny.csv")
	if err := synth.Write(ctx, synth.Logistic{Rows: 64, Features: 1, Eps: 1}, "csv", data, 1); err != nil {
		return err
	}
	p, err := startCluster(dir, 8, 1)
	if err != nil {
		return err
	}
	defer p.close()
	flags := []string{"--data", data, "--splits", "8", "--tol", "0"}
	began := time.Now()
	if _, err := p.submit(append(flags, "--max-iterations", "1")...); err != nil {
		return err
	}
	whole := time.Since(began).Seconds()
	steps, err := p.submit(append(flags, "--max-iterations", "1000")...)
	if err != nil {
		return err
	}
	took := logSeconds(steps)
	fmt.Printf("empty step, 8 executor processes: p50 %.3f ms (%.2f of the limit of 3 ms), p99 %.3f ms (%.2f of the limit of 10 ms); a job of one step from submission to result %.2f s\n",
		1e3*quantile(took, 0.5), quantile(took, 0.5)/3e-3, 1e3*quantile(took, 0.99), quantile(took, 0.99)/10e-3, whole)
	return nil
}

// clusterDense: a dense pass as processes against the embedded cluster.
func clusterDense(ctx context.Context, dir string, rows int64) error {
	data := filepath.Join(dir, "dense.arrow")
	if err := synth.Write(ctx, synth.Logistic{Rows: rows, Features: 100, Eps: 0.1}, "arrow", data, 2); err != nil {
		return err
	}
	p, err := startCluster(dir, 1, 2)
	if err != nil {
		return err
	}
	defer p.close()
	var ratios, embedded []float64
	for range 3 {
		steps, err := p.submit("--data", data, "--max-iterations", "40", "--tol", "0")
		if err != nil {
			return err
		}
		alone := exec.CommandContext(ctx, p.program, "run", "logistic", "--data", data, "--max-iterations", "40", "--tol", "0", "--executors", "1", "--slots", "2",
			"--data-dir", filepath.Join(dir, "packs"), "--event-log", filepath.Join(dir, "alone"), "--json")
		if out, err := alone.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		ours, err := readSteps(filepath.Join(dir, "alone"))
		if err != nil {
			return err
		}
		embedded = append(embedded, quantile(logSeconds(ours), 0.5))
		ratios = append(ratios, quantile(logSeconds(steps), 0.5)/quantile(logSeconds(ours), 0.5))
	}
	fmt.Printf("dense pass as processes: %.2f × embedded (%.4f s; limit 1.15)\n", quantile(ratios, 0.5), quantile(embedded, 0.5))
	return nil
}
