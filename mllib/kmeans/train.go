package kmeans

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// state is everything that one iteration hands to the next.
type state struct {
	At     []float64 // centres, row-major
	Run    int       // which of the restarts
	Step   int       // iterations of this run
	Share  float64   // of all rows, that the next step is to see; 1 is all
	Best   []float64 // centres of the best run that has ended
	Least  float64   // its cost
	Rules  train.StopState
	Ending train.Ending
}

// Clustered is the outcome of k-means.
type Clustered struct {
	train.Summary
	Model *Model
	Runs  int
	param centres
}

// trainer runs one clustering.
type trainer struct {
	train.Training
	cfg   Config
	plan  Plan
	meta  *pack.Meta
	shift []float64
	st    state
	out   Clustered
}

// Train runs Lloyd's iterations and returns the best model.
func Train(ctx context.Context, s *rdd.Session, c Config, p Plan) (*Clustered, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Distance == "" {
		c.Distance = Euclidean
	}
	t := &trainer{cfg: c, plan: p}
	t.Training = train.Training{Session: s, Summary: &t.out.Summary, Ending: &t.st.Ending}
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	if c.Bounded != nil {
		if err := t.trainBounded(ctx); err != nil {
			return nil, err
		}
		return t.finish(context.WithoutCancel(ctx))
	}
	if err := train.Loop(ctx, &t.Training, &t.st, c.MaxIterations*max(1, c.Restarts), train.Rules{Tol: c.Tol,
		Target: c.Target, MaxTime: c.MaxTime, Most: c.MaxIterations}, t.iterate); err != nil {
		return nil, err
	}
	return t.finish(ctx)
}

// prepare loads the data and chooses the first centres.
func (t *trainer) prepare(ctx context.Context) error {
	var err error
	if t.meta, err = t.plan.Rows.Meta(ctx, t.Session); err != nil {
		return err
	}
	t.Begins(t.meta, "lloyd")
	if int64(t.cfg.K) > t.meta.Rows {
		return fault.Newf(fault.Usage, "kmeans", "--k", "%d centres are more than the %d rows", t.cfg.K, t.meta.Rows)
	}
	if t.cfg.Bounded != nil { // workers have the sums, what these change by, and centres
		sums := 8 * float64(t.cfg.K) * float64(t.meta.Features+1)
		if err := train.Fits("kmeans", "--k", "the sums that workers have of all clusters",
			sums*float64(3*len(t.meta.Splits)+4)); err != nil {
			return err
		}
	}
	if t.cfg.Start != nil && len(t.cfg.Start[0]) != t.meta.Features {
		return fault.Newf(fault.Usage, "kmeans", "--centers", "they have %d numbers each, rows %d", len(t.cfg.Start[0]),
			t.meta.Features)
	}
	if t.meta.Layout == pack.DenseLayout && t.cfg.Distance != Cosine {
		sample, err := t.plan.Sample.Run(ctx, t.Session)
		if err != nil {
			return err
		}
		m, err := t.Moments(ctx, t.meta, t.plan.Moments, sample, 0)
		if err != nil {
			return err
		}
		t.shift = m.Mean
	}
	t.st.Least = math.Inf(1)
	return t.restart(ctx)
}

// restart chooses the first centres of a run.
func (t *trainer) restart(ctx context.Context) error {
	first, err := t.first(ctx, num.Mix(t.cfg.Seed+uint64(t.st.Run)))
	if err != nil {
		return err
	}
	t.st.At = slices.Concat(first...)
	t.st.Step, t.st.Rules = 0, train.StopState{}
	t.beginSamples()
	return nil
}

// first returns the centres that a run begins with.
func (t *trainer) first(ctx context.Context, seed uint64) ([][]float64, error) {
	if t.cfg.Start != nil {
		return t.unit(t.cfg.Start), nil
	}
	sample, err := t.plan.Sample.Run(ctx, t.Session)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	points := make([][]float64, len(sample))
	for i, at := range rng.Perm(len(sample)) {
		points[i] = densePoint(sample[at], t.meta.Features)
	}
	points = t.unit(points)
	if t.cfg.Centres == RandomCentres {
		return t.filled(points[:min(len(points), t.cfg.K)], points), nil
	}
	candidates, _, err := t.drawn(ctx, points[:1], seed, drawFactor*t.cfg.K, 0)
	if err != nil {
		return nil, err
	}
	candidates = append(candidates, points[0])
	most := t.seedRows()
	stand, weight, err := t.drawn(ctx, candidates, num.Mix(seed), most/2, most/2)
	if err != nil || len(stand) == 0 {
		return t.filled(candidates[len(candidates)-1:], points), err
	}
	swaps := int(min(float64(t.cfg.K)*float64(t.meta.Rows)/float64(4*len(stand)), seedSwaps))
	chosen := newSeeding(stand, weight, t.cfg.K, seed).centres(max(swaps, 2*t.cfg.K))
	return t.unit(t.filled(chosen, points)), nil
}

