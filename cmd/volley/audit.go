package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/replay"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// maxShown is how many violations are printed.
const maxShown = 20

func verifyCommand() *cobra.Command {
	var digest string
	var without bool
	c := &cobra.Command{
		Use:   "verify LOG",
		Short: "Check a run's event log against the invariants of docs/semantics.md",
		Long: `Verify recomputes from the log alone what the engine claims: rows merged equal
rows folded, cursors go on where they left off, nothing is merged twice, every
wait is bounded, bsp steps cover every row, and the log is whole. The log has what
the controller was told: told again, it has to cut, wait, move and leave out what
every line says. It prints how many facts it checked; a broken one is named with its
step and line, and the command ends with code 1. A log that is false throughout, or
whose end was cut off and closed anew, is known by --digest alone: run and submit
print it.`,
		Args: exactArgs(1, "an event log"),
		RunE: func(_ *cobra.Command, args []string) error { return verify(args[0], digest, without) },
	}
	c.Flags().BoolVar(&without, "without-reports", false,
		"take a log whose steps had more reports than a log keeps, so that their decisions cannot be checked")
	c.Flags().StringVar(&digest, "digest", "", "log_digest of the run, as run --json has printed it")
	return c
}

// sameFile compares a log with the digest that its run has printed.
func sameFile(path, digest string) error {
	if digest == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return fault.New(fault.BadInput, "verify", path, err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return fault.New(fault.BadInput, "verify", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != strings.ToLower(digest) {
		return fault.Newf(fault.Corrupt, "verify", path,
			"its digest is %s, the run's was %s: it is not the log that the run has written", got, digest)
	}
	return nil
}

func verify(path, digest string, without bool) error {
	if err := sameFile(path, digest); err != nil {
		return err
	}
	l, err := audit.Read(path)
	if err != nil {
		return err
	}
	r := audit.Verify(l)
	for _, v := range r.Violations[:min(len(r.Violations), maxShown)] {
		fmt.Println(v)
	}
	if n := r.Broken; n > 0 {
		return fault.Newf(fault.Corrupt, "verify", path, "%d of %d facts do not hold", n, r.Facts)
	}
	if r.Undecided > 0 && !without {
		return fault.Newf(fault.Corrupt, "verify", path,
			"the log has left out the reports that %d of %d steps and passes were decided from, as it does with more "+
				"than a log keeps; all %d facts beside them hold",
			r.Undecided, r.Decided+r.Undecided, r.Facts).WithHint("--without-reports takes that")
	}
	fmt.Printf("%s: %d steps, %d facts checked, all hold\n", path, r.Steps, r.Facts)
	if l.Footer.StoppedBy == "interrupted" {
		fmt.Printf("%s: the run was interrupted: that nothing after it was cut off is known by --digest alone\n", path)
	}
	return nil
}

func replayCommand() *cobra.Command {
	var dataDir string
	c := &cobra.Command{
		Use:   "replay LOG",
		Short: "Re-execute a run serially from its event log and compare every digest",
		Long: `Replay folds, one split after the other on one core, exactly the rows that the
log says each step merged, runs the job's own updates on them, and compares the
digest of the parameters after every step. The data must be where it was. A run of
workers on tables is made again, where its model is exact (bsp, ssp with --slack 0)
or its clock was virtual, and the digest of the tables after every clock compared.`,
		Args: exactArgs(1, "an event log"),
		RunE: func(c *cobra.Command, args []string) error { return replayLog(c.Context(), args[0], dataDir) },
	}
	c.Flags().StringVar(&dataDir, "data-dir", volley.DefaultDataDir(), "where packs are kept")
	return c
}

func replayLog(ctx context.Context, path, dataDir string) error {
	l, err := audit.Read(path)
	if err != nil {
		return err
	}
	if l.Header == nil || l.Footer == nil {
		return fault.Newf(fault.BadInput, "replay", path, "the log is not whole: it has no footer")
	}
	if len(l.Lines) == 0 {
		return fault.Newf(fault.Usage, "replay", path, "the job made no step: there is nothing to run again")
	}
	var named struct{ Job string }
	if json.Unmarshal(l.Header.Args, &named) == nil && named.Job != "" && named.Job != l.Header.Job {
		return fault.Newf(fault.Corrupt, "replay", path, "it says that it is of the job %s, its arguments are of %s",
			l.Header.Job, named.Job)
	}
	job := replayable(l.Header.Job)
	if job == nil {
		return fault.Newf(fault.BadInput, "replay", path, "%q is not a bundled job", l.Header.Job)
	}
	cache, err := pack.OpenCache(dataDir, 0)
	if err != nil {
		return err
	}
	dir, done, err := cache.TempDir("replay")
	if err != nil {
		return err
	}
	defer done()
	store, err := executor.OpenStore(filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	defer store.Close()
	return job.replay(ctx, &replayed{l, cache, store, dir, dataDir})
}

// replayer runs a job again from its log.
type replayer interface {
	replay(ctx context.Context, r *replayed) error
}

// replayable returns the bundled job of a name; nil where there is none.
func replayable(name string) replayer {
	if slices.Contains(jobNames(), name) {
		return newJob(name)
	}
	for _, j := range placedJobs() {
		if j.name() == name {
			return j
		}
	}
	return nil
}

// replayed is a log that is replayed, and the directory of its packs meanwhile.
type replayed struct {
	log          *audit.Log
	cache        *pack.Cache
	store        *executor.Store
	dir, dataDir string // of files meanwhile, and of packs
}

// argsOf reads a job's own arguments from a log. They must be spelt as the job writes them: a reader might take an
// unknown or differently spelt key for an option in effect.
func argsOf[C any](path string, args json.RawMessage) (cfg C, err error) {
	if err := json.Unmarshal(args, &cfg); err != nil {
		return cfg, fault.New(fault.BadInput, "replay", path, err)
	}
	obeyed, err := json.Marshal(cfg)
	if err != nil {
		return cfg, fault.New(fault.BadInput, "replay", path, err)
	}
	if said, obeyed := anyOf(args), anyOf(obeyed); !reflect.DeepEqual(said, obeyed) {
		return cfg, fault.Newf(fault.Corrupt, "replay", path, "it has the arguments %v, such a job obeys %v", said,
			obeyed)
	}
	return cfg, nil
}

// anyOf returns what a text of JSON stands for, its numbers as they are written.
func anyOf(raw []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	_ = d.Decode(&v) // it has been decoded before
	return v
}

// replayJob runs a job as a log says and compares digests: once, and again for each time that it went on under other
// arguments.
func replayJob[C, P any, T interface{ Stopped() string }](ctx context.Context, r *replayed, build func(*rdd.Graph, C) P,
	train func(*rdd.Session, C, P) (T, error)) error {
	var cluster *replay.Replay
	var trained T
	var err error
	parts := replay.ArgsOf(r.log)
	for k, args := range parts {
		cfg, failed := argsOf[C](r.log.Path, args)
		if failed != nil {
			return failed
		}
		g := rdd.NewGraph()
		p := build(g, cfg)
		if _, err := g.Resolve(ctx); err != nil {
			return err
		}
		maker := &rdd.Maker{Graph: g, Cache: r.cache, Workers: runtime.GOMAXPROCS(0)}
		defer maker.Close()
		if k == 0 {
			cluster, err = replay.New(r.log, g, r.store.Splits, r.store.Outputs, maker)
		} else {
			err = cluster.Begin(k, g, maker)
		}
		if err != nil {
			return err
		}
		trained, err = train(rdd.NewSession(g, cluster, rdd.Config{}), cfg, p)
		if err != nil && !errors.Is(err, replay.ErrLogEnds) {
			return err
		}
	}
	return r.compared(cluster, trained, err)
}

// compared reports whether a program that was replayed has ended as the log says, and prints it.
func (r *replayed) compared(cluster *replay.Replay, trained interface{ Stopped() string }, err error) error {
	switch said := r.log.Footer.StoppedBy; {
	case err == nil && trained.Stopped() != said:
		err = fault.Newf(fault.Corrupt, "replay", r.log.Path, "it says that it was stopped by %q, the program by %q",
			said, trained.Stopped())
	case errors.Is(err, replay.ErrLogEnds) && said == "interrupted":
		err = nil // by its user, at a step that does not follow from anything else
	case errors.Is(err, replay.ErrLogEnds):
		err = fault.Newf(fault.Corrupt, "replay", r.log.Path,
			"it ends where the program goes on, though it says that it was stopped by %q", said)
	}
	if err == nil {
		err = cluster.End()
	}
	if err != nil {
		return err
	}
	if cluster.Left() > 0 || cluster.Steps != r.log.Footer.Steps {
		return fault.Newf(fault.Corrupt, "replay", r.log.Path, "the program ran %d of %d steps", cluster.Steps,
			r.log.Footer.Steps)
	}
	fmt.Printf("%s: %d steps and %d evaluation passes replayed, every digest equal\n", r.log.Path, cluster.Steps,
		cluster.Passes)
	return nil
}
