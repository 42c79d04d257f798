package als

import (
	"slices"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// given is what a helper makes steps by: a part of a block's ratings, whose users and items are told by their places
// among those that come along.
type given struct {
	Rate, Share  float64
	Ratings      []kernel.Rating
	Users, Items []float64 // as the other has them
}

// made is what these have become: users whole, as no other has any of them, and what items' numbers have grown by, as
// the other goes on with them.
type made struct {
	Squares      float64
	Users, Items []float64
}

func (p *SGDPlan) give(c *tables.Clock[descent, rdd.Point, ownUsers], part tables.Part) given {
	b := present(c)
	g := b.give(c.State.At, c.Param.numbers(), part)
	g.Rate, g.Share = rateAt(c), b.usersOf(c)
	return g
}

func (p *SGDPlan) help(c *tables.Clock[descent, rdd.Point, ownUsers], _ tables.Part, g given) made {
	return g.steps(&c.Param, c.Worked)
}

func (p *SGDPlan) take(c *tables.Clock[descent, rdd.Point, ownUsers], part tables.Part, m made) {
	present(c).take(c.State.At, c.Param.numbers(), part, m)
}

// give returns ratings of a block with what they are of, of whose users and items each has n numbers.
func (b *block) give(users []float64, n int, part tables.Part) given {
	of := b.part(part.From, part.To)
	first, last := int(of[0].Row), int(of[len(of)-1].Row)
	columns, at := b.columnsOf(of)
	g := given{Ratings: make([]kernel.Rating, len(of)), Users: slices.Clone(users[first*n : (last+1)*n]),
		Items: make([]float64, 0, len(columns)*n)}
	for i, x := range of {
		g.Ratings[i] = kernel.Rating{Row: x.Row - int32(first), Column: at[x.Column], Value: x.Value}
	}
	for _, column := range columns {
		g.Items = append(g.Items, b.now[int(column)*n:(int(column)+1)*n]...)
	}
	return g
}

// columnsOf returns the items of some ratings, in the order in which they come, and the place of each there.
func (b *block) columnsOf(of []kernel.Rating) (columns, at []int32) {
	at = make([]int32, len(b.items))
	for _, x := range of {
		if at[x.Column] == 0 {
			columns = append(columns, x.Column)
			at[x.Column] = int32(len(columns))
		}
	}
	for _, column := range columns {
		at[column]--
	}
	return columns, at
}

// steps makes another worker's steps. It calls worked with how many users they stand for.
func (g *given) steps(d *descent, worked func(users float64)) made {
	m := made{Users: g.Users, Items: slices.Clone(g.Items)}
	m.Squares = d.descend(m.Users, m.Items, g.Ratings, g.Rate, func(n int) { worked(float64(n) * g.Share) })
	for i, before := range g.Items {
		m.Items[i] -= before
	}
	return m
}

// take has what a helper has made be the worker's own.
func (b *block) take(users []float64, n int, part tables.Part, m made) {
	of := b.part(part.From, part.To)
	copy(users[int(of[0].Row)*n:], m.Users)
	columns, _ := b.columnsOf(of)
	for i, column := range columns {
		for k, more := range m.Items[i*n : (i+1)*n] {
			b.now[int(column)*n+k] += more
		}
	}
	b.squares += m.Squares
}