// How many rows centres are chosen on: a number for each centre, in no more memory than
// that; and how many swaps are tried at the most.
const (
	seedRowsEach = 40
	seedBytes    = 128 << 20
	seedSwaps    = 20_000
)

// seedRows returns how many rows centres are chosen on.
func (t *trainer) seedRows() int {
	return max(4*t.cfg.K, min(max(2000, seedRowsEach*t.cfg.K), seedBytes/(8*max(1, t.meta.Features))))
}

// drawn draws about far rows by their distance from candidates, and about even ones
// by their weight alone; all rows, where there are hardly more.
func (t *trainer) drawn(ctx context.Context, candidates [][]float64, seed uint64,
	far, even int) (rows [][]float64, weight []float64, err error) {
	p := t.param(slices.Concat(candidates...))
	all, err := t.plan.Whole.Run(ctx, t.Session, p)
	if err != nil {
		return nil, nil, err
	}
	if t.cfg.Distance == Cosine {
		all.Cost *= 2 // chances go by squared distances
	}
	draw := drawParam{centres: p, Seed: seed}
	if all.Cost > 0 {
		draw.Chance = float64(far) / all.Cost
	}
	if draw.Even = float64(even) / num.Sum(all.N); even > 0 && t.meta.Rows <= int64(far+even) {
		draw.Even = math.MaxFloat64
	}
	splits, err := t.plan.Draw.Run(ctx, t.Session, draw)
	for _, d := range splits {
		rows, weight = append(rows, d.Rows...), append(weight, d.Weight...)
	}
	return rows, weight, err
}

// filled adds points to centres until there are k, repeating them where there are
// no others: such centres stay without rows.
func (t *trainer) filled(centres, points [][]float64) [][]float64 {
	out := slices.Clone(centres)
	for i := 0; len(out) < t.cfg.K; i++ {
		out = append(out, points[i%len(points)])
	}
	return out
}

// unit brings points to length 1, under cosine.
func (t *trainer) unit(points [][]float64) [][]float64 {
	if t.cfg.Distance != Cosine {
		return points
	}
	out := make([][]float64, len(points))
	for i, p := range points {
		out[i] = slices.Clone(p)
		num.Normalize(out[i])
	}
	return out
}

// densePoint returns the features of a row, d of them.
func densePoint(p rdd.Point, d int) []float64 {
	if p.Indices == nil {
		return p.Values
	}
	out := make([]float64, d)
	for k, j := range p.Indices {
		out[j] = p.Values[k]
	}
	return out
}

func (t *trainer) param(at []float64) centres {
	return centres{K: len(at) / max(1, t.meta.Features), D: t.meta.Features, At: at, Shift: t.shift}
}

// move puts each centre where its rows are in the mean; one without rows, or, where
// steps are cut, with less than a row's weight, stays where it is.
func (t *trainer) move(at []float64, c clusters) []float64 {
	out, d := slices.Clone(at), t.meta.Features
	info := t.Session.LastInfo()
	for k, n := range c.N {
		if n == 0 || info.Merged < info.Rows && n < t.Each {
			continue
		}
		row := out[k*d : (k+1)*d]
		for j := range row {
			row[j] = c.Sum[k*d+j] / n
		}
		if t.cfg.Distance == Cosine {
			num.Normalize(row)
		}
	}
	return out
}

// iterate takes one of Lloyd's steps.
func (t *trainer) iterate(ctx context.Context, it *rdd.Iteration) error {
	c, err := t.step(ctx)
	if err != nil {
		return err
	}
	info := t.Session.LastInfo()
	t.out.Iterations = it.Number
	t.st.Step++
	weight := float64(t.Each * float64(info.Rows))
	cost := c.Cost / info.Weight * weight
	it.Report("objective", cost)
	exact := info.Merged == info.Rows
	if !num.Finite(cost) {
		return fault.Newf(fault.BadInput, "kmeans", "the data", "its squared distances are not finite")
	}
	o := t.Observed(t.st.Step, cost, float64(weight*t.StandardError(c.Cost, c.CostSq)))
	v, err := t.check(ctx, it, o)
	switch {
	case err != nil:
		return err
	case v.Stop != "" && exact:
		return t.ended(ctx, it, v.Stop, cost)
	case v.Stop != "":
		return t.ended(ctx, it, v.Stop, math.NaN())
	}
	before := t.st.At
	if t.st.At = t.move(before, c); !exact {
		t.grow(before, c, info)
	}
	if t.st.Step == t.cfg.MaxIterations {
		return t.ended(ctx, it, "max-iterations", math.NaN())
	}
	return nil
}

