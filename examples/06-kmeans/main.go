// Command kmeans is Lloyd's algorithm by hand, on rows of numbers between white
// space, under A-BSP: each step ends early and moves the centres by what it saw.
//
//	go run ./examples/06-kmeans --sync absp -- --input points.txt --k 15
package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type args struct {
	Input string `usage:"points: a line has the coordinates of one"`
	K     int    `usage:"centres" default:"3"`
	Steps int    `usage:"steps to take" default:"20"`
}

type point = []float64

// sums has, by centre, the sum of its points, their number and their cost.
type sums struct {
	Sum  []point
	N    []float64
	Cost float64
}

type plan struct {
	Start rdd.Action[[]point]
	Step  rdd.Step[[]point, sums]
}

func build(g *rdd.Graph, a args) plan {
	points := rdd.MapErr(rdd.TextFile(g, a.Input), parse)
	return plan{rdd.TakeSample(points, a.K, 1), rdd.Aggregate(rdd.Pack(points), rdd.Aggregator[[]point, point, sums]{
		Zero: func(c []point) sums { return sums{Sum: zeros(len(c), len(c[0])), N: make([]float64, len(c))} },
		Add: func(s sums, centres []point, p point) sums {
			at, best := nearest(centres, p)
			s.Cost, s.N[at] = s.Cost+best, s.N[at]+1
			add(s.Sum[at], p, 1)
			return s
		},
		Merge: func(a, b sums) sums {
			for k := range a.N {
				a.N[k] += b.N[k]
				add(a.Sum[k], b.Sum[k], 1)
			}
			a.Cost += b.Cost
			return a
		},
		Scale: func(s sums, f float64) sums {
			for k := range s.N {
				s.N[k] *= f
				add(s.Sum[k], s.Sum[k], f-1)
			}
			s.Cost *= f
			return s
		},
	}, rdd.Aggressive(0.5))}
}

func run(ctx context.Context, s *rdd.Session, a args, p plan) error {
	centres, err := p.Start.Run(ctx, s)
	if err != nil {
		return err
	}
	for it := range rdd.Iterations(ctx, s, &centres, a.Steps) {
		t, err := p.Step.Run(ctx, s, centres)
		if err != nil {
			return err
		}
		for k, n := range t.N {
			if n > 0 { // a centre without points stays where it is
				add(centres[k], t.Sum[k], 1/n)
				add(centres[k], centres[k], -0.5) // (old + mean) / 2: half a step, since not all rows were seen
			}
		}
		it.Report("cost", t.Cost)
		fmt.Printf("step %d: share %.2f, cost about %.6g\n", it.Number, s.LastInfo().Share, t.Cost)
	}
	return s.Err()
}

func parse(line string) (p point, err error) {
	for f := range strings.FieldsSeq(line) {
		x, ferr := strconv.ParseFloat(f, 64)
		if ferr != nil {
			err = ferr
		}
		p = append(p, x)
	}
	return p, err
}

func nearest(centres []point, p point) (at int, best float64) {
	best = math.Inf(1)
	for k, c := range centres {
		d := 0.0
		for i := range c {
			d += (c[i] - p[i]) * (c[i] - p[i])
		}
		if d < best {
			at, best = k, d
		}
	}
	return at, best
}

func zeros(k, d int) []point {
	out := make([]point, k)
	for i := range out {
		out[i] = make(point, d)
	}
	return out
}

func add(to, p point, f float64) {
	for i := range to {
		to[i] += f * p[i]
	}
}

func main() { volley.Main("kmeans", build, run) }
