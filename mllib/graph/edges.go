package graph

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
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

// packed lays the edges out by target and by source. All of their values are 1.
func (d Edges) packed(g *rdd.Graph) (in, out rdd.Packed[rdd.Point]) {
	return rdd.PackEntries(d.entries(g), rdd.Splits(d.Splits), rdd.Seed(d.Seed), rdd.SinglePrecision())
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

// ends are the nodes of a side of the edges, in the order of a pack's rows, with how many others each has edges to.
type ends struct {
	IDs    []float64
	Others []int64
	Edges  int64 // of which some may be the same
}

func addEnds(e ends, _ int, b *rdd.Batch) ends {
	for _, r := range b.Rows {
		all := b.Indices[b.Offsets[r]:b.Offsets[r+1]]
		e.IDs = append(e.IDs, b.Labels[r])
		e.Others = append(e.Others, int64(distinct(all)))
		e.Edges += int64(len(all))
	}
	return e
}

// distinct returns how many numbers of an ascending list there are.
func distinct(list []int32) (n int) {
	for i, x := range list {
		if i == 0 || x != list[i-1] {
			n++
		}
	}
	return n
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
func (n *nodes) index(ids []int64) {
	first, last := slices.Min(ids), slices.Max(ids)
	if last-first >= int64(len(ids))*mostLeftOut {
		slices.Sort(ids)
		n.IDs = slices.Compact(ids)
		return
	}
	n.place = make([]int32, last-first+1)
	for _, id := range ids {
		n.place[id-first] = 1
	}
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
	var ids []int64
	for _, side := range [][]ends{targets, sources} {
		for _, e := range side {
			for _, id := range e.IDs {
				ids = append(ids, int64(id))
			}
		}
	}
	if len(ids) == 0 {
		return nil, fault.New(fault.BadInput, "read", "a graph", errNoEdges)
	}
	n.index(ids)
	n.Out, n.Into = make([]int32, len(n.IDs)), make([]bool, len(n.IDs))
	for _, e := range targets {
		for _, id := range e.IDs {
			n.Into[n.at(int64(id))] = true
		}
	}
	for _, e := range sources {
		n.Lines += e.Edges
		for k, id := range e.IDs {
			n.Out[n.at(int64(id))] = int32(e.Others[k])
			n.Edges += e.Others[k]
		}
	}
	for node, out := range n.Out {
		if out > 0 {
			n.Source = append(n.Source, int32(node))
		}
	}
	return n, nil
}