// check applies the stop rules. Uncut steps never raise the cost, so that one
// that lowers it little ends the run.
func (t *trainer) check(ctx context.Context, it *rdd.Iteration, o train.Observation) (train.Verdict, error) {
	stop := train.Stopper{Rule: train.ByObjective, Tol: t.cfg.Tol, Target: t.cfg.Target, Deadline: t.cfg.MaxTime,
		State: &t.st.Rules}
	if o.Exact {
		last := t.st.Rules.Last
		stop.Tol = 0
		v := stop.Check(o)
		if t.st.Rules.Last = o.Objective; v.Stop == "" && (last > 0 || o.Objective == 0) && t.cfg.Tol > 0 &&
			last-o.Objective <= float64(t.cfg.Tol*last) {
			v.Stop = "tolerance"
		}
		return v, nil
	}
	v := stop.Check(o)
	if t.samples() && v.Stop != "max-time" { // all rows decide
		return train.Verdict{}, nil
	}
	if v.Look {
		return t.look(ctx, it, &stop, o)
	}
	return v, nil
}

// look runs an uncut pass where the estimates say that the run may be done: it is,
// where the cost is hardly below the least of those seen before. Cut steps move
// centres by what they saw, about the best ones.
func (t *trainer) look(ctx context.Context, it *rdd.Iteration, stop *train.Stopper,
	o train.Observation) (train.Verdict, error) {
	least, first := t.st.Rules.Looked, t.st.Rules.LookedAt == 0
	_, cost, err := t.whole(ctx, it.Number)
	if err != nil {
		return train.Verdict{}, err
	}
	o.Objective, o.Exact = cost, true
	it.Report("full_objective", cost)
	v := stop.Looked(o)
	if v.Stop == "" && !first && t.cfg.Tol > 0 && cost >= least-float64(t.cfg.Tol*least) {
		v.Stop = "tolerance"
	}
	if !first {
		t.st.Rules.Looked = min(least, cost)
	}
	return v, nil
}

// whole returns an uncut pass at the present centres.
func (t *trainer) whole(ctx context.Context, iteration int) (clusters, float64, error) {
	began := t.Session.Now()
	c, err := t.plan.Whole.Run(ctx, t.Session, t.param(t.st.At))
	if err != nil {
		return c, 0, err
	}
	t.Session.Evaluated(rdd.Evaluation{Iteration: iteration, Objective: c.Cost, Took: t.Session.Now() - began})
	return c, c.Cost, nil
}

// ended closes a run: after an uncut step of Lloyd's, where steps were cut, its
// cost is held against that of the best, and another run begins, if there is to
// be one. The cost is NaN where it is not known.
func (t *trainer) ended(ctx context.Context, it *rdd.Iteration, why string, cost float64) error {
	if t.cfg.Cut && why != "target" && math.IsNaN(cost) {
		c, _, err := t.whole(ctx, it.Number)
		if err != nil {
			return err
		}
		t.st.At, cost = t.move(t.st.At, c), math.NaN()
	}
	if math.IsNaN(cost) {
		var err error
		if _, cost, err = t.whole(ctx, it.Number); err != nil {
			return err
		}
	}
	if cost < t.st.Least {
		t.st.Least, t.st.Best = cost, t.st.At
	}
	if t.st.Run++; t.st.Run >= max(1, t.cfg.Restarts) || why == "max-time" || why == "target" {
		t.End(it, why)
		return nil
	}
	return t.restart(ctx)
}

// finish makes the model of the best centres.
func (t *trainer) finish(ctx context.Context) (*Clustered, error) {
	why := t.WhyEnded()
	if len(t.st.Best) == 0 { // no run has ended
		t.st.Best = t.st.At
		if why != "interrupted" {
			_, cost, err := t.whole(ctx, t.out.Iterations)
			if err != nil {
				return nil, err
			}
			t.st.Least = cost
		}
	}
	t.out.Objective, t.out.Runs, t.out.param = t.st.Least, t.st.Run, t.param(t.st.Best)
	t.out.Model = &Model{K: t.cfg.K, Features: t.meta.Features, Distance: t.cfg.Distance, IndexBase: t.meta.IndexBase,
		Names: t.meta.Names, Label: t.meta.LabelName, Weight: t.meta.WeightName, Prepared: t.meta.Prepared,
		Centres: t.st.Best}
	if t.cfg.Input.NoLabel {
		t.out.Model.Label = ""
	}
	if t.cfg.Restarts > 1 {
		t.out.SolverWhy = fmt.Sprintf("the best of %d runs", t.out.Runs)
	}
	return &t.out, nil
}
