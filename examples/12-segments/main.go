// Command segments tells apart groups of customers by what they do. It looks at the data first, twice at the same time:
// how many customers there are, and what the largest of them spend. The rest of its plan is built of what it finds:
// outliers are left out, and there are as many groups as the customers are worth. The table of customers, which a
// shuffle has brought together, is packed, and steps of k-means go over it.
//
//	go run ./examples/12-segments -- --input visits.csv
//
// The input has the columns customer, day and amount.
package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type visit struct {
	Customer string  `col:"customer"`
	Day      int     `col:"day"`
	Amount   float64 `col:"amount"`
}

// customer is what is known of one.
type customer struct {
	Visits, Spent float64
}

type args struct {
	Input string `usage:"visits: customer, day, amount"`
	Steps int    `usage:"steps to take" default:"20"`
}

// found is what the first look has found.
type found struct {
	Customers int64
	Spent     []float64 // the median, and what one customer in a hundred exceeds
}

// groups is the later part of the plan.
type groups struct {
	Some rdd.Action[[]customer]
	Step rdd.Step[[]customer, sums]
}

type plan struct {
	Customers rdd.Action[int64]
	Spent     rdd.Action[[]float64]
	Groups    rdd.LaterPart[found, groups]
}

// sums has, by group, the sum of its customers and their number.
type sums struct {
	Sum []customer
	N   []float64
}

func build(g *rdd.Graph, a args) plan {
	visits := rdd.KeyBy(rdd.CSV[visit](g, rdd.CSVOptions{}, a.Input), func(v visit) string { return v.Customer })
	known := rdd.Cache(rdd.Values(rdd.AggregateByKey(visits, func() customer { return customer{} },
		func(c customer, v visit) customer { return customer{c.Visits + 1, c.Spent + v.Amount} }, plus)))
	return plan{
		Customers: rdd.Count(known),
		Spent:     rdd.Quantiles(rdd.Map(known, func(c customer) float64 { return c.Spent }), 0.5, 0.99),
		Groups: rdd.Later(g, func(_ *rdd.Graph, f found) groups {
			usual := rdd.Filter(known, func(c customer) bool { return c.Spent <= f.Spent[1] })
			scaled := rdd.Map(usual, func(c customer) customer { return customer{c.Visits, c.Spent / f.Spent[0]} })
			k := min(max(2, int(math.Sqrt(float64(f.Customers)/50))), 8)
			return groups{rdd.TakeSample(scaled, k, 1), rdd.Aggregate(rdd.Pack(scaled), kmeans, rdd.Aggressive(0.5))}
		}),
	}
}

// kmeans brings customers to the nearest centre.
var kmeans = rdd.Aggregator[[]customer, customer, sums]{
	Zero: func(c []customer) sums { return sums{make([]customer, len(c)), make([]float64, len(c))} },
	Add: func(s sums, centres []customer, c customer) sums {
		at := nearest(centres, c)
		s.Sum[at], s.N[at] = plus(s.Sum[at], c), s.N[at]+1
		return s
	},
	Merge: func(a, b sums) sums {
		for k := range a.N {
			a.Sum[k], a.N[k] = plus(a.Sum[k], b.Sum[k]), a.N[k]+b.N[k]
		}
		return a
	},
	Scale: func(s sums, f float64) sums {
		for k := range s.N {
			s.Sum[k], s.N[k] = customer{f * s.Sum[k].Visits, f * s.Sum[k].Spent}, f*s.N[k]
		}
		return s
	},
}

func plus(a, b customer) customer { return customer{a.Visits + b.Visits, a.Spent + b.Spent} }

func nearest(centres []customer, c customer) (at int) {
	best := math.Inf(1)
	for k, m := range centres {
		if d := math.Hypot(m.Visits-c.Visits, m.Spent-c.Spent); d < best {
			at, best = k, d
		}
	}
	return at
}

// look runs the two actions of the first look side by side.
func look(ctx context.Context, s *rdd.Session, p plan) (f found, err error) {
	var both errgroup.Group
	both.Go(func() (err error) { f.Customers, err = p.Customers.Run(ctx, s); return err })
	both.Go(func() (err error) { f.Spent, err = p.Spent.Run(ctx, s); return err })
	return f, both.Wait()
}

func run(ctx context.Context, s *rdd.Session, a args, p plan) error {
	f, err := look(ctx, s, p)
	if err != nil {
		return err
	}
	fmt.Printf("%d customers, half of them spend %.2f or less\n", f.Customers, f.Spent[0])
	later, err := p.Groups.Build(ctx, s, f)
	if err != nil {
		return err
	}
	centres, err := later.Some.Run(ctx, s)
	if err != nil {
		return err
	}
	var last sums
	for range rdd.Iterations(ctx, s, &centres, a.Steps) {
		if last, err = later.Step.Run(ctx, s, centres); err != nil {
			return err
		}
		for k, n := range last.N {
			if n > 0 { // a centre without customers stays where it is
				centres[k] = customer{last.Sum[k].Visits / n, last.Sum[k].Spent / n}
			}
		}
	}
	slices.SortFunc(centres, func(a, b customer) int { return cmp.Compare(a.Spent, b.Spent) })
	for _, c := range centres {
		fmt.Printf("a group: %.1f visits, %.2f spent\n", c.Visits, c.Spent*f.Spent[0])
	}
	return s.Err()
}

func main() { volley.Main("segments", build, run) }
