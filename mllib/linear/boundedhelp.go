package linear

import (
	"slices"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// given is what a worker gives one that takes steps along a part of its rows: where its clock began, the rows'
// derivatives, and what its own moves count for.
type given struct {
	Next  int64
	Coef  []float64
	Share float64
}

// made is what a helper has come to: the rows' derivatives, and what it adds to the tables.
type made struct{ Coef, Move, Change []float64 }

// give hands out derivatives of a part's rows.
func (p *boundedPlan) give(c *tables.Clock[boundedParam, rdd.Point, visited], part tables.Part) (g given) {
	s := p.stepper(c)
	k := int64(s.rows.margins())
	g = given{Next: c.State.Next, Share: s.share}
	for r := range parameters.Own(c, g.Next, c.Param.Passes, c.Param.Batch).Ranges(part.From, part.To) {
		g.Coef = append(g.Coef, c.State.Coef[r.From*k:r.To*k]...)
	}
	return g
}

// help takes steps along a part of another worker's rows, from where this worker's own have led.
func (p *boundedPlan) help(c *tables.Clock[boundedParam, rdd.Point, visited], part tables.Part, g given) made {
	s := p.stepper(c)
	h, k := s.lend(g.Share), int64(s.rows.margins())
	parameters.VisitPart(c, part, g.Next, c.Param.Passes, c.Param.Batch, func(before int64, b *rdd.Batch) {
		p.step(c, h, g.Coef[before*k:(before+int64(len(b.Rows)))*k], b)
	})
	return made{g.Coef, slices.Clone(h.move), slices.Clone(h.change)}
}

// lend returns a stepper that is where the worker is, and counts for another.
func (s *stepper) lend(share float64) *stepper {
	if s.hand == nil {
		n := len(s.x)
		s.hand = &stepper{rows: s.rows, prob: s.prob, x: make([]float64, n), slope: make([]float64, n),
			move: make([]float64, n), change: make([]float64, n), batch: make([]float64, n), coef: s.coef}
	}
	h := s.hand
	h.share = share
	copy(h.x, s.x)
	copy(h.slope, s.slope)
	clear(h.move)
	clear(h.change)
	return h
}

// take counts what a helper has come to.
func (p *boundedPlan) take(c *tables.Clock[boundedParam, rdd.Point, visited], part tables.Part, m made) {
	s := p.stepper(c)
	k := int64(s.rows.margins())
	for r := range parameters.Own(c, c.State.Next, c.Param.Passes, c.Param.Batch).Ranges(part.From, part.To) {
		copy(c.State.Coef[r.From*k:r.To*k], m.Coef[r.Before*k:])
	}
	kernel.Add(m.Move, s.move)
	kernel.Add(m.Change, s.change)
	kernel.Add(m.Change, s.slope)
}
