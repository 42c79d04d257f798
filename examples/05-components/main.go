// Command components finds the weakly connected components of a graph: every
// node takes the least number among its own and its neighbours', round by round,
// until none changes.
//
//	go run ./examples/05-components -- --input graph.txt
package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type args struct {
	Input      string `usage:"edges: a line has the numbers of two nodes"`
	Partitions int    `usage:"partitions of nodes and edges" default:"4"`
	Most       int    `usage:"rounds to run at the most" default:"1000"`
}

type (
	edge    = rdd.Pair[int64, int64]
	labeled = rdd.Pair[int64, label]
)

// label is the least node that a node knows to be in its component, and whether
// it has just learned of it.
type label struct{ Least, Fresh int64 }

type plan struct {
	Labels  *rdd.Loop[labeled]
	Changed rdd.Action[int64]
	Sizes   rdd.Action[[]edge]
	Count   rdd.Action[int64]
}

func build(g *rdd.Graph, a args) plan {
	spread := rdd.Partitions(a.Partitions)
	edges := rdd.FlatMap(rdd.MapErr(rdd.TextFile(g, a.Input), parse), func(e []int64) []edge {
		if e == nil {
			return nil
		}
		return []edge{{Key: e[0], Value: e[1]}, {Key: e[1], Value: e[0]}}
	})
	neighbours := rdd.Cache(rdd.GroupByKey(edges, spread))
	first := rdd.MapValues(rdd.ReduceByKey(rdd.Map(edges, func(e edge) edge { return edge{Key: e.Key, Value: e.Key} }),
		func(a, _ int64) int64 { return a }, spread),
		func(own int64) label { return label{own, 1} })
	labels := rdd.NewLoop(first, func(now rdd.Dataset[labeled]) rdd.Dataset[labeled] {
		told := rdd.FlatMapAppend(rdd.Join(neighbours, now),
			func(out []labeled, p rdd.Pair[int64, rdd.Joined[[]int64, label]]) []labeled {
				mine := p.Value.Right
				out = append(out, labeled{Key: p.Key, Value: label{mine.Least, 0}})
				if mine.Fresh == 1 { // a node that has learned nothing has nothing to tell
					for _, n := range p.Value.Left {
						out = append(out, labeled{Key: n, Value: label{mine.Least, 1}})
					}
				}
				return out
			})
		return rdd.ReduceByKey(told, less, spread)
	})
	now := labels.Now()
	members := rdd.Map(now, func(l labeled) edge { return edge{Key: l.Value.Least, Value: 1} })
	sizes := rdd.ReduceByKey(members, func(a, b int64) int64 { return a + b })
	return plan{
		Labels:  labels,
		Changed: rdd.Count(rdd.Filter(now, func(l labeled) bool { return l.Value.Fresh == 1 })),
		Sizes:   rdd.TakeOrdered(sizes, 5, func(a, b edge) int { return int(b.Value - a.Value) }),
		Count:   rdd.Count(sizes),
	}
}

// less returns the lower of two labels. What a node knew already is not fresh.
func less(a, b label) label {
	switch {
	case a.Least < b.Least:
		return a
	case b.Least < a.Least:
		return b
	}
	return label{a.Least, min(a.Fresh, b.Fresh)}
}

// parse reads an edge; a line that begins with # or has nothing is none.
func parse(line string) ([]int64, error) {
	f := strings.Fields(line)
	if len(f) == 0 || f[0][0] == '#' {
		return nil, nil
	}
	if len(f) != 2 {
		return nil, fmt.Errorf("%q is not two numbers", line)
	}
	from, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return nil, err
	}
	to, err := strconv.ParseInt(f[1], 10, 64)
	return []int64{from, to}, err
}

func run(ctx context.Context, s *rdd.Session, a args, p plan) error {
	for p.Labels.Rounds(s) < a.Most {
		changed, err := p.Changed.Run(ctx, s)
		if err != nil {
			return err
		}
		if changed == 0 {
			break
		}
		if err := p.Labels.Step(ctx, s); err != nil {
			return err
		}
	}
	count, err := p.Count.Run(ctx, s)
	if err != nil {
		return err
	}
	fmt.Printf("%d components after %d rounds\n", count, p.Labels.Rounds(s))
	sizes, err := p.Sizes.Run(ctx, s)
	for _, c := range sizes {
		fmt.Printf("%9d nodes with node %d\n", c.Value, c.Key)
	}
	return err
}

func main() { volley.Main("components", build, run) }
