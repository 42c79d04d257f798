package graph

import (
	"context"

	"github.com/volley-engine/volley/rdd"
)

// Components are the connected components of a graph, whichever way its edges lead.
type Components struct {
	Nodes     []int64
	Component []int64 // by node: the least node of its component
	Count     int
	Largest   int   // nodes of the largest
	Edges     int64 // of one kind once
	Lines     int64 // edges as they were given
}

// ComponentsPlan is the plan of Components.
type ComponentsPlan struct {
	targets, sources rdd.Scan[int, ends]
	forests          rdd.Scan[int, forest]
}

// BuildComponents declares the plan.
func BuildComponents(g *rdd.Graph, c Edges) *ComponentsPlan {
	in, sources := c.packed(g)
	return &ComponentsPlan{targets: rdd.ScanBatches(in, addTargets), sources: rdd.ScanBatches(sources, addSources),
		forests: rdd.ScanBatches(in, addForest)}
}

// forest is as few of a split's edges as connect what all of them do.
type forest struct {
	Target []float64
	Place  []int32 // of the source, among all sources
	joined sets
}

// MarshalBinary returns the edges.
func (f forest) MarshalBinary() ([]byte, error) {
	return rdd.Encode(struct {
		Target []float64
		Place  []int32
	}{f.Target, f.Place})
}

// UnmarshalBinary reads what MarshalBinary has written.
func (f *forest) UnmarshalBinary(raw []byte) error {
	var e struct {
		Target []float64
		Place  []int32
	}
	err := rdd.Decode(raw, &e)
	f.Target, f.Place = e.Target, e.Place
	return err
}

// addForest adds the edges to each target that join sources which were apart, and one to the target itself, which no
// other row has.
func addForest(f forest, _ int, b *rdd.Batch) forest {
	if f.joined == nil {
		f.joined = newSets(b.Features)
	}
	for _, r := range b.Rows {
		all := b.Indices[b.Offsets[r]:b.Offsets[r+1]]
		for i, place := range all {
			if joins := f.joined.join(all[0], place); joins || i == 0 {
				f.Target, f.Place = append(f.Target, b.Labels[r]), append(f.Place, place)
			}
		}
	}
	return f
}

// sets are disjoint sets of numbers, each known by its least one.
type sets []int32

func newSets(n int) sets {
	s := make(sets, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

// find returns the least number of the set that x is in.
func (s sets) find(x int32) int32 {
	for s[x] != x {
		s[x] = s[s[x]]
		x = s[x]
	}
	return x
}

// join makes one set of two, and reports whether they were two.
func (s sets) join(x, y int32) bool {
	x, y = s.find(x), s.find(y)
	s[max(x, y)] = min(x, y)
	return x != y
}

// FindComponents computes the connected components.
func FindComponents(ctx context.Context, s *rdd.Session, c Edges, p *ComponentsPlan) (*Components, error) {
	targets, err := p.targets.Run(ctx, s, 0)
	if err != nil {
		return nil, c.Located(ctx, err)
	}
	sources, err := p.sources.Run(ctx, s, 0)
	if err != nil {
		return nil, err
	}
	n, err := nodesOf(targets, sources)
	if err != nil {
		return nil, err
	}
	forests, err := p.forests.Run(ctx, s, 0)
	if err != nil {
		return nil, err
	}
	all := newSets(len(n.IDs))
	for _, f := range forests {
		for i, id := range f.Target {
			all.join(n.at(int64(id)), n.Source[f.Place[i]])
		}
	}
	return componentsOf(n, all), nil
}

func componentsOf(n *nodes, all sets) *Components {
	r := &Components{Nodes: n.IDs, Component: make([]int64, len(n.IDs)), Edges: n.Edges, Lines: n.Lines}
	size := make([]int, len(n.IDs))
	for i := range n.IDs {
		least := all.find(int32(i))
		r.Component[i] = n.IDs[least]
		size[least]++
		r.Largest = max(r.Largest, size[least])
		if int(least) == i {
			r.Count++
		}
	}
	return r
}
