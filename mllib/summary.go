package mllib

import (
	"context"
	"math"
	"time"

	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage"
)

// Summary is what every training run comes to beside its model.
type Summary struct {
	Objective  float64 // on all data, at the model
	Iterations int
	StoppedBy  string
	Solver     Solver // that was used
	SolverWhy  string // it was chosen, where the user has not
	MeanShare  float64
	MeanNEff   float64
	Rows       int64
	Features   int
	Processed  int64   // rows folded and merged in training steps
	Drift      float64 // of sdca: how far w had drifted from what the dual variables stand for, relatively
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
func (t *training) begins(meta *storage.PackMeta, solver Solver) {
	t.each = meta.Weight() / float64(meta.Rows)
	t.sum.Rows, t.sum.Features, t.sum.Solver = meta.Rows, meta.Features, solver
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
func (t *training) moments(ctx context.Context, meta *storage.PackMeta, step rdd.Step[momentsParam, gradient], sample []rdd.Point, positive float64) (moments, error) {
	shift := near(meta, sample)
	g, err := step.Run(ctx, t.s, momentsParam{meta.Features, positive, shift})
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

// whyEnded says why a run has ended: what stopped it, its limit, or the user.
func (t *training) whyEnded(ctx context.Context) string {
	if t.sum.StoppedBy == "" {
		t.sum.StoppedBy = "max-iterations"
	}
	if ctx.Err() != nil {
		t.sum.StoppedBy = "interrupted"
	}
	return t.sum.StoppedBy
}
