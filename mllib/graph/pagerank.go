package graph

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/huge"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// Config configures PageRank: the share of time that a walker spends at each node who follows an edge with the
// probability Damping, and else begins anew: at any node, or at one of Personal. A node that no edge leaves has it
// begin anew. Edges count once, however often they are given.
type Config struct {
	Edges
	Damping       float64
	Tol           float64 // rounds end where ranks change by less, all together
	MaxIterations int
	Personal      []int64 // nodes to begin at; none is all
	Model         tables.Model
}

// Check refuses configurations that no graph could make right.
func (c *Config) Check() error {
	switch {
	case !(c.Damping >= 0 && c.Damping < 1):
		return fault.Newf(fault.Usage, "rank with", "--damping", "%v does not lie in [0, 1)", c.Damping)
	case !(c.Tol >= 0):
		return fault.Newf(fault.Usage, "rank with", "--tol", "%v is below 0", c.Tol)
	case c.MaxIterations < 1:
		return fault.Newf(fault.Usage, "rank with", "--max-iterations", "%d rounds", c.MaxIterations)
	}
	return c.Model.Check()
}

// Ranks are the ranks of nodes; they sum to 1.
type Ranks struct {
	Nodes      []int64
	Ranks      []float64
	Edges      int64 // of one kind once
	Lines      int64 // edges as they were given
	Dangling   int   // nodes that no edge leaves
	Iterations int
	Change     float64 // by the last round, or, of models that are not exact, by one more; of all ranks together
	Bound      float64 // on how far all ranks together may be from those of no further change
	Converged  bool
	StoppedBy  string
	Waited     float64 // share of their time that workers waited for others
}

// blockNodes is how many nodes a row of the table of ranks has.
const blockNodes = 4096

// PageRankPlan is the plan of PageRank.
type PageRankPlan struct {
	targets, sources rdd.Scan[int, ends]
	// shares has of each node its rank by the number of edges that leave it: what flows along each. What of a node that
	// none leaves is its rank.
	shares *tables.Table[float64]
	// hanging has the ranks of all nodes that no edge leaves, together.
	hanging *tables.Table[float64]
	changes *tables.Table[float64] // by clock
	work    tables.Work[*walk, rdd.Point, ranked]
	changed rdd.Scan[ranksOf, float64]
	exact   bool
}

// walk is what workers have to know of the graph.
type walk struct {
	*nodes
	damping float64
	begins  []float64 // by node: the probability to begin at it; nil is the same of all
}

func (w *walk) begin(node int32) float64 {
	if w.begins == nil {
		return 1 / float64(len(w.IDs))
	}
	return w.begins[node]
}

// ranked is the ranks of a worker's own nodes.
type ranked struct{ Rank []float64 }

// BuildPageRank declares the plan.
func BuildPageRank(g *rdd.Graph, c Config) *PageRankPlan {
	in, sources := c.packed(g)
	p := &PageRankPlan{targets: rdd.ScanBatches(in, addTargets), sources: rdd.ScanBatches(sources, addSources),
		changed: rdd.ScanBatches(in, addChanged), exact: c.Model.Exact(),
		shares:  tables.New[float64](g, "shares", tables.Dense(0, blockNodes), c.Model),
		hanging: tables.New[float64](g, "hanging", tables.Dense(1, 1), c.Model),
		changes: tables.New[float64](g, "changes", tables.Dense(c.MaxIterations+1, 1), c.Model)}
	p.work = tables.Worker(in, p.round, p.shares, p.hanging, p.changes)
	return p
}

// own is the nodes that a worker ranks, and the edges that lead to them.
type own struct {
	node  []int32
	from  []int32 // sources, by place, of the edges to node i are from[ends[i]:ends[i+1]]
	ends  []int
	flows []float64 // of all nodes, each at its place, where this worker has taken them
	*shared
	shares []float64 // by own node: of its rank, what flows along each edge
	hangs  []bool    // by own node: no edge leaves it

	columns []int32 // of the row at hand
	by      []float64
}

