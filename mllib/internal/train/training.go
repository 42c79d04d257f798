package train

import (
	"context"
	"fmt"
	"math"

	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// Training is what every training run has beside its own.
type Training struct {
	Session *rdd.Session
	Summary *Summary
	Ending  *Ending // within the loop's state
	Each    float64 // what a row weighs in the mean
	steps   float64 // of this run
	rules   Rules   // that end it
}

// Begins notes what is known of the training data.
func (t *Training) Begins(meta *pack.Meta, name solver.Name) {
	t.Each = meta.Weight() / float64(meta.Rows)
	t.Summary.Rows, t.Summary.Features, t.Summary.Solver = meta.Rows, meta.Features, name
	t.Summary.Malformed, t.Summary.Missing, t.Summary.Gap = meta.Malformed, meta.Missing, math.NaN()
}

// Loop runs at most n iterations, which the rules may end sooner: a step that has begun is finished, whatever ends.
func Loop[S any](ctx context.Context, t *Training, state *S, n int, rules Rules,
	iterate func(context.Context, *rdd.Iteration) error) error {
	work := context.WithoutCancel(ctx)
	t.Under(rules)
	t.Session.ReopenIf(t.Reopen)
	for it := range rdd.Iterations(ctx, t.Session, state, n) {
		if err := iterate(work, it); err != nil {
			return err
		}
		t.Ending.Iterations = t.Summary.Iterations
	}
	if err := t.Session.Err(); err != nil {
		return err
	}
	return t.SameRules()
}

// Moments returns the moments of a pack's features, by one pass; those of dense
// data are taken about a row of the sample.
func (t *Training) Moments(ctx context.Context, meta *pack.Meta, step rdd.Step[fold.MomentsParam, fold.Gradient],
	sample []rdd.Point, positive float64) (fold.Moments, error) {
	shift := fold.Near(meta, sample)
	g, err := step.Run(ctx, t.Session, fold.MomentsParam{Features: meta.Features, Positive: positive, Shift: shift})
	if err == nil {
		err = Squarable(meta, g.Sum, g.Coef)
	}
	if err != nil {
		return fold.Moments{}, err
	}
	return fold.MomentsOf(t.Session.LastInfo().Weight, g, shift), nil
}

// Observed takes a step, and returns what the stop rules use: its objective, with the
// standard error of one from less than all rows.
func (t *Training) Observed(iteration int, objective, stderr float64) Observation {
	info := t.Session.LastInfo()
	t.Summary.Processed += info.Merged
	t.steps++
	t.Summary.MeanShare += (info.Share - t.Summary.MeanShare) / t.steps
	t.Summary.MeanNEff += (info.NEff - t.Summary.MeanNEff) / t.steps
	return Observation{Iteration: iteration, Objective: objective, Exact: info.Merged == info.Rows, stderr: stderr,
		Now: t.Session.LoopTime()}
}

// StandardError returns the standard error of the mean loss of a cut step (SEMANTICS
// section 4): of losses times their rows' weights.
func (t *Training) StandardError(loss, squares float64) float64 {
	info := t.Session.LastInfo()
	if info.Merged == info.Rows || info.NEff <= 1 {
		return 0
	}
	mean := loss / info.Weight
	variance := max(0, squares/float64(info.Weight*t.Each)-float64(mean*mean))
	return math.Sqrt(variance / info.NEff * (1 - info.Share))
}

// JudgeSample takes the objective of a sample, and ends the loop by the one rule that a sample can be held against: the
// limit of time.
func (t *Training) JudgeSample(it *rdd.Iteration, job string, stop *Stopper, o Observation) (over bool, err error) {
	if err := FiniteAtFirst(job, o.Objective); it.Number == 1 && err != nil {
		return true, err
	}
	it.Report("objective", o.Objective)
	t.Summary.Iterations = it.Number
	if over = stop.Check(o).Stop == "max-time"; over {
		t.End(it, "max-time")
	}
	return over, nil
}

// Judge applies the stop rules; where they want the objective on all data, evaluate
// finds it. It returns why to stop, if so, and what is known by then.
func (t *Training) Judge(ctx context.Context, it *rdd.Iteration, stop *Stopper, o Observation,
	evaluate func(context.Context, int) (float64, error)) (why string, known Observation, err error) {
	v := stop.Check(o)
	if v.Look {
		if o.Objective, err = evaluate(ctx, it.Number); err != nil {
			return "", o, err
		}
		o.Exact = true
		it.Report("full_objective", o.Objective)
		v = stop.Looked(o)
	}
	return v.Stop, o, nil
}

// ChosenLabel notes which column the label is taken from, where no option names it.
func (t *Training) ChosenLabel(in rdd.Input, meta *pack.Meta) {
	if name := meta.LabelName; in.Label == "" && !in.NoLabel && name != "" && name != "label" {
		t.Summary.Chosen = append(t.Summary.Chosen,
			fmt.Sprintf("label: column %q, the first, as none is called label; --label names another", name))
	}
}
