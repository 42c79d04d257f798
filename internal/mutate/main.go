// Command mutate breaks a package in every small way it knows, one at a time, and says which of
// them the tests do not notice.
//
// Every mutation of a package is compiled into one test binary, behind the overlay of go test -c,
// so the tree is never touched; which of them is in force is chosen by the environment. Each test
// is run once by itself to learn which mutations it comes by, and then each mutation is run
// against those tests only, the cheap ones and those that have killed most first: the package's
// own, then those of the packages that are named in targets as its oracles. A test that fails,
// panics or hangs kills it.
//
// Known tools (gremlins, go-mutesting) compile once for every mutation, and the first of them
// leaves constants alone; the packages here are the ones whose constants decide.
//
// What survives is listed in docs/mutants.md. Survivors that change nothing observable are
// argued in argued.txt, by file, function, kind and text. The command fails when, of those
// that are not argued, too few are killed.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// target is a package that decides: which of its files, and whose tests beside its own must
// notice.
type target struct {
	dir     string
	files   []string // patterns of names; none: all
	oracles []string // directories of packages
}

var targets = []target{
	{dir: "abss", oracles: []string{"internal/sim"}},
	{dir: "prioritizer", oracles: []string{"internal/sim"}},
	{dir: "scheduler", oracles: []string{"internal/sim"}},
	{dir: "driver", files: []string{"job*.go", "eventlog.go", "logoptions.go", "retell.go", "tape.go"},
		oracles: []string{"internal/audit", "internal/sim"}},
	{dir: "driver/daemon", files: []string{"lifecycle_prune.go", "lifecycle_resume.go"},
		oracles: []string{"internal/sim/life"}},
	{dir: "executor", files: []string{"agent*.go"}, oracles: []string{"internal/sim"}},
	{dir: "internal/audit"},
	{dir: "internal/replay"},
}

func main() {
	names := flag.String("pkg", "", "the packages, with commas between; all that decide")
	jobs := flag.Int("jobs", runtime.NumCPU(), "how many test binaries run at a time")
	least := flag.Float64("least", 85, "percent of a package's mutants that must be killed, argued ones apart")
	root := flag.String("root", ".", "the module's directory")
	flag.Parse()
	chosen, err := choose(*names)
	if err == nil {
		err = run(*root, chosen, *jobs, *least)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// choose returns the targets of these names.
func choose(names string) ([]target, error) {
	if names == "" {
		return targets, nil
	}
	var out []target
	for name := range strings.SplitSeq(names, ",") {
		found := false
		for _, t := range targets {
			if t.dir == strings.TrimPrefix(filepath.ToSlash(filepath.Clean(name)), "./") {
				out, found = append(out, t), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s is not among the packages that decide (internal/mutate)", name)
		}
	}
	return out, nil
}

// run mutates the targets in turn and writes down what became of them.
func run(root string, chosen []target, jobs int, least float64) error {
	argued, err := readArgued(filepath.Join(root, "internal/mutate/argued.txt"))
	if err != nil {
		return err
	}
	var failed []string
	for _, t := range chosen {
		res, err := mutate(root, t, jobs, 10*time.Second)
		if err != nil {
			return fmt.Errorf("%s: %w", t.dir, err)
		}
		sum := summarize(t.dir, res, argued)
		sum.print(os.Stdout)
		if err := sum.write(filepath.Join(root, "docs/mutants.md")); err != nil {
			return err
		}
		if sum.share() < least || len(sum.stale) > 0 {
			failed = append(failed, t.dir)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("too few mutants killed, or arguments that are stale: %s", strings.Join(failed, ", "))
	}
	return nil
}

// mutate returns what became of every mutant of a target.
func mutate(root string, t target, jobs int, leisure time.Duration) ([]outcome, error) {
	p, err := load(root, t.dir, t.files)
	if err != nil {
		return nil, err
	}
	found := find(p)
	w, err := newWorkshop(root, leisure)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.overlay(p, found); err != nil {
		return nil, err
	}
	for _, dir := range append([]string{t.dir}, t.oracles...) {
		if err := w.oracle(dir, found.most(), jobs); err != nil {
			return nil, err
		}
	}
	return w.judge(found.mutants, jobs), nil
}
