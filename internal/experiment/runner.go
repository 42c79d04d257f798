package experiment

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/history"
)

// Run is one run of an experiment: the arguments of volley.
type Run []string

// String returns the command line.
func (r Run) String() string { return "volley " + strings.Join(r, " ") }

// Result is what a run printed, or why it failed.
type Result struct {
	Run        string   `json:"run"`
	Objective  float64  `json:"objective"`
	Seconds    float64  `json:"train_seconds"`
	Iterations int      `json:"iterations"`
	StoppedBy  string   `json:"stopped_by"`
	Share      float64  `json:"mean_share"`
	Solver     string   `json:"solver"`
	Passes     Passes   `json:"passes"`
	Waited     *float64 `json:"waited_share,omitempty"` // of slots' time, of workers on tables
	Helped     *float64 `json:"helped_share,omitempty"` // of rows, by other workers
	Rows       int64    `json:"rows,omitempty"`
	Documents  int64    `json:"documents,omitempty"`
	Users      int64    `json:"users,omitempty"`
	Failed     string   `json:"failed,omitempty"`
}

// Passes counts the rows of those that a run trained by.
type Passes struct {
	Rows int64 `json:"training_rows"`
}

// Reached reports whether a run came to an objective.
func (r *Result) Reached(target float64) bool { return r.Failed == "" && r.Objective <= target }

// Runner makes runs, some at a time, and keeps their results, so that an experiment that was interrupted goes on.
type Runner struct {
	Program  string // volley
	Dir      string // where results are kept
	Parallel int
	Limit    time.Duration // of one run, on the wall clock
	Progress func(done, all int, left time.Duration)
	Draw     func(log, name string) (history.Run, error) // how the run of an event log went
	mu       sync.Mutex
	known    map[string]*Result
	version  string // digest of the program
	log      *disk.File
}

// kept is a line of the file of results.
type kept struct {
	Version string `json:"version"`
	Result
}

// Open reads the results of before.
func (r *Runner) Open() error {
	sum, err := digestOf(r.Program)
	if err != nil {
		return fault.New(fault.NoResources, "read", r.Program, err)
	}
	r.version, r.known = sum, map[string]*Result{}
	if err := disk.MkdirAll(r.Dir, 0o755); err != nil {
		return fault.New(fault.NoResources, "make", r.Dir, err)
	}
	path := filepath.Join(r.Dir, "runs.jsonl")
	raw, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return fault.New(fault.BadInput, "read", path, err)
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var k kept
		if json.Unmarshal(lines.Bytes(), &k) == nil && k.Version == r.version && k.Failed == "" {
			r.known[k.Run] = &k.Result
		}
	}
	if r.log, err = disk.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
		_, err = r.log.Seek(0, io.SeekEnd)
	}
	if err != nil {
		return fault.New(fault.NoResources, "write", path, err)
	}
	return nil
}

// Close closes the file of results.
func (r *Runner) Close() error { return r.log.Close() }

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Do makes those runs that have no result yet. One that fails has its failure for a result; an error is one of the
// experiment's own.
func (r *Runner) Do(ctx context.Context, runs []Run) error {
	var open []Run
	seen := map[string]bool{}
	for _, run := range runs {
		if s := run.String(); !seen[s] && r.known[s] == nil {
			seen[s] = true
			open = append(open, run)
		}
	}
	began, done := time.Now(), 0
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(max(1, r.Parallel))
	for _, run := range open {
		g.Go(func() error {
			if inner.Err() != nil {
				return inner.Err()
			}
			res := r.one(inner, run)
			if inner.Err() != nil {
				return inner.Err()
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			done++
			if r.Progress != nil {
				each := time.Since(began) / time.Duration(done)
				r.Progress(done, len(open), each*time.Duration(len(open)-done))
			}
			return r.keep(res)
		})
	}
	if err := g.Wait(); ctx.Err() != nil {
		return fault.New(fault.Cancelled, "run", "the experiment", ctx.Err()).
			WithHint("the same command goes on where it ended")
	} else if err != nil {
		return err
	}
	return nil
}

// keep notes a result; the caller holds the lock.
func (r *Runner) keep(res *Result) error {
	r.known[res.Run] = res
	raw, err := json.Marshal(kept{r.version, *res})
	if err == nil {
		_, err = r.log.Write(append(raw, '\n'))
	}
	if err != nil {
		return fault.New(fault.NoResources, "write", r.log.Name(), err)
	}
	return nil
}

// one makes a run.
func (r *Runner) one(ctx context.Context, run Run) *Result {
	res := &Result{Run: run.String()}
	limited, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	cmd := exec.CommandContext(limited, r.Program, append(run, "--json", "--log-level", "error")...)
	cmd.WaitDelay = 10 * time.Second
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, res)
	}
	switch {
	case limited.Err() != nil:
		res.Failed = fmt.Sprintf("it was not over after %v", r.Limit)
	case err != nil:
		res.Failed = fmt.Sprintf("%v: %s", err, strings.TrimSpace(complaint.String()))
	}
	return res
}

