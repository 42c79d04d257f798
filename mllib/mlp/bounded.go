package mlp

import (
	"context"
	"iter"
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/mllib/internal/workers"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// boundedPlan trains on tables: workers take steps of the solver on their own rows, which begins anew in each clock,
// and see of each other what the model of the table lets them.
type boundedPlan struct {
	fold    *netFold
	solver  func() solver.Solver
	moves   parameters.Vector // of the numbers, from where the run began
	eager   bool              // updates leave, and are seen, within clocks
	workers tables.Work[boundedParam, rdd.Point, visited]
}

// boundedParam is where workers begin, and how they go on.
type boundedParam struct {
	Net    network // its numbers are those of the beginning
	Reg    float64
	Weight float64 // of all rows
	Step   float64
	Part   float64 // of a worker's share of what it moves by, that it adds
	Passes float64 // over a worker's rows, in a clock
	Batch  int     // rows of a step
}

// visited is what a worker keeps of its rows: the position of the next.
type visited struct{ Next int64 }

// boundedBatch is how many rows a worker's step is of, where the user does not say.
const boundedBatch = 32

// declareBounded adds a table and workers to a plan.
func declareBounded(g *rdd.Graph, rows rdd.Packed[rdd.Point], f *netFold, c *Config) *boundedPlan {
	p := &boundedPlan{fold: f, solver: c.solver, moves: parameters.New(g, "moves", c.Bounded.Model),
		eager: c.Bounded.Model.Eager}
	if c.Bounded.Help == nil {
		p.workers = tables.Worker(rows, p.clock, p.moves.Table)
		return p
	}
	p.workers = tables.HelpedWorker(rows, p.clock, tables.Helping[boundedParam, rdd.Point, visited, given, []float64]{
		By: *c.Bounded.Help, Give: p.give, Do: p.help, Take: p.take}, p.moves.Table)
	return p
}

// stepper is a worker's memory from clock to clock.
type stepper struct {
	net    network   // where the worker is
	seen   []float64 // numbers in the table
	move   []float64 // what is added to it
	before []float64 // where the worker was before a step
	at     []float64 // where the solver has it
	grad   []float64
	share  float64 // of the weight of all rows, that the worker's have
	by     solver.Solver
	hand   *stepper // what it does for others with
}

func newStepper(p *boundedParam, share float64) *stepper {
	s := &stepper{net: p.Net, share: share}
	n := len(p.Net.V)
	s.net.V = make([]float64, n)
	s.seen, s.move, s.before = make([]float64, n), make([]float64, n), make([]float64, n)
	s.grad, s.at = make([]float64, n), make([]float64, n)
	return s
}

// stepper returns the worker's memory.
func (p *boundedPlan) stepper(c *tables.Clock[boundedParam, rdd.Point, visited]) *stepper {
	return c.Notes(func() any {
		weight := 0.0
		for _, b := range c.Batches(0, c.Param.Batch) {
			weight += weightOf(b)
		}
		return newStepper(&c.Param, c.Param.Part*weight/c.Param.Weight)
	}).(*stepper)
}

func weightOf(b *rdd.Batch) (sum float64) {
	for _, row := range b.Rows {
		sum += b.WeightOf(row)
	}
	return sum
}

// clock takes a worker's steps of a clock.
func (p *boundedPlan) clock(c *tables.Clock[boundedParam, rdd.Point, visited]) error {
	s, moves := p.stepper(c), parameters.In(p.moves, c)
	s.see(&c.Param, moves)
	copy(s.net.V, s.seen)
	s.by = p.solver()
	parameters.Visit(c, &c.State.Next, c.Param.Passes, c.Param.Batch, func(_ int64, b *rdd.Batch) {
		s.step(&c.Param, p.fold, b)
		if p.eager {
			s.tell(moves)
			s.follow(&c.Param, moves)
		}
	})
	s.tell(moves)
	return nil
}

// see takes up what is in the table.
func (s *stepper) see(p *boundedParam, moves parameters.Rows) {
	copy(s.seen, p.Net.V)
	moves.AddTo(s.seen)
}

// tell adds to the table what the worker has done since: of its own moves its share.
func (s *stepper) tell(moves parameters.Rows) {
	moves.Inc(s.move)
	kernel.Add(s.move, s.seen)
	clear(s.move)
}

// follow moves the worker by what others have done, once it has told what it has.
func (s *stepper) follow(p *boundedParam, moves parameters.Rows) {
	kernel.Axpy(-1, s.seen, s.net.V)
	s.see(p, moves)
	kernel.Add(s.seen, s.net.V)
}

// step takes a step along the gradient of a batch of rows.
func (s *stepper) step(p *boundedParam, f *netFold, b *rdd.Batch) {
	weight := weightOf(b)
	if !(weight > 0) {
		return
	}
	clear(s.grad)
	f.add(fold.ClassSums{Sum: s.grad}, s.net, b)
	s.net.descent(s.grad, p.Reg, weight)
	copy(s.before, s.net.V)
	s.by.Step(&solver.Point{X: s.at, Y: s.net.V, Step: p.Step}, &solver.Seen{G: s.grad})
	for i, v := range s.net.V {
		s.move[i] = math.FMA(s.share, v-s.before[i], s.move[i])
	}
}

// given is where the clock of a worker began, and what its moves count for.
type given struct {
	Next  int64
	Share float64
}

func (p *boundedPlan) give(c *tables.Clock[boundedParam, rdd.Point, visited], _ tables.Part) given {
	return given{c.State.Next, p.stepper(c).share}
}

// help takes steps along a part of another worker's rows, from where this worker's own have led, and returns what that
// moves.
func (p *boundedPlan) help(c *tables.Clock[boundedParam, rdd.Point, visited], part tables.Part, g given) []float64 {
	s := p.stepper(c)
	if s.hand == nil {
		s.hand = newStepper(&c.Param, 0)
	}
	h := s.hand
	h.share, h.by = g.Share, p.solver()
	copy(h.net.V, s.net.V)
	clear(h.move)
	parameters.VisitPart(c, part, g.Next, c.Param.Passes, c.Param.Batch, func(_ int64, b *rdd.Batch) {
		h.step(&c.Param, p.fold, b)
	})
	return slices.Clone(h.move)
}

func (p *boundedPlan) take(c *tables.Clock[boundedParam, rdd.Point, visited], _ tables.Part, move []float64) {
	kernel.Add(move, p.stepper(c).move)
}

// boundedRun is a training on tables.
type boundedRun struct {
	workers.Run
	t     *trainer
	param boundedParam
}

// trainBounded trains on tables.
func (t *trainer) trainBounded(ctx context.Context) error {
	b := t.cfg.Bounded
	r := &boundedRun{t: t, Run: workers.Run{Training: &t.Training, Name: "mlp", Stop: &t.stop, By: b,
		Rules: train.Rules{Tol: t.cfg.Tol, Target: t.cfg.Target, MaxTime: t.cfg.MaxTime}, Moves: t.plan.bounded.moves,
		Y: t.st.Y, Step: t.st.Step, Rows: b.Rows(t.meta), Limit: t.cfg.MaxIterations}}
	r.Job = r
	r.param = boundedParam{Net: t.net, Reg: t.cfg.Reg, Weight: t.meta.Weight(), Passes: b.Passes, Batch: b.Batch}
	if r.param.Batch == 0 {
		r.param.Batch = b.Items(t.meta, boundedBatch)
	}
	return r.Train(ctx)
}

// Begin finds the objective where workers begin.
func (r *boundedRun) Begin(ctx context.Context, step, part float64) (float64, error) {
	r.param.Net.V = slices.Clone(r.Y)
	r.param.Step, r.param.Part = step, part
	s, err := r.t.plan.Loss.Run(ctx, r.Session, r.t.param())
	if err != nil {
		return 0, err
	}
	return r.t.objective(s.Loss, r.Session.LastInfo().Weight), nil
}

// Clocks runs workers.
func (r *boundedRun) Clocks(ctx context.Context, clocks int, kept tables.Kept) iter.Seq2[*tables.Tick, error] {
	return r.t.plan.bounded.workers.Clocks(ctx, r.Session, r.param, clocks, 1, kept)
}

// Evaluate finds the objective.
func (r *boundedRun) Evaluate(ctx context.Context, iteration int) (float64, error) {
	return r.t.evaluate(ctx, iteration)
}
