package kmeans

import (
	"slices"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// given is what a worker gives one that assigns a part of its rows: where its clock began, and the rows'
// clusters.
type given struct {
	Next int64
	To   []int32
}

// made is what a helper has come to: the rows' clusters, and what sums change by.
type made struct {
	To     []int32
	Change []float64
}

func (p *boundedPlan) give(c *tables.Clock[boundedParam, rdd.Point, assigned], part tables.Part) (g given) {
	g.Next = c.State.Next
	for r := range parameters.Own(c, g.Next, c.Param.Passes, c.Param.Batch).Ranges(part.From, part.To) {
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
	parameters.VisitPart(c, part, g.Next, c.Param.Passes, c.Param.Batch, func(before int64, b *rdd.Batch) {
		p.assign(m.hand, g.To[before:], b)
	})
	return made{g.To, slices.Clone(m.hand.change)}
}

func (p *boundedPlan) take(c *tables.Clock[boundedParam, rdd.Point, assigned], part tables.Part, d made) {
	for r := range parameters.Own(c, c.State.Next, c.Param.Passes, c.Param.Batch).Ranges(part.From, part.To) {
		copy(c.State.To[r.From:r.To], d.To[r.Before:])
	}
	kernel.Add(d.Change, moverOf(c).change)
}
