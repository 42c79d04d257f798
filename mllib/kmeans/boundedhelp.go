package kmeans

import (
	"slices"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// given is what a worker gives one that assigns a part of its rows: where they begin, and their clusters.
type given struct {
	At int64
	To []int32
}

// made is what a helper has come to: the rows' clusters, and what sums change by.
type made struct {
	To     []int32
	Change []float64
}

// span returns the position of a part's first row and how many rows it has.
func span(c *tables.Clock[boundedParam, rdd.Point, assigned], p tables.Part) (at, n int64) {
	rows := parameters.RowsIn(c.Param.Passes, c.Size())
	return parameters.Span(p, c.State.Next, rows, c.Size(), c.Param.Batch)
}

func (p *boundedPlan) give(c *tables.Clock[boundedParam, rdd.Point, assigned], part tables.Part) (g given) {
	at, n := span(c, part)
	g.At = at
	for r := range parameters.Round(at, n, c.Size()) {
		g.To = append(g.To, c.State.To[r.From:r.To]...)
	}
	return g
}

// help assigns a part of another worker's rows, to the centres that this one sees.
func (p *boundedPlan) help(c *tables.Clock[boundedParam, rdd.Point, assigned], part tables.Part, g given) made {
	m := moverOf(c)
	if m.hand == nil {
		m.hand = &mover{change: make([]float64, len(m.change))}
	}
	m.hand.centres = m.centres
	clear(m.hand.change)
	parameters.VisitPart(c, part, g.At, int64(len(g.To)), c.Param.Batch, func(before int64, b *rdd.Batch) {
		p.assign(m.hand, g.To[before:], b)
	})
	return made{g.To, slices.Clone(m.hand.change)}
}

func (p *boundedPlan) take(c *tables.Clock[boundedParam, rdd.Point, assigned], part tables.Part, d made) {
	at, n := span(c, part)
	for r := range parameters.Round(at, n, c.Size()) {
		copy(c.State.To[r.From:r.To], d.To[r.Before:])
	}
	kernel.Add(d.Change, moverOf(c).change)
}
