package linear

import (
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// boundedPlan trains on tables: workers take steps of SAGA on their own rows, and see of each other what the model of
// the tables lets them.
type boundedPlan struct {
	rows    func(*boundedParam) rowModel
	moves   parameters.Vector // of the variables, from where the run began
	slopes  parameters.Vector // of the rows' mean gradient since then, each row's where it was visited last
	eager   bool              // updates leave, and are seen, within clocks
	workers tables.Work[boundedParam, rdd.Point, visited]
}

// boundedParam is what workers know of a run: the variables where it begins, the gradient of the mean loss there, and
// how steps are taken.
type boundedParam struct {
	Scale, Mean, Penalty, Lasso []float64 // as problem has them
	Start, Slope                []float64 // variables
	Reg, Positive, Counted      float64
	Weights                     [2]float64
	Width                       float64   // of a smoothed hinge
	Labels, Counts              []float64 // of classes, where there are several, as softmaxParam has them
	Weight                      float64   // of all rows
	Step                        float64
	Passes                      float64 // over a worker's rows, in a clock
	Batch                       int     // rows of a step
	Part                        float64 // of a worker's share of what it moves by, that it adds
}

// visited is what a worker keeps of its rows: the derivatives of each one's loss by its margins where it was visited
// last, NaN where it was not; and the position of the next.
type visited struct {
	Coef []float64
	Next int64
}

// rowModel is what the loss of a row depends on: a margin, or one for each class. A worker has one to itself.
type rowModel interface {
	// margins returns how many a row has.
	margins() int
	// derive computes the derivatives of the loss of a batch's rows by their margins, at some variables.
	derive(coef, variables []float64, b *rdd.Batch)
	// slopes turns derivatives of a batch's rows into the gradient of their mean loss in the variables; weight is what
	// they weigh.
	slopes(out, coef []float64, b *rdd.Batch, weight float64)
}

// declareBounded adds tables and workers to a plan.
func declareBounded(g *rdd.Graph, data rdd.Packed[rdd.Point], b *parameters.Bounded,
	rows func(*boundedParam) rowModel) *boundedPlan {
	p := &boundedPlan{rows: rows, moves: parameters.New(g, "moves", b.Model),
		slopes: parameters.New(g, "slopes", b.Model), eager: b.Model.Eager}
	if b.Help == nil {
		p.workers = tables.Worker(data, p.clock, p.moves.Table, p.slopes.Table)
		return p
	}
	p.workers = tables.HelpedWorker(data, p.clock, tables.Helping[boundedParam, rdd.Point, visited, given, made]{
		By: *b.Help, Give: p.give, Do: p.help, Take: p.take}, p.moves.Table, p.slopes.Table)
	return p
}

// problem returns the variables of a run, of one class where there are several.
func (p *boundedParam) problem() *problem {
	q := &problem{reg: p.Reg, positive: p.Positive, scale: p.Scale, penalty: p.Penalty, weights: p.Weights,
		counted: p.Counted, intercept: len(p.Start) > len(p.Scale)*max(1, len(p.Labels))}
	if len(p.Mean) > 0 {
		q.mean = p.Mean
	}
	if len(p.Lasso) > 0 {
		q.lasso = p.Lasso
	}
	return q
}

// stepper is a worker's memory from clock to clock.
type stepper struct {
	rows         rowModel
	prob         *problem
	share        float64   // of the weight of all rows, that the worker's have
	x, seen      []float64 // variables: the worker's own, and those in the table
	slope        []float64 // of all rows, each where it was visited last, as the worker sees it
	move, change []float64 // what is added to the tables
	batch        []float64 // gradient of a batch, less what its rows had before
	coef         []float64 // of its rows
	hand         *stepper  // what it does for others with
}

func newStepper(p boundedParam, rows func(*boundedParam) rowModel, size int64, weight float64) *stepper {
	p.Batch = int(min(int64(p.Batch), size))
	s := &stepper{rows: rows(&p), prob: p.problem(), share: p.Part * weight / p.Weight}
	for _, v := range []*[]float64{&s.x, &s.seen, &s.slope, &s.move, &s.change, &s.batch} {
		*v = make([]float64, len(p.Start))
	}
	s.coef = make([]float64, p.Batch*s.rows.margins())
	return s
}

// clock takes a worker's steps of a clock.
func (p *boundedPlan) clock(c *tables.Clock[boundedParam, rdd.Point, visited]) error {
	s := p.stepper(c)
	if c.State.Coef == nil {
		c.State.Coef = make([]float64, c.Size()*int64(s.rows.margins()))
		for i := range c.State.Coef {
			c.State.Coef[i] = math.NaN()
		}
	}
	moves, slopes := parameters.In(p.moves, c), parameters.In(p.slopes, c)
	s.see(&c.Param, moves, slopes)
	copy(s.x, s.seen)
	k := int64(s.rows.margins())
	parameters.Visit(c, &c.State.Next, c.Param.Passes, c.Param.Batch, func(at int64, b *rdd.Batch) {
		p.step(c, s, c.State.Coef[at*k:(at+int64(len(b.Rows)))*k], b)
		if p.eager {
			s.tell(moves, slopes)
			s.follow(&c.Param, moves, slopes)
		}
	})
	if !p.eager {
		s.tell(moves, slopes)
	}
	return nil
}

// stepper returns the worker's memory.
func (p *boundedPlan) stepper(c *tables.Clock[boundedParam, rdd.Point, visited]) *stepper {
	return c.Notes(func() any { return newStepper(c.Param, p.rows, c.Size(), p.weigh(c)) }).(*stepper)
}

// weigh returns what a worker's rows weigh.
func (p *boundedPlan) weigh(c *tables.Clock[boundedParam, rdd.Point, visited]) (sum float64) {
	for _, b := range c.Batches(0, c.Param.Batch) {
		for _, row := range b.Rows {
			sum += b.WeightOf(row)
		}
	}
	return sum
}

// see takes up what is in the tables.
func (s *stepper) see(p *boundedParam, moves, slopes parameters.Rows) {
	copy(s.seen, p.Start)
	moves.AddTo(s.seen)
	copy(s.slope, p.Slope)
	slopes.AddTo(s.slope)
}

// tell adds to the tables what the worker has done since: of its own variables its share.
func (s *stepper) tell(moves, slopes parameters.Rows) {
	moves.Inc(s.move)
	slopes.Inc(s.change)
	kernel.Add(s.move, s.seen)
	clear(s.move)
	clear(s.change)
}

// follow moves the worker's own variables by what others have done, once it has told what it has.
func (s *stepper) follow(p *boundedParam, moves, slopes parameters.Rows) {
	for i, v := range s.seen {
		s.x[i] -= v
	}
	s.see(p, moves, slopes)
	for i, v := range s.seen {
		s.x[i] += v
	}
}

// step takes a step along a batch of rows, whose derivatives where they were visited last it moves on.
func (p *boundedPlan) step(c *tables.Clock[boundedParam, rdd.Point, visited], s *stepper, old []float64,
	b *rdd.Batch) {
	if math.IsNaN(old[0]) {
		s.rows.derive(old, c.Param.Start, b)
		c.Worked(float64(len(b.Rows)))
	}
	coef, weight := s.coef[:len(old)], 0.0
	s.rows.derive(coef, s.x, b)
	for i, v := range coef {
		coef[i], old[i] = v-old[i], v
	}
	for _, row := range b.Rows {
		weight += b.WeightOf(row)
	}
	if weight > 0 {
		s.rows.slopes(s.batch, coef, b, weight)
		s.descend(&c.Param, weight/c.Param.Weight)
	}
}

// descend moves the worker's variables along the gradient of a batch, less what its rows had before, and what all have;
// the batch has a share of the weight of all rows.
func (s *stepper) descend(p *boundedParam, share float64) {
	size := s.prob.size()
	for i, g := range s.batch {
		j, x := i%size, s.x[i]
		d := g + s.slope[i]
		if j < len(s.prob.penalty) {
			d = math.FMA(float64(s.prob.reg*s.prob.penalty[j]), x, d)
		}
		to := math.FMA(-p.Step, d, x)
		if s.prob.lasso != nil {
			to = num.Soft(to, float64(p.Step*s.prob.lasso[j]))
		}
		s.x[i] = to
		s.move[i] = math.FMA(s.share, to-x, s.move[i])
		g *= share
		s.slope[i] += g
		s.change[i] += g
	}
}

// marginRows are rows of one margin.
type marginRows struct {
	prob    *problem
	loss    *rowLoss
	width   float64 // of a smoothed hinge
	w, sum  []float64
	z, lost []float64 // of rows
}

func newMarginRows(p *boundedParam, loss *rowLoss) *marginRows {
	return &marginRows{prob: p.problem(), loss: loss, width: p.Width, w: make([]float64, len(p.Scale)),
		sum: make([]float64, len(p.Scale)), z: make([]float64, p.Batch), lost: make([]float64, p.Batch)}
}

func (m *marginRows) margins() int { return 1 }

func (m *marginRows) derive(coef, variables []float64, b *rdd.Batch) {
	p := m.prob.paramIn(m.w, variables)
	p.Width = m.width
	y, z := b.Scratch(len(b.Rows)), m.z[:len(b.Rows)]
	m.loss.labels(y, p, b)
	if zero(p.W) { // as where a run begins: the rows need not be read
		clear(z)
	} else {
		fold.Dots(z, p.W, b, b.Rows)
	}
	m.loss.of(p, b).Derive(coef, m.lost[:len(z)], z, p.Bias, y)
}

// zero reports whether all weights are 0.
func zero(w []float64) bool {
	return !slices.ContainsFunc(w, func(x float64) bool { return x != 0 })
}

func (m *marginRows) slopes(out, coef []float64, b *rdd.Batch, weight float64) {
	clear(m.sum)
	fold.Accumulate(m.sum, coef, b)
	m.prob.slopes(out, m.sum, num.Sum(coef), weight)
}
