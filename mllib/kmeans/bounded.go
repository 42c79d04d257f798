package kmeans

import (
	"context"
	"math"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// boundedPlan clusters on tables: a worker moves its rows from cluster to cluster, and sees of what others move what
// the model of the table lets it. Under bsp a clock is one of Lloyd's steps.
type boundedPlan struct {
	assigner *assigner
	sums     parameters.Vector // of the rows of each cluster, and then how much these weigh
	eager    bool              // updates leave, and are seen, within clocks
	workers  tables.Work[boundedParam, rdd.Point, assigned]
}

// boundedParam is where workers begin, and how they go on.
type boundedParam struct {
	K, D   int
	At     []float64 // centres, row-major
	Shift  []float64 // as centres have it
	Least  float64   // what a cluster weighs at least
	Passes float64   // over a worker's rows, in a clock
	Batch  int       // rows after which a worker looks at the centres again
}

// assigned is what a worker keeps of its rows: the cluster of each, and one more; and the position of the next.
type assigned struct {
	To   []int32
	Next int64
}

// batchRows is how many rows a worker assigns at a time, where the user does not say.
const batchRows = 512

// declareBounded adds tables and workers to a plan.
func declareBounded(g *rdd.Graph, rows rdd.Packed[rdd.Point], a *assigner, b *parameters.Bounded) *boundedPlan {
	p := &boundedPlan{assigner: a, sums: parameters.New(g, "sums", b.Model), eager: b.Model.Eager}
	if b.Help == nil {
		p.workers = tables.Worker(rows, p.clock, p.sums.Table)
		return p
	}
	p.workers = tables.HelpedWorker(rows, p.clock, tables.Helping[boundedParam, rdd.Point, assigned, given, made]{
		By: *b.Help, Give: p.give, Do: p.help, Take: p.take}, p.sums.Table)
	return p
}

// mover is a worker's memory from clock to clock.
type mover struct {
	seen    []float64 // sums, and weights
	change  []float64 // of them
	centres centres
	hand    *mover // what it does for others with
}

// clock assigns a worker's rows to clusters.
func (p *boundedPlan) clock(c *tables.Clock[boundedParam, rdd.Point, assigned]) error {
	m := moverOf(c)
	if c.State.To == nil {
		c.State.To = make([]int32, c.Size())
	}
	sums := parameters.In(p.sums, c)
	m.see(&c.Param, p.assigner.cosine, sums)
	parameters.Visit(c, &c.State.Next, c.Param.Passes, c.Param.Batch, func(at int64, b *rdd.Batch) {
		p.assign(m, c.State.To[at:], b)
		if p.eager {
			m.tell(sums)
			m.see(&c.Param, p.assigner.cosine, sums)
		}
	})
	m.tell(sums)
	return nil
}

// moverOf returns the worker's memory.
func moverOf(c *tables.Clock[boundedParam, rdd.Point, assigned]) *mover {
	return c.Notes(func() any {
		n := c.Param.K * (c.Param.D + 1)
		return &mover{seen: make([]float64, n), change: make([]float64, n)}
	}).(*mover)
}

// tell adds to the table what has moved.
func (m *mover) tell(sums parameters.Rows) {
	sums.Inc(m.change)
	clear(m.change)
}

// see takes up the centres.
func (m *mover) see(p *boundedParam, cosine bool, sums parameters.Rows) {
	clear(m.seen)
	sums.AddTo(m.seen)
	m.centres = centres{K: p.K, D: p.D, At: p.centres(m.seen, cosine), Shift: p.Shift}
}

// centres returns where clusters of some sums have their centres; those without rows have them where they began.
func (p *boundedParam) centres(sums []float64, cosine bool) []float64 {
	out := make([]float64, p.K*p.D)
	for k := range p.K {
		row, n := out[k*p.D:(k+1)*p.D], sums[p.K*p.D+k]
		if !(n > p.Least) {
			copy(row, p.At[k*p.D:])
			continue
		}
		for j := range row {
			row[j] = sums[k*p.D+j] / n
		}
		if cosine {
			num.Normalize(row)
		}
	}
	return out
}

// assign moves rows to the clusters whose centres are nearest.
func (p *boundedPlan) assign(m *mover, to []int32, b *rdd.Batch) {
	w := p.assigner.work(len(b.Rows))
	defer p.assigner.pool.Put(w)
	p.assigner.assign(w, &m.centres, b)
	for i, at := range w.at {
		before := to[i] - 1
		if before == at {
			continue
		}
		weight := b.WeightOf(b.Rows[i])
		times := weight
		if p.assigner.cosine {
			times = float64(w.scale[i] * weight)
		}
		if to[i] = at + 1; before >= 0 {
			m.add(int(before), -times, -weight, b, int(b.Rows[i]))
		}
		m.add(int(at), times, weight, b, int(b.Rows[i]))
	}
}

// add adds a row, times a factor, to what a cluster changes by, and to its weight.
func (m *mover) add(k int, times, weight float64, b *rdd.Batch, row int) {
	d := m.centres.D
	if times != 0 {
		addTimes(m.change[k*d:(k+1)*d], times, b, row)
	}
	m.change[m.centres.K*d+k] += weight
}

// boundedState is what a clustering hands from tick to tick, beside tables and workers.
type boundedState struct {
	Ticks, Iterations int // of the run of workers in hand, and of all
	Over              bool
	Least             float64 // cost in the run in hand
	Still             int     // ticks since
	Took              time.Duration
	Spent             parameters.Spent
	Best              []float64 // centres, of all runs
	BestCost          float64
	Ending            train.Ending
}

// trainBounded clusters by workers on tables, and keeps the best of the runs.
func (t *trainer) trainBounded(ctx context.Context) error {
	work := context.WithoutCancel(ctx)
	t.Under(train.Rules{Tol: t.cfg.Tol, Target: t.cfg.Target, MaxTime: t.cfg.MaxTime, Most: t.cfg.MaxIterations})
	t.plan.bounded.sums.Resize(t.cfg.K * (t.meta.Features + 1))
	t.out.MeanShare = min(1, float64(t.cfg.Bounded.Rows(t.meta))/float64(t.meta.Rows))
	t.out.MeanNEff = float64(t.out.MeanShare * float64(t.meta.Rows))
	at := boundedState{BestCost: math.Inf(1)}
	for t.st.Run = 0; t.st.Run < max(1, t.cfg.Restarts); t.st.Run++ {
		if t.st.Run > 0 {
			if err := t.restart(work); err != nil {
				return err
			}
		}
		if err := t.runBounded(ctx, &at); err != nil {
			return err
		}
		if why := t.st.Ending.StoppedBy; why == "target" || why == "max-time" || why == "interrupted" {
			t.st.Run++
			break
		}
	}
	t.st.Best, t.st.Least = at.Best, at.BestCost
	if t.st.Ending.StoppedBy == "tolerance" {
		if err := t.settle(work, &at); err != nil {
			return err
		}
	}
	t.out.Iterations = at.Iterations
	return t.SameRules()
}

// settle takes Lloyd's steps from the best centres until one lowers the cost by no more than the tolerance: workers
// that stand still for what they do not see of each other need not be where all rows would have them.
func (t *trainer) settle(ctx context.Context, at *boundedState) error {
	for last := math.Inf(1); at.Iterations < t.cfg.MaxIterations*max(1, t.cfg.Restarts); at.Iterations++ {
		c, err := t.plan.Step.Uncut().Run(ctx, t.Session, t.param(t.st.Best))
		if err != nil {
			return err
		}
		t.out.Processed += t.meta.Rows
		if t.st.Least = c.Cost; !math.IsInf(last, 1) && last-c.Cost <= float64(t.cfg.Tol*last) {
			return nil
		}
		last, t.st.Best = c.Cost, t.move(t.st.Best, c)
	}
	t.Ends("max-iterations")
	_, cost, err := t.whole(ctx, at.Iterations)
	t.st.Least = cost
	return err
}

// mostStill is how many passes without a lower cost end a run of workers: where these see old sums one alone says
// little.
const mostStill = 5

// runBounded lets workers cluster from the centres in hand.
func (t *trainer) runBounded(ctx context.Context, at *boundedState) error {
	p := boundedParam{K: t.cfg.K, D: t.meta.Features, At: t.st.At, Shift: t.shift, Passes: t.cfg.Bounded.Passes,
		Least: float64(1e-12 * t.meta.Weight()), Batch: t.cfg.Bounded.Batch}
	if p.Batch == 0 {
		p.Batch = t.cfg.Bounded.Items(t.meta, batchRows)
	}
	at.Ticks, at.Over, at.Least, at.Still = 0, false, math.Inf(1), 0
	took, first := time.Duration(0), true
	var before parameters.Spent
	for tick, err := range t.plan.bounded.workers.Clocks(ctx, t.Session, p, t.cfg.MaxIterations, 1, tables.Keep(at)) {
		if err != nil && ctx.Err() != nil {
			t.Ends("interrupted")
			return nil
		}
		if err != nil {
			return err
		}
		if first {
			first, before = false, at.Spent
		}
		at.Spent = before.With(tick)
		t.out.Waited, t.out.Helped = at.Spent.WaitedShare(), at.Spent.HelpedShare()
		if tick.Clock <= at.Ticks { // it is that of a job which goes on, and had been looked at
			*t.Ending = at.Ending
			continue
		}
		at.Ticks++
		at.Iterations++
		at.Took += tick.Took - took
		took = tick.Took
		t.out.Processed += t.cfg.Bounded.Rows(t.meta)
		if err := t.lookAt(context.WithoutCancel(ctx), tick, &p, at); err != nil {
			return err
		}
		if at.Over {
			tick.Stop()
		}
	}
	return nil
}

// lookAt finds the cost at a tick, and whether that ends the run.
func (t *trainer) lookAt(ctx context.Context, tick *tables.Tick, p *boundedParam, at *boundedState) error {
	sums := make([]float64, p.K*(p.D+1))
	t.plan.bounded.sums.AddAt(tick, sums)
	t.st.At = p.centres(sums, t.cfg.Distance == Cosine)
	cost, err := t.costAt(ctx, tick, at.Iterations)
	if err != nil {
		return err
	}
	if cost < at.BestCost {
		at.BestCost, at.Best = cost, t.st.At
	}
	if at.Still++; cost < at.Least-float64(t.cfg.Tol*at.Least) || math.IsInf(at.Least, 1) {
		at.Still = 0
	}
	at.Least = min(at.Least, cost)
	why := t.endOf(cost, at)
	if at.Over = why != ""; why == "" && at.Ticks == t.cfg.MaxIterations {
		why = "max-iterations"
	}
	if why != "" {
		t.Ends(why)
	}
	at.Ending = *t.Ending
	return nil
}

// costAt finds the cost at the centres in hand, by a pass over all rows.
func (t *trainer) costAt(ctx context.Context, tick *tables.Tick, iteration int) (float64, error) {
	_, cost, err := t.whole(ctx, iteration)
	if err != nil {
		return 0, err
	}
	if tick.Report("objective", cost); !num.Finite(cost) {
		return 0, fault.Newf(fault.BadInput, "kmeans", "the data", "its squared distances are not finite")
	}
	return cost, nil
}

// endOf returns what ends a run of workers, if anything does.
func (t *trainer) endOf(cost float64, at *boundedState) string {
	stop := train.Stopper{Rule: train.ByObjective, Target: t.cfg.Target, Deadline: t.cfg.MaxTime, State: &t.st.Rules}
	why := stop.Check(train.Observation{Iteration: at.Iterations, Objective: cost, Exact: true, Now: at.Took}).Stop
	if why == "" && t.cfg.Tol > 0 && float64(at.Still) >= mostStill/min(1, t.cfg.Bounded.Passes) {
		why = "tolerance"
	}
	return why
}
