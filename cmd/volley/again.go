package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// What workers on tables saw of each other is in no log. A run of theirs is replayed by making it again, which gives
// the same bytes where the model is exact, and under any model where the clock was virtual.

// mayRunAgain returns why a run of workers would not give the same bytes again.
func (r *replayed) mayRunAgain(m workersOf) error {
	o := r.log.Header.Options
	resumed := slices.ContainsFunc(r.log.Lines, func(l audit.Line) bool { return l.Resume != nil })
	switch {
	case m.repeats:
		return nil
	case o.Clock != "virtual":
		return fault.Newf(fault.Usage, "replay", r.log.Path,
			"what workers saw of each other under %s on the real clock is not in the log", m.model).
			WithHint("bsp and ssp with --slack 0 can be replayed, and under --clock virtual every model")
	case resumed:
		return fault.Newf(fault.Usage, "replay", r.log.Path,
			"it was resumed: what workers under %s had seen was not kept", m.model)
	}
	return nil
}

// workersOf is what a log says of the workers of a run.
type workersOf struct {
	model   string
	repeats bool // on the real clock, too
}

func ofModel(m tables.Model) workersOf { return workersOf{m.String(), m.Exact()} }

func ofBounded(b *mllib.Bounded) workersOf { return workersOf{b.Name(), b.Repeats()} }

// cluster returns the configuration of a cluster as the log has it.
func (r *replayed) cluster(dir string) (volley.Config, error) {
	o := r.log.Header.Options
	flags := []string{"--sync", o.Sync, "--data-dir", r.dataDir, "--event-log", filepath.Join(dir, "again.log")}
	if o.Clock == "virtual" {
		flags = append(flags, "--clock", "virtual", "--pace", o.Pace, "--executors", strconv.Itoa(o.Executors),
			"--slots", strconv.Itoa(max(1, o.Slots)))
	}
	cfg, err := volley.ParseConfig(flags...)
	if err != nil {
		return cfg, fault.New(fault.Corrupt, "replay", r.log.Path, err)
	}
	return cfg, nil
}

// runAgain makes a run of workers on tables again, and compares the digests of all that it commits.
func runAgain[C, P any](ctx context.Context, r *replayed, model func(*C) workersOf, build func(*rdd.Graph, C) P,
	train func(context.Context, *rdd.Session, C, P) (stopped string, err error)) error {
	cfg, err := argsOf[C](r.log.Path, r.log.Header.Args)
	if err == nil && len(commitsOf(r.log)) == 0 {
		err = fault.Newf(fault.Usage, "replay", r.log.Path,
			"the job has committed no iteration: there is nothing to compare")
	}
	if err == nil {
		err = r.mayRunAgain(model(&cfg))
	}
	if err != nil {
		return err
	}
	v, err := r.cluster(r.dir)
	if err != nil {
		return err
	}
	if _, err = volley.Run(ctx, v, r.log.Header.Job, cfg, build, train); err != nil {
		return err
	}
	again, err := audit.Read(v.EventLog)
	if err != nil {
		return err
	}
	return r.sameCommits(again)
}

// sameCommits compares what two logs of a run have committed.
func (r *replayed) sameCommits(again *audit.Log) error {
	said, is := commitsOf(r.log), commitsOf(again)
	whole := r.log.Footer.StoppedBy != "interrupted"
	for i, c := range said {
		if i >= len(is) || is[i] != c {
			return fault.Newf(fault.Corrupt, "replay", r.log.Path,
				"iteration %d has other parameters than the run made again", c.iteration)
		}
	}
	if whole && (len(is) != len(said) || again.Footer.StoppedBy != r.log.Footer.StoppedBy) {
		return fault.Newf(fault.Corrupt, "replay", r.log.Path,
			"it ends after %d iterations, stopped by %q; the run made again after %d, by %q", len(said),
			r.log.Footer.StoppedBy, len(is), again.Footer.StoppedBy)
	}
	fmt.Printf("%s: made again, the digests of %d iterations equal\n", r.log.Path, len(said))
	return nil
}

// commit is the end of an iteration, as a log has it.
type commit struct {
	iteration int
	params    plan.Digest
}

func commitsOf(l *audit.Log) (all []commit) {
	add := func(c *driver.LogCommit) {
		if c != nil {
			all = append(all, commit{c.Iteration, c.Params})
		}
	}
	for _, line := range l.Lines {
		switch {
		case line.Iteration != nil:
			all = append(all, commit{line.Iteration.Iteration, line.Iteration.Params})
		case line.Evaluation != nil:
			add(line.Evaluation.Commit)
		}
	}
	return all
}