// shared is what workers of an executor share.
type shared struct {
	place  []int32 // by node: where its flow is kept
	source []int32 // by source: the same
	taken  atomic.Pointer[taken]
}

func sharedOf(w *walk) *shared {
	s := &shared{place: flowPlaces(w.Out), source: make([]int32, len(w.Source))}
	for i, node := range w.Source {
		s.source[i] = s.place[node]
	}
	return s
}

// ownOf finds them, in the order of nodes, so that their ranks lie beside one another in the table. Nodes that no edge
// leads to are dealt out by their places.
func ownOf(c *tables.Clock[*walk, rdd.Point, ranked]) *own {
	w := c.Param
	o := &own{ends: []int{0}, shared: c.SharedNotes(func() any { return sharedOf(w) }).(*shared)}
	from, ends, row := readEdges(c, o.source)
	o.from = make([]int32, 0, len(from))
	for node, r := range row {
		switch {
		case r > 0:
			o.from = append(o.from, from[ends[r-1]:ends[r]]...)
		case w.Into[node] || node%c.Workers() != c.Worker():
			continue
		}
		n := w.Out[node]
		o.node, o.ends = append(o.node, int32(node)), append(o.ends, len(o.from))
		o.shares, o.hangs = append(o.shares, 1/float64(max(1, n))), append(o.hangs, n == 0)
	}
	return o
}

// readEdges returns the sources, by place, of a worker's edges of one kind once, row by row, where each row ends, and
// of each node its row, from 1; 0 has none.
func readEdges(c *tables.Clock[*walk, rdd.Point, ranked], places []int32) (from []int32, ends []int, row []int32) {
	w := c.Param
	from, ends, row = make([]int32, 0, int(w.Lines)/c.Workers()), []int{0}, make([]int32, len(w.IDs))
	for _, b := range c.Batches(0, lookNodes) {
		for _, r := range b.Rows {
			row[w.at(int64(b.Labels[r]))] = int32(len(ends))
			all := b.Indices[b.Offsets[r]:b.Offsets[r+1]]
			for i, source := range all {
				if i == 0 || source != all[i-1] {
					from = append(from, places[source])
				}
			}
			ends = append(ends, len(from))
		}
		c.Worked(float64(len(b.Rows)))
	}
	return from, ends, row
}

// flowPlaces returns where the flow of each node is kept: what many edges carry is looked up often, and lies together;
// among those of about as many edges, as doublings count them, nodes keep their order, and so their neighbourhoods
// (Faldu et al., A Closer Look at Lightweight Graph Reordering, section IV).
func flowPlaces(out []int32) []int32 {
	var next [33]int32 // by the bits of a number of edges
	for _, n := range out {
		next[bits.Len32(uint32(n))]++
	}
	sum := int32(0)
	for b := range next {
		last := len(next) - 1 - b
		next[last], sum = sum, sum+next[last]
	}
	place := make([]int32, len(out))
	for node, n := range out {
		b := bits.Len32(uint32(n))
		place[node] = next[b]
		next[b]++
	}
	return place
}

// taken are the flows of all nodes that a worker has taken in a clock.
type taken struct {
	clock int
	flows []float64
}

// take returns the flows of all nodes as they are in the table. Where all workers see the same, those of an executor
// use what one of them has taken in the same clock: it takes others when all are past it.
func (o *own) take(clock int, shares *tables.Access[float64], exact bool) []float64 {
	if t := o.taken.Load(); exact && t != nil && t.clock == clock {
		return t.flows
	}
	if o.flows == nil {
		o.flows = huge.Make[float64](len(o.place), len(o.place))
	}
	for at := 0; at < len(o.flows); at += blockNodes {
		nodes := o.place[at:min(at+blockNodes, len(o.place))]
		values := shares.Row(at / blockNodes).Values
		for i, place := range nodes {
			o.flows[place] = values[i]
		}
	}
	if exact {
		o.taken.Store(&taken{clock, o.flows})
	}
	return o.flows
}

