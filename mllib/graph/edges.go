package graph

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
)

// Edges are files with an edge a line: two nodes, whole numbers with blanks, tabs, a comma or a semicolon between them;
// what follows is not read. Empty lines, and those that begin with # or %, are left out.
type Edges struct {
	Data       []string
	Undirected bool // each edge leads both ways
	Splits     int
	Seed       uint64
}

// mark is what some programs begin files with.
var mark = []byte("\ufeff")

// mostNode is the greatest number of a node.
const mostNode = 1 << 53

// parse reads a line; false where it has no edge.
func parse(line []byte) (e rdd.Entry, ok bool, err error) {
	if source, rest, is := digits(line); is && len(rest) > 1 {
		if target, _, is := digits(rest[1:]); is {
			return rdd.Entry{Row: target, Col: source, Value: 1}, true, nil
		}
	}
	return parseAny(line)
}

// parseAny reads a line that is not as most are.
func parseAny(line []byte) (e rdd.Entry, ok bool, err error) {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, mark))
	if len(line) == 0 || line[0] == '#' || line[0] == '%' {
		return e, false, nil
	}
	var ids [2]int64
	rest := line
	for i := range ids {
		id, end, is := node(rest)
		if !is {
			return e, false, badEdge(string(line), string(rest[:end]), i)
		}
		ids[i], rest = id, rest[end:]
		for len(rest) > 0 && separates(rest[0]) {
			rest = rest[1:]
		}
	}
	return rdd.Entry{Row: ids[1], Col: ids[0], Value: 1}, true, nil
}

// fewDigits is how many digits a number has at the most that is a node's whatever they are.
const fewDigits = 15

// digits returns the number that a text begins with, what follows it, and whether it is a node's by its digits alone,
// with nothing else before what separates it from others.
func digits(text []byte) (n int64, rest []byte, is bool) {
	for i, c := range text {
		if c -= '0'; c > 9 {
			return n, text[i:], i > 0 && i <= fewDigits && separates(text[i])
		}
		n = n*10 + int64(c)
	}
	return n, nil, len(text) > 0 && len(text) <= fewDigits
}

// node returns the number that a text begins with, up to what separates it from others, and whether it is a node's.
func node(text []byte) (id int64, end int, is bool) {
	signs, digits := 0, 0
	for ; end < len(text) && !separates(text[end]); end++ {
		switch c := text[end]; {
		case c-'0' <= 9:
			id = min(id*10+int64(c-'0'), mostNode+1)
			digits++
		case end == 0 && (c == '-' || c == '+'):
			signs++
		}
	}
	is = digits > 0 && signs+digits == end && id <= mostNode
	if signs > 0 && text[0] == '-' {
		id = -id
	}
	return id, end, is
}

// separates reports whether a byte lies between numbers.
func separates(c byte) bool { return c == ' ' || c == '\t' || c == ',' || c == ';' }

func badEdge(line, word string, i int) error {
	switch {
	case word == "" && i == 0:
		return fmt.Errorf("%q does not begin with a node", line)
	case word == "":
		return fmt.Errorf("%q names one node, an edge has two", line)
	}
	return fmt.Errorf("%q is no number of a node (the %s of %q)", word, []string{"source", "target"}[i], line)
}

// entries declares the edges, by target and source.
func (d Edges) entries(g *rdd.Graph) rdd.Dataset[rdd.Entry] {
	return rdd.FlatMapLines(g, func(out []rdd.Entry, line []byte) ([]rdd.Entry, error) {
		e, is, err := parse(line)
		if is {
			out = append(out, e)
		}
		if is && d.Undirected {
			out = append(out, rdd.Entry{Row: e.Col, Col: e.Row, Value: 1})
		}
		return out, err
	}, d.Data...)
}

// packed lays the edges out by target, and has of each source how many there are. All of their values are 1.
func (d Edges) packed(g *rdd.Graph) (in, sources rdd.Packed[rdd.Point]) {
	return rdd.PackRows(d.entries(g), rdd.Splits(d.Splits), rdd.Seed(d.Seed), rdd.SinglePrecision())
}

// Located returns an error about a line with its file and number, where reading all of them again finds it.
func (d Edges) Located(ctx context.Context, err error) error {
	if fault.KindOf(err) != fault.UserCode {
		return err
	}
	failed := input.EachLine(ctx, d.Data, func(line []byte) error {
		_, _, err := parse(line)
		return err
	})
	return cmp.Or(failed, err)
}

