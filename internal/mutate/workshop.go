package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// How long tests may take with a mutant, beside the least that is allowed to all: a multiple of
// as long as without it.
const (
	patience = 10
	trial    = 5 * time.Minute // without a mutant
	cheap    = 100 * time.Millisecond
)

// workshop is a directory with test binaries of a package and all its mutants.
type workshop struct {
	root    string
	leisure time.Duration // that every mutant's tests may take
	dir     string
	layer   string // the overlay's description
	oracles []oracle
}

// oracle is a package whose tests are to notice.
type oracle struct {
	dir   string // where its tests run
	bin   string
	flags []string
	tests []testcase
}

// testcase is a test, what it takes, and the mutants that it comes by.
type testcase struct {
	name   string
	took   time.Duration
	seen   []byte
	killed *atomic.Int64 // mutants, so far
}

// outcome is what became of a mutant.
type outcome struct {
	*mutant
	killed bool
	seen   bool // some test comes by it
}

func newWorkshop(root string, leisure time.Duration) (*workshop, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	w := &workshop{root: abs, dir: dir, leisure: leisure, layer: filepath.Join(dir, "overlay.json")}
	w.closeOnSignal()
	return w, os.Mkdir(filepath.Join(dir, "tmp"), 0o755)
}

// closeOnSignal cleans up when the run is interrupted.
func (w *workshop) closeOnSignal() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		w.close()
		os.Exit(130)
	}()
}

func (w *workshop) close() { _ = os.RemoveAll(w.dir) }

// overlay writes the package with its mutants, beside the tree.
func (w *workshop) overlay(p *loaded, f *finding) error {
	texts, err := settle(p, f)
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for path, text := range texts {
		replace[path] = filepath.Join(w.dir, filepath.Base(path))
		if err := os.WriteFile(replace[path], text, 0o644); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(w.layer, raw, 0o644)
}

// oracle compiles the tests of a package and learns which mutants each of them comes by.
func (w *workshop) oracle(dir string, count, jobs int) error {
	o := oracle{dir: filepath.Join(w.root, dir),
		bin: filepath.Join(w.dir, fmt.Sprintf("oracle%d.test", len(w.oracles)))}
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", w.layer, "-o", o.bin, "./"+filepath.ToSlash(dir))
	cmd.Dir = w.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if _, err := os.Stat(o.bin); err != nil {
		return nil // the package has no tests
	}
	names, err := o.list()
	if err != nil {
		return err
	}
	o.flags = o.steady()
	o.tests = make([]testcase, len(names))
	errs := make([]error, len(names))
	parallel(len(names), jobs, func(i int) { o.tests[i], errs[i] = w.trace(o, names[i], i, count) })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	w.oracles = append(w.oracles, o)
	return nil
}

// list returns the names of the tests.
func (o oracle) list() ([]string, error) {
	cmd := exec.Command(o.bin, "-test.list", ".")
	cmd.Dir = o.dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.dir, err)
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		if name := strings.TrimSpace(line); !strings.HasPrefix(name, "Benchmark") {
			names = append(names, name)
		}
	}
	return names, nil
}

// steady returns what keeps properties to the same cases, and from writing those that fail into the tree.
func (o oracle) steady() []string {
	cmd := exec.Command(o.bin, "-help")
	cmd.Dir = o.dir
	if out, _ := cmd.CombinedOutput(); bytes.Contains(out, []byte("-rapid.nofailfile")) {
		return []string{"-rapid.nofailfile", "-rapid.seed=1"}
	}
	return nil
}

// trace runs a test without a mutant.
func (w *workshop) trace(o oracle, name string, i, count int) (testcase, error) {
	path := filepath.Join(w.dir, fmt.Sprintf("seen%d", i))
	if err := os.WriteFile(path, make([]byte, count), 0o644); err != nil {
		return testcase{}, err
	}
	began := time.Now()
	if e := w.run(o, name, trial, "VOLLEY_MUTANTS_SEEN="+path); e.err != nil {
		return testcase{}, fmt.Errorf("%s in %s fails without a mutant: %w\n%s", name, o.dir, e.err, e.out)
	}
	seen, err := os.ReadFile(path)
	return testcase{name, time.Since(began), seen, new(atomic.Int64)}, err
}

// ended is how a test ended.
type ended struct {
	out     []byte
	err     error
	starved bool // it was killed for taking too long, but had been given little of the processor
}

// run runs a test of an oracle, and kills it and all that it has started when it takes too long.
func (w *workshop) run(o oracle, name string, within time.Duration, env ...string) ended {
	args := append([]string{"-test.short", "-test.failfast", "-test.count=1", "-test.run",
		"^" + regexp.QuoteMeta(name) + "$"}, o.flags...)
	cmd := exec.Command(o.bin, args...)
	cmd.Dir, cmd.Env = o.dir, append(os.Environ(), append(env, "TMPDIR="+filepath.Join(w.dir, "tmp"))...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Second
	if err := cmd.Start(); err != nil {
		return ended{err: err}
	}
	all := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	late := time.AfterFunc(within, all)
	err := cmd.Wait()
	over := !late.Stop()
	all() // what a test has left behind
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return ended{out.Bytes(), err, over && used < within/2}
}

// judge runs each mutant until a test notices it.
func (w *workshop) judge(mutants []*mutant, jobs int) []outcome {
	out := make([]outcome, len(mutants))
	var done atomic.Int64
	parallel(len(mutants), jobs, func(i int) {
		out[i] = w.try(mutants[i])
		if n := done.Add(1); n%100 == 0 {
			fmt.Fprintf(os.Stderr, "%s: %d of %d\n", filepath.Dir(mutants[i].file), n, len(mutants))
		}
	})
	return out
}

func (w *workshop) try(m *mutant) outcome {
	res := outcome{mutant: m}
	for _, o := range w.oracles {
		for _, t := range order(o.tests, m.id) {
			res.seen = true
			if w.noticed(o, t, m) {
				t.killed.Add(1)
				res.killed = true
				return res
			}
		}
	}
	return res
}

// noticed reports whether a test fails with a mutant. One that was not done in time, but had hardly
// any of the processor, has more time once: others may need the machine too.
func (w *workshop) noticed(o oracle, t testcase, m *mutant) bool {
	within, env := max(patience*t.took, w.leisure), "VOLLEY_MUTANT="+strconv.Itoa(m.id)
	e := w.run(o, t.name, within, env)
	if e.starved {
		e = w.run(o, t.name, 3*within, env)
	}
	return e.err != nil
}

// order returns the tests that reach a mutant: those that take hardly any time before the others, and of
// them the ones first that have killed most, which need not hang to notice.
func order(tests []testcase, id int) (out []testcase) {
	for _, t := range tests {
		if id < len(t.seen) && t.seen[id] != 0 {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b testcase) int {
		if a.took < cheap && b.took < cheap {
			return cmp.Or(cmp.Compare(b.killed.Load(), a.killed.Load()), cmp.Compare(a.took, b.took))
		}
		return cmp.Compare(a.took, b.took)
	})
	return out
}

// parallel calls f for 0 to n-1, jobs of them at a time.
func parallel(n, jobs int, f func(int)) {
	var all sync.WaitGroup
	var next atomic.Int64
	for range max(jobs, 1) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}
