package mllib

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// Summary is what every training run comes to beside its model.
type Summary struct {
	Objective  float64 // on all data, at the model
	Gap        float64 // by how much it may lie above the least, at most; NaN where that is not known
	GapBy      string  // what bounds it: ByDuality, ByCurvature or ByGradient
	Converged  bool    // the gap is within the tolerance, relative to the objective where that is above 1; without a gap: the tolerance ended the run
	Iterations int
	StoppedBy  string
	Solver     solver.Name // that was used
	SolverWhy  string      // it was chosen, where the user has not
	Chosen     []string    // other defaults that the data had a say in, each with its reason
	MeanShare  float64
	MeanNEff   float64
	Rows       int64
	Features   int
	Processed  int64   // rows folded and merged in training steps
	Drift      float64 // of sdca: how far w had drifted from what the dual variables stand for, relatively
	Malformed  int64   // records of the input that were left out, as was asked for
	Missing    int64   // rows that were left out as they lack a number, as was asked for
	tolerance  float64
}

// training is what every training run has beside its own.
type training struct {
	s     *rdd.Session
	sum   *Summary
	each  float64 // what a row weighs in the mean
	steps float64 // of this run
	began time.Duration
	spent time.Duration // on evaluation before the loop began
}

// begins notes what is known of the training data.
func (t *training) begins(meta *storage.PackMeta, name solver.Name) {
	t.each = meta.Weight() / float64(meta.Rows)
	t.sum.Rows, t.sum.Features, t.sum.Solver = meta.Rows, meta.Features, name
	t.sum.Malformed, t.sum.Missing, t.sum.Gap = meta.Malformed, meta.Missing, math.NaN()
}

// loop runs the iterations: a step that has begun is finished, whatever ends.
func loop[S any](ctx context.Context, t *training, state *S, n int, iterate func(context.Context, *rdd.Iteration) error) error {
	t.began, t.spent = t.s.Now(), t.s.EvaluationTime()
	work := context.WithoutCancel(ctx)
	for it := range rdd.Iterations(ctx, t.s, state, n) {
		if err := iterate(work, it); err != nil {
			return err
		}
	}
	return t.s.Err()
}

// moments are those of a pack's features, by one pass; those of dense data are taken
// about a row of the sample.
func (t *training) moments(ctx context.Context, meta *pack.Meta, step rdd.Step[momentsParam, gradient], sample []rdd.Point, positive float64) (moments, error) {
	shift := near(meta, sample)
	g, err := step.Run(ctx, t.s, momentsParam{meta.Features, positive, shift})
	if err == nil {
		err = squarable(meta, g.Sum, g.Coef)
	}
	if err != nil {
		return moments{}, err
	}
	return momentsOf(t.s.LastInfo().Weight, g, shift), nil
}

// observed takes a step in, and says what the stop rules look at: its objective, with
// the standard error of one from less than all rows.
func (t *training) observed(iteration int, objective, stderr float64) observation {
	info := t.s.LastInfo()
	t.sum.Processed += info.Merged
	t.steps++
	t.sum.MeanShare += (info.Share - t.sum.MeanShare) / t.steps
	t.sum.MeanNEff += (info.NEff - t.sum.MeanNEff) / t.steps
	return observation{iteration: iteration, objective: objective, exact: info.Merged == info.Rows, stderr: stderr,
		now: t.s.Now() - t.began - (t.s.EvaluationTime() - t.spent)}
}

// standardError is that of the mean loss of a cut step (SEMANTICS section 4): of losses
// times their rows' weights.
func (t *training) standardError(loss, squares float64) float64 {
	info := t.s.LastInfo()
	if info.Merged == info.Rows || info.NEff <= 1 {
		return 0
	}
	mean := loss / info.Weight
	variance := max(0, squares/float64(info.Weight*t.each)-float64(mean*mean))
	return math.Sqrt(variance / info.NEff * (1 - info.Share))
}

// judge applies the stop rules; where they want the objective on all data, evaluate
// finds it. It returns why to stop, if so, and what is known by then.
func (t *training) judge(ctx context.Context, it *rdd.Iteration, stop *stopper, o observation,
	evaluate func(context.Context, int) (float64, error)) (why string, known observation, err error) {
	v := stop.check(o)
	if v.look {
		if o.objective, err = evaluate(ctx, it.Number); err != nil {
			return "", o, err
		}
		o.exact = true
		it.Report("full_objective", o.objective)
		v = stop.looked(o)
	}
	return v.stop, o, nil
}

// Stopped returns why the run has ended.
func (s *Summary) Stopped() string { return s.StoppedBy }

// whyEnded says why a run has ended: what stopped it, its limit, or the user.
func (t *training) whyEnded() string {
	if t.sum.StoppedBy == "" {
		t.sum.StoppedBy = "max-iterations"
	}
	if t.s.Interrupted() {
		t.sum.StoppedBy = "interrupted"
	}
	t.sum.Converged = t.sum.StoppedBy == "tolerance"
	return t.sum.StoppedBy
}

// squarable refuses columns, and labels, that are too large to compute with.
func squarable(meta *storage.PackMeta, sums []float64, labels float64) error {
	for i, v := range sums {
		if num.Finite(v) {
			continue
		}
		name := strconv.Itoa(i % meta.Features)
		if len(meta.Names) == meta.Features {
			name = strconv.Quote(meta.Names[i%meta.Features])
		}
		return fault.Newf(fault.BadInput, "train", "the data", "column %s has numbers whose squares, summed, are beyond 1.8e308", name).
			WithHint("scale it, or leave it out")
	}
	return summable(labels)
}

// mostLabels is what labels may come to together for their squares to be numbers.
const mostLabels = 1e150

// summable refuses labels that are too large to compute with.
func summable(labels float64) error {
	if math.Abs(labels) <= mostLabels {
		return nil
	}
	return fault.Newf(fault.BadInput, "train", "the data", "its labels come to %g together, and their squares to more than a number holds", labels).
		WithHint("scale the labels")
}

// chosenLabel notes which column the label is taken from, where nobody has said.
func (t *training) chosenLabel(in rdd.Input, meta *pack.Meta) {
	if name := meta.LabelName; in.Label == "" && !in.NoLabel && name != "" && name != "label" {
		t.sum.Chosen = append(t.sum.Chosen, fmt.Sprintf("label: column %q, the first, as none is called label; --label names another", name))
	}
}
