package workers

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/tables"
)

// Job is what a run needs of the one who trains. Passes are over all rows, at the run's Y.
type Job interface {
	// Begin makes a pass where workers are to begin, and returns the objective. They take steps of a size, and add a
	// part of the share of their moves that their rows have.
	Begin(ctx context.Context, step, part float64) (objective float64, err error)
	// Clocks runs workers for a number of clocks.
	Clocks(ctx context.Context, clocks int, kept tables.Kept) iter.Seq2[*tables.Tick, error]
	// Evaluate makes a pass, and returns the objective, as an evaluation.
	Evaluate(ctx context.Context, iteration int) (float64, error)
}

// Run is a training on tables. It has a run of workers, or several: one whose steps lead nowhere is followed by one
// that begins at the best point, with smaller steps.
type Run struct {
	*train.Training
	Job
	Name  string      // of the job
	Rules train.Rules // that end it
	Stop  *train.Stopper
	By    *parameters.Bounded
	Moves parameters.Vector // of the variables, from where workers began
	Y     []float64         // where passes are made; first where the run begins, last the best point
	Step  float64           // the first
	Rows  int64             // of a clock
	Limit int               // of clocks
	at    state
	begin []float64 // where the workers in hand began
}

// state is what a training hands from tick to tick, beside tables and workers.
type state struct {
	Ticks      int // of the run of workers in hand
	Over       bool
	Iterations int
	Start      []float64 // where the next workers begin, and their steps
	Step, Part float64
	Best, Last []float64 // variables: of the lowest objective, and at the tick before
	Least      float64   // objective at the best
	First      float64   // objective where the run began
	Idle       int       // ticks since the best
	Halves     int       // how often steps were made smaller
	Took       time.Duration
	Spent      parameters.Spent
	Stops      []float64 // what the stop rules remember
	Ending     train.Ending
}

// When a run of workers leads nowhere: a number of ticks in a row without a lower objective, fewer where it has grown
// by this share of what had been gained; and how often steps may be made smaller.
const (
	mostIdle   = 6
	fewIdle    = 2
	grownShare = 0.05
	mostHalves = 60
	leastPart  = 1.0 / 16
)

// Train runs workers until the run ends, and leaves it at the best point.
func (r *Run) Train(ctx context.Context) (err error) {
	r.at = state{Start: slices.Clone(r.Y), Step: r.Step, Part: 1, Last: slices.Clone(r.Y), Least: math.Inf(1)}
	r.Moves.Resize(len(r.Y))
	r.Under(r.Rules)
	r.Summary.MeanShare = min(1, float64(r.Rows)/float64(r.Summary.Rows))
	r.Summary.MeanNEff = float64(r.Summary.MeanShare * float64(r.Summary.Rows))
	for again := true; again; {
		if again, err = r.run(ctx); err != nil {
			return err
		}
	}
	r.Summary.Iterations = r.at.Iterations
	copy(r.Y, r.at.Best)
	return r.SameRules()
}

// run runs workers from where the run before has come to; again reports whether another is to follow.
func (r *Run) run(ctx context.Context) (again bool, err error) {
	work := context.WithoutCancel(ctx)
	if err := r.begins(work); err != nil {
		return false, err
	}
	left, took, first := r.Limit-r.at.Iterations, time.Duration(0), true
	var before parameters.Spent
	r.Session.ReopenIf(r.reopens)
	for tick, err := range r.Clocks(ctx, left, tables.Keep(&r.at)) {
		if err != nil {
			return false, r.ended(ctx, err)
		}
		if r.recall(); first {
			first, before = false, r.at.Spent
		}
		r.at.Spent = before.With(tick)
		r.Summary.Waited, r.Summary.Helped = r.at.Spent.WaitedShare(), r.at.Spent.HelpedShare()
		if tick.Clock <= r.at.Ticks { // it is that of a job which goes on, and had been looked at
			continue
		}
		r.at.Took += tick.Took - took
		took = tick.Took
		r.at.Ticks++
		r.at.Iterations++
		r.Summary.Processed += r.Rows
		if err := r.look(work, tick); err != nil {
			return false, err
		}
		r.at.Stops, r.at.Ending = r.Stop.State.Floats(), *r.Ending
		if r.at.Over {
			tick.Stop()
		}
	}
	return r.at.Over && r.Ending.StoppedBy == "" && r.at.Iterations < r.Limit, nil
}