// round does a worker's clock: the first puts its nodes' ranks into the tables, each other one replaces them by what
// the edges that lead to them bring.
func (p *PageRankPlan) round(c *tables.Clock[*walk, rdd.Point, ranked]) error {
	o := c.Notes(func() any { return ownOf(c) }).(*own)
	w, shares, hanging := c.Param, p.shares.In(c), p.hanging.In(c)
	if c.Number() == 0 {
		for i, node := range o.node {
			c.State.Rank = append(c.State.Rank, w.begin(node))
			o.move(shares, hanging, i, w.begin(node))
		}
		return nil
	}
	flows := o.take(c.Number(), shares, p.exact)
	anew := 1 - w.damping + w.damping*hanging.Row(0).Values[0]
	changed := 0.0
	for i, node := range o.node {
		if i%lookNodes == 0 {
			c.Worked(float64(min(lookNodes, len(o.node)-i)))
		}
		flow := 0.0
		for _, from := range o.from[o.ends[i]:o.ends[i+1]] {
			flow += flows[from]
		}
		by := anew*w.begin(node) + w.damping*flow - c.State.Rank[i]
		changed += math.Abs(by)
		c.State.Rank[i] += by
		o.move(shares, hanging, i, by)
	}
	p.changes.In(c).Inc(c.Number(), 0, changed)
	return nil
}

// lookNodes is how many nodes a worker takes between two looks at whether it may go on.
const lookNodes = 64

// move notes what is added to the rank of an own node. Nodes are in their order: a row is added to when its last is.
func (o *own) move(shares, hanging *tables.Access[float64], i int, by float64) {
	node := o.node[i]
	o.columns, o.by = append(o.columns, node%blockNodes), append(o.by, by*o.shares[i])
	if row := node / blockNodes; i+1 == len(o.node) || o.node[i+1]/blockNodes != row {
		shares.IncCells(int(row), o.columns, o.by)
		o.columns, o.by = o.columns[:0], o.by[:0]
	}
	if o.hangs[i] {
		hanging.Inc(0, 0, by)
	}
}

// RankNodes computes PageRank.
func RankNodes(ctx context.Context, s *rdd.Session, c Config, p *PageRankPlan) (*Ranks, error) {
	w, err := p.walkOf(ctx, s, c)
	if err != nil {
		return nil, c.Located(ctx, err)
	}
	p.shares.Reshape((len(w.IDs)+blockNodes-1)/blockNodes, blockNodes)
	r := &Ranks{Nodes: w.IDs, Ranks: make([]float64, len(w.IDs)), Edges: w.Edges, Lines: w.Lines}
	for tick, err := range p.work.Clocks(ctx, s, w, c.MaxIterations+1, 1) {
		if err != nil {
			return nil, err
		}
		if r.Iterations = tick.Clock - 1; r.Iterations == 0 {
			continue
		}
		r.Change = p.changes.At(tick, r.Iterations).Values[0]
		tick.Report("objective", r.Change)
		if r.Change > c.Tol && r.Iterations < c.MaxIterations {
			continue
		}
		if err := p.settle(ctx, s, c, tick, w, r); err != nil {
			return nil, err
		}
		if r.Converged {
			tick.Stop()
		}
	}
	return r, nil
}