// ends are the nodes of a side of the edges, in the order of a pack's rows. Of sources it has how many others each has
// edges to, too.
type ends struct {
	IDs    []float64
	Others []int64
	Edges  int64 // of which some may be the same
}

// addTargets adds a batch of edges by target.
func addTargets(e ends, _ int, b *rdd.Batch) ends {
	for _, r := range b.Rows {
		e.IDs = append(e.IDs, b.Labels[r])
	}
	return e
}

// addSources adds a batch of counts of edges by source.
func addSources(e ends, _ int, b *rdd.Batch) ends {
	for _, r := range b.Rows {
		counts := b.X64[int(r)*b.Features:]
		e.IDs = append(e.IDs, b.Labels[r])
		e.Others = append(e.Others, int64(counts[1]))
		e.Edges += int64(counts[0])
	}
	return e
}

// nodes are the nodes of a graph in order, and what is known of each.
type nodes struct {
	IDs    []int64
	Out    []int32 // edges that leave it
	Into   []bool  // whether some lead to it
	Source []int32 // by place among the nodes that edges leave: its place among all
	Edges  int64   // of one kind once
	Lines  int64
	place  []int32 // of nodes from the first on, by number, where these leave few out; else nil
}

// at returns the place of a node.
func (n *nodes) at(id int64) int32 {
	if i := id - n.IDs[0]; n.place != nil && i >= 0 && i < int64(len(n.place)) {
		return n.place[i]
	}
	i, _ := slices.BinarySearch(n.IDs, id)
	return int32(i)
}

// mostLeftOut is up to how many numbers a node has to itself where places are kept by number.
const mostLeftOut = 8

// index takes the numbers of nodes, of which some may be there twice. Places are kept by number where that takes no
// more than a few times the numbers' own memory; the place of a number that is left out is that of the next.
func (n *nodes) index(sides ...[]ends) {
	var all [][]float64
	count, first, last := 0, math.Inf(1), math.Inf(-1)
	for _, side := range sides {
		for _, e := range side {
			all, count = append(all, e.IDs), count+len(e.IDs)
			for _, id := range e.IDs {
				first, last = min(first, id), max(last, id)
			}
		}
	}
	if last-first >= float64(count)*mostLeftOut {
		n.search(all, count)
	} else {
		n.mark(all, int64(first), int64(last))
	}
}

// search has the places of nodes be searched for.
func (n *nodes) search(all [][]float64, count int) {
	n.IDs = make([]int64, 0, count)
	for _, ids := range all {
		for _, id := range ids {
			n.IDs = append(n.IDs, int64(id))
		}
	}
	slices.Sort(n.IDs)
	n.IDs = slices.Compact(n.IDs)
}

// mark keeps the places of nodes by number.
func (n *nodes) mark(all [][]float64, first, last int64) {
	n.place = make([]int32, last-first+1)
	count := 0
	for _, ids := range all {
		for _, id := range ids {
			there := &n.place[int64(id)-first]
			count += 1 - int(*there)
			*there = 1
		}
	}
	n.IDs = make([]int64, 0, count)
	for i, there := range n.place {
		if n.place[i] = int32(len(n.IDs)); there == 1 {
			n.IDs = append(n.IDs, first+int64(i))
		}
	}
}

var errNoEdges = errors.New("there are no edges")

// nodesOf finds the nodes of both sides.
func nodesOf(targets, sources []ends) (*nodes, error) {
	n := &nodes{}
	if !slices.ContainsFunc(targets, func(e ends) bool { return len(e.IDs) > 0 }) {
		return nil, fault.New(fault.BadInput, "read", "a graph", errNoEdges)
	}
	n.index(targets, sources)
	n.Out, n.Into = make([]int32, len(n.IDs)), make([]bool, len(n.IDs))
	for _, e := range targets {
		for _, id := range e.IDs {
			n.Into[n.at(int64(id))] = true
		}
	}
	count := 0
	for _, e := range sources {
		n.Lines, count = n.Lines+e.Edges, count+len(e.IDs)
		for k, id := range e.IDs {
			n.Out[n.at(int64(id))] = int32(e.Others[k])
			n.Edges += e.Others[k]
		}
	}
	n.Source = make([]int32, 0, count)
	for node, out := range n.Out {
		if out > 0 {
			n.Source = append(n.Source, int32(node))
		}
	}
	return n, nil
}