// reopens has a run of workers go on that its limit of time had ended, where there is a longer one now, or none.
func (r *Run) reopens() bool {
	if r.recall(); !r.Reopen() {
		return false
	}
	r.at.Over, r.at.Ending = false, *r.Ending
	return true
}

// recall takes up what was kept at the tick before, by another process where the job goes on.
func (r *Run) recall() {
	if len(r.at.Stops) > 0 {
		_ = r.Stop.State.SetFloats(r.at.Stops) // it was laid out by Floats
		*r.Ending = r.at.Ending
	}
}

// ended takes the end of workers: an interruption is none of an error.
func (r *Run) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		r.Ends("interrupted")
		return nil
	}
	return err
}

// begins makes the pass where workers begin.
func (r *Run) begins(ctx context.Context) error {
	r.at.Ticks, r.at.Over = 0, false
	r.begin = slices.Clone(r.at.Start)
	copy(r.Y, r.begin)
	began := r.Session.Now()
	f, err := r.Begin(ctx, r.at.Step, r.at.Part)
	if err != nil {
		return err
	}
	r.at.Took += r.Session.Now() - began
	r.Summary.Processed += r.Summary.Rows
	if r.at.Best == nil {
		r.at.First = f
	}
	if f < r.at.Least {
		r.notes(f)
	}
	return train.FiniteAtFirst(r.Name, r.at.First)
}

// notes takes the point in hand for the best.
func (r *Run) notes(f float64) {
	r.at.Best, r.at.Least, r.at.Idle = append(r.at.Best[:0], r.Y...), f, 0
}

// look finds the objective at a tick, by a pass over all rows at what the tables are after exactly its clocks, and
// whether that ends the run, or this run of workers.
func (r *Run) look(ctx context.Context, tick *tables.Tick) (err error) {
	copy(r.Y, r.begin)
	r.Moves.AddAt(tick, r.Y)
	f := math.Inf(1)
	if !slices.ContainsFunc(r.Y, func(v float64) bool { return !num.Finite(v) }) {
		if f, err = r.Evaluate(ctx, r.at.Iterations); err != nil {
			return err
		}
		tick.Report("objective", f)
	}
	if r.at.Idle++; f < r.at.Least {
		r.notes(f)
	}
	o := train.Observation{Iteration: r.at.Iterations, Objective: f, Exact: true, Now: r.at.Took, HasMoved: true,
		Moved: num.Distance(r.at.Last, r.Y), Norm: math.Sqrt(kernel.Dot(r.Y, r.Y))}
	copy(r.at.Last, r.Y)
	if why := r.Stop.Check(o).Stop; why != "" {
		r.Ends(why)
		r.at.Over = true
		return nil
	}
	if r.at.Over = r.astray(f); r.at.Over {
		return r.smaller(f, tick)
	}
	return nil
}

// astray reports whether workers lead nowhere, by the objective at a tick.
func (r *Run) astray(f float64) bool {
	above := f - r.at.Least
	switch {
	case above <= float64(r.Rules.Tol*max(1, math.Abs(r.at.Least))):
		return false
	case !num.Finite(f) || f > r.at.First || float64(r.at.Idle) >= mostIdle/min(1, r.By.Passes):
		return true
	}
	return r.at.Idle >= fewIdle && above > float64(grownShare*(r.at.First-r.at.Least))
}

// smaller has the next workers begin at the best point, and each add a smaller part of its moves: it may be what they
// do not see of each other that leads astray. Where the objective is above that of the beginning, or the part is small
// already, steps may be too long in themselves.
func (r *Run) smaller(f float64, tick *tables.Tick) error {
	if r.at.Halves++; r.at.Halves > mostHalves {
		return fault.Newf(fault.BadInput, "train", r.Name, "the objective grows, however small the steps of workers").
			WithHint("scale columns: --scale standard, or --standardize; or give a smaller --step-size")
	}
	above := !(f < r.at.First)
	if above || r.at.Part <= leastPart {
		r.at.Step /= 2
		tick.Report("step", r.at.Step)
	}
	if r.at.Part > leastPart {
		r.at.Part /= 2
		tick.Report("part", r.at.Part)
	}
	r.at.Start = slices.Clone(r.at.Best)
	r.at.Idle = 0
	return nil
}