// settle takes the ranks of a tick, and how good they are. A round of an exact model has changed ranks by as much as
// they were from being left alone by it; where workers have not seen all of each other's, that says nothing, and one
// more round is done of what the tick has.
func (p *PageRankPlan) settle(ctx context.Context, s *rdd.Session, c Config, tick *tables.Tick, w *walk, r *Ranks) (
	err error) {
	p.collect(tick, w, r)
	r.Waited, r.StoppedBy = tick.WaitedShare(), "max-iterations"
	r.Bound = r.Change * c.Damping / (1 - c.Damping)
	if !c.Model.Exact() {
		if r.Change, err = p.left(ctx, s, w, r.Ranks); err != nil {
			return err
		}
		r.Bound = r.Change / (1 - c.Damping)
	}
	if r.Converged = c.Tol > 0 && r.Change <= c.Tol; r.Converged {
		r.StoppedBy = "tol"
	}
	return nil
}

// ranksOf are ranks, for a round that changes nothing but measures what it would.
type ranksOf struct {
	IDs     []int64
	Ranks   []float64
	Begins  []float64 // what comes from anew, by node
	Flows   []float64 // by place of a source
	Damping float64
}

// left returns by how much a round would change ranks, all together.
func (p *PageRankPlan) left(ctx context.Context, s *rdd.Session, w *walk, ranks []float64) (sum float64, err error) {
	hanging := 0.0
	for node, rank := range ranks {
		if w.Out[node] == 0 {
			hanging += rank
		}
	}
	q := ranksOf{IDs: w.IDs, Ranks: ranks, Damping: w.damping}
	for node, rank := range ranks {
		begin := (1 - w.damping + w.damping*hanging) * w.begin(int32(node))
		if q.Begins = append(q.Begins, begin); !w.Into[node] {
			sum += math.Abs(begin - rank)
		}
	}
	for _, node := range w.Source {
		q.Flows = append(q.Flows, w.damping*ranks[node]/float64(w.Out[node]))
	}
	of, err := p.changed.Run(ctx, s, q)
	for _, x := range of {
		sum += x
	}
	return sum, err
}

// addChanged adds what a round would change the ranks of a batch's nodes by.
func addChanged(sum float64, q ranksOf, b *rdd.Batch) float64 {
	for _, r := range b.Rows {
		node, _ := slices.BinarySearch(q.IDs, int64(b.Labels[r]))
		rank := q.Begins[node]
		all := b.Indices[b.Offsets[r]:b.Offsets[r+1]]
		for i, place := range all {
			if i == 0 || place != all[i-1] {
				rank += q.Flows[place]
			}
		}
		sum += math.Abs(rank - q.Ranks[node])
	}
	return sum
}

// walkOf reads the graph.
func (p *PageRankPlan) walkOf(ctx context.Context, s *rdd.Session, c Config) (*walk, error) {
	targets, err := p.targets.Run(ctx, s, 0)
	if err != nil {
		return nil, err
	}
	sources, err := p.sources.Run(ctx, s, 0)
	if err != nil {
		return nil, err
	}
	n, err := nodesOf(targets, sources)
	if err != nil {
		return nil, err
	}
	w := &walk{nodes: n, damping: c.Damping}
	for _, id := range c.Personal {
		if w.begins == nil {
			w.begins = make([]float64, len(n.IDs))
		}
		at := n.at(id)
		if int(at) == len(n.IDs) || n.IDs[at] != id {
			return nil, fault.Newf(fault.BadInput, "begin at", fmt.Sprintf("node %d", id), "the graph does not have it")
		}
		w.begins[at] += 1 / float64(len(c.Personal))
	}
	return w, nil
}

// collect takes the ranks of a tick, which sum to 1 but for rounding, and has them sum to 1.
func (p *PageRankPlan) collect(tick *tables.Tick, w *walk, r *Ranks) {
	sum := 0.0
	r.Dangling = 0
	var block []float64
	for node := range w.IDs {
		if node%blockNodes == 0 {
			block = p.shares.At(tick, node/blockNodes).Values
		}
		rank := block[node%blockNodes]
		if n := w.Out[node]; n > 0 {
			rank *= float64(n)
		} else {
			r.Dangling++
		}
		r.Ranks[node] = rank
		sum += rank
	}
	for node := range r.Ranks {
		r.Ranks[node] /= sum
	}
}
