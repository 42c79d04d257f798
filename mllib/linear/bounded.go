package linear

import (
	"math"

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
	loss    *rowLoss
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
	Width                       float64 // of a smoothed hinge
	Weight                      float64 // of all rows
	Step                        float64
	Passes                      float64 // over a worker's rows, in a clock
	Batch                       int     // rows of a step
	Part                        float64 // of a worker's share of what it moves by, that it adds
}

// visited is what a worker keeps of its rows: the derivative of each one's loss by its margin where it was visited
// last, NaN where it was not; and the position of the next.
type visited struct {
	Coef []float64
	Next int64
}

// declareBounded adds tables and workers to a plan.
func declareBounded(g *rdd.Graph, rows rdd.Packed[rdd.Point], r *rowLoss, b *parameters.Bounded) *boundedPlan {
	p := &boundedPlan{loss: r, moves: parameters.New(g, "moves", b.Model), slopes: parameters.New(g, "slopes", b.Model),
		eager: b.Model.Eager}
	p.workers = tables.Worker(rows, p.clock, p.moves.Table, p.slopes.Table)
	return p
}

// stepper is a worker's memory from clock to clock.
type stepper struct {
	prob          problem
	start         linearParam
	share         float64   // of the weight of all rows, that the worker's have
	x, seen       []float64 // variables: the worker's own, and those in the table
	slope         []float64 // of all rows, each where it was visited last, as the worker sees it
	move, change  []float64 // what is added to the tables
	batch         []float64 // gradient of a batch, less what its rows had before
	sum           []float64 // of a batch
	z, coef, loss []float64 // of its rows
}

func newStepper(p *boundedParam, size float64) *stepper {
	s := &stepper{share: p.Part * size / p.Weight, prob: problem{reg: p.Reg, positive: p.Positive, scale: p.Scale,
		penalty: p.Penalty, weights: p.Weights, counted: p.Counted, intercept: len(p.Start) > len(p.Scale)}}
	if len(p.Mean) > 0 {
		s.prob.mean = p.Mean
	}
	if len(p.Lasso) > 0 {
		s.prob.lasso = p.Lasso
	}
	s.start = s.prob.param(p.Start)
	n := len(p.Start)
	for _, v := range []*[]float64{&s.x, &s.seen, &s.slope, &s.move, &s.change, &s.batch} {
		*v = make([]float64, n)
	}
	s.sum = make([]float64, len(p.Scale))
	s.z, s.coef, s.loss = make([]float64, p.Batch), make([]float64, p.Batch), make([]float64, p.Batch)
	return s
}

// clock takes a worker's steps of a clock.
func (p *boundedPlan) clock(c *tables.Clock[boundedParam, rdd.Point, visited]) error {
	if c.State.Coef == nil {
		c.State.Coef = make([]float64, c.Size())
		for i := range c.State.Coef {
			c.State.Coef[i] = math.NaN()
		}
	}
	s := c.Notes(func() any { return newStepper(&c.Param, p.weigh(c)) }).(*stepper)
	moves, slopes := parameters.In(p.moves, c), parameters.In(p.slopes, c)
	s.see(&c.Param, moves, slopes)
	copy(s.x, s.seen)
	left := max(1, int64(math.Round(c.Param.Passes*float64(c.Size()))))
	for left > 0 {
		for at, b := range c.Batches(c.State.Next, c.Param.Batch) {
			b.Rows = b.Rows[:min(left, int64(len(b.Rows)))]
			p.step(c, s, at, b)
			if p.eager {
				s.tell(moves, slopes)
				s.follow(&c.Param, moves, slopes)
			}
			c.Worked(float64(len(b.Rows)))
			c.State.Next = at + int64(len(b.Rows))
			if left -= int64(len(b.Rows)); left == 0 {
				break
			}
		}
		if c.State.Next == c.Size() {
			c.State.Next = 0
		}
	}
	if !p.eager {
		s.tell(moves, slopes)
	}
	return nil
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

// step takes a step along a batch of rows.
func (p *boundedPlan) step(c *tables.Clock[boundedParam, rdd.Point, visited], s *stepper, at int64, b *rdd.Batch) {
	n := len(b.Rows)
	here := s.prob.param(s.x)
	here.Width = c.Param.Width
	old := c.State.Coef[at : at+int64(n)]
	if math.IsNaN(old[0]) {
		s.start.Width = c.Param.Width
		p.derive(s, old, s.start, b)
		c.Worked(float64(n))
	}
	coef := s.coef[:n]
	p.derive(s, coef, here, b)
	weight, moved := 0.0, 0.0
	for i, v := range coef {
		coef[i], old[i] = v-old[i], v
		moved += coef[i]
		weight += b.WeightOf(b.Rows[i])
	}
	if weight == 0 {
		return
	}
	clear(s.sum)
	fold.Accumulate(s.sum, coef, b)
	s.descend(&c.Param, moved, weight)
}

// derive computes the derivative of each row's loss by its margin.
func (p *boundedPlan) derive(s *stepper, coef []float64, at linearParam, b *rdd.Batch) {
	n := len(b.Rows)
	y, z := b.Scratch(n), s.z[:n]
	p.loss.labels(y, at, b)
	fold.Dots(z, at.W, b, b.Rows)
	p.loss.of(at, b).Derive(coef, s.loss[:n], z, at.Bias, y)
}

// descend moves the worker's variables along the gradient of a batch, less what its rows had before, and what all have.
func (s *stepper) descend(p *boundedParam, moved, weight float64) {
	d := s.prob.penalty
	s.prob.slopes(s.batch, s.sum, moved, weight)
	of := weight / p.Weight
	for i, g := range s.batch {
		x, l := s.x[i], 0.0
		if i < len(d) {
			l = float64(float64(s.prob.reg*d[i]) * x)
		}
		to := x - float64(p.Step*(g+s.slope[i]+l))
		if s.prob.lasso != nil {
			to = num.Soft(to, float64(p.Step*s.prob.lasso[i]))
		}
		s.x[i] = to
		s.move[i] += s.share * (to - x)
		g *= of
		s.slope[i] += g
		s.change[i] += g
	}
}