// logged makes a run unless it was, and returns the path of its event log.
func (r *Runner) logged(ctx context.Context, run Run) (path string, err error) {
	dir := filepath.Join(r.Dir, "logs")
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return "", fault.New(fault.NoResources, "make", dir, err)
	}
	sum := sha256.Sum256([]byte(r.version + run.String()))
	path = filepath.Join(dir, hex.EncodeToString(sum[:8])+".log")
	r.mu.Lock()
	known := r.known[run.String()] != nil
	r.mu.Unlock()
	if _, err := os.Stat(path); err == nil && known {
		return path, nil
	}
	// Another lab may have the same directory.
	part := fmt.Sprintf("%s.%d.part", path, os.Getpid())
	res := r.one(ctx, append(slices.Clone(run), "--event-log", part))
	defer os.Remove(part)
	switch res.Run = run.String(); {
	case ctx.Err() != nil:
		return "", fault.New(fault.Cancelled, "run", "the experiment", ctx.Err()).
			WithHint("the same command goes on where it ended")
	case res.Failed != "":
		return "", fault.Newf(fault.Internal, "make the run", run.String(), "%s", res.Failed)
	}
	if err := os.Rename(part, path); err != nil {
		return "", fault.New(fault.NoResources, "write", path, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return path, r.keep(res)
}

// allLogged makes those runs that were not, with event logs; one that fails has none.
func (r *Runner) allLogged(ctx context.Context, runs []Run) error {
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(max(1, r.Parallel))
	for _, run := range runs {
		g.Go(func() error {
			if _, err := r.logged(inner, run); ctx.Err() != nil {
				return err
			}
			return nil
		})
	}
	return g.Wait()
}

// Result returns what a run came to; nil where it was not made.
func (r *Runner) Result(run Run) *Result { return r.known[run.String()] }

// Data makes a job's data set, once, and returns its path. Its name has its parameters, so that another size is
// another file.
func (r *Runner) Data(ctx context.Context, j *Job) (string, error) {
	if j.Path != "" {
		return j.Path, nil
	}
	d := j.Data
	dir := filepath.Join(r.Dir, "data")
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return "", fault.New(fault.NoResources, "make", dir, err)
	}
	path := filepath.Join(dir, d.name())
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := exec.CommandContext(ctx, r.Program, append(append([]string{"generate", d.Law}, d.Flags...), "--out",
		path)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fault.New(fault.NoResources, "make", path, fmt.Errorf("%w: %s", err, bytes.TrimSpace(out)))
	}
	return path, nil
}

// Data is a synthetic data set: arguments of volley generate.
type Data struct {
	Law    string
	Flags  []string
	Format string
}

// dataOf returns the path of a job's data.
func (r *Runner) dataOf(j *Job) string {
	if j.Path != "" {
		return j.Path
	}
	return filepath.Join(r.Dir, "data", j.Data.name())
}

func (d Data) name() string {
	words := append([]string{d.Law}, d.Flags...)
	for i, w := range words {
		words[i] = strings.TrimLeft(w, "-")
	}
	return strings.Join(words, "-") + "." + d.Format
}
