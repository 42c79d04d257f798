package rdd

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// Explanation is a plan, node by node, in the order in which they were declared; with what they came to, where it is of
// a session.
type Explanation struct {
	Nodes []ExplainedNode
}

// ExplainedNode is an operation of a plan.
type ExplainedNode struct {
	ID     int
	Stage  int // that it is computed in: a shuffle ends one, and what reads it begins another
	Kind   string
	Detail string
	Label  string  // of Named
	Inputs [][]int // ways to compute it, each of some nodes: several where one is chosen when the plan runs
	Chosen int     // the way that was taken, plus one; 0 is not known
	// Bytes of the files that are read, or, once it has run, of the rows that a shuffle has moved; −1 is not known.
	Bytes int64
	Rows  int64 // of a shuffle that has run; −1 is not known
	Tasks int   // map tasks of a shuffle that has run
	// Partitions of a shuffle that has run, and how many small ones were joined into.
	Partitions, Joined int
}

// Explain writes the plan, a node a line, with the stage that it is computed in:
// a shuffle ends one, and what reads it begins another. Alternatives of which one
// is chosen when the plan runs are shown with "or".
func (g *Graph) Explain() string { return g.Explained().String() }

// Explained returns the plan as it is declared, with the bytes of its files where they have been looked up.
func (g *Graph) Explained() *Explanation {
	out := &Explanation{Nodes: make([]ExplainedNode, g.size())}
	for id := range g.size() {
		n, e := g.node(id), &out.Nodes[id]
		*e = ExplainedNode{ID: id, Kind: n.kind, Detail: n.detail, Label: n.label, Bytes: -1, Rows: -1}
		for _, in := range n.inputs {
			at := out.Nodes[in].Stage
			if g.node(in).shuffle != nil {
				at++
			}
			e.Stage = max(e.Stage, at)
		}
		switch {
		case n.choice != nil:
			e.Inputs = n.choice.inputs
		case len(n.inputs) > 0:
			e.Inputs = [][]int{n.inputs}
		}
	}
	for _, d := range g.sources.items() {
		if d.source != nil {
			out.Nodes[d.node].Bytes = d.bytes()
		}
	}
	return out
}

// Explained returns the plan with what has run so far: the rows and bytes that shuffles have moved, which small
// partitions were joined, and which ways were taken.
func (s *Session) Explained() *Explanation {
	_, leave, _ := s.enter(context.Background(), true)
	defer leave()
	out := s.g.Explained()
	for id := range out.Nodes {
		n, e := s.g.node(id), &out.Nodes[id]
		if d := s.g.decisionOf(id); n.choice != nil && len(d) == 1 {
			e.Chosen = d[0] + 1
		}
		if n.shuffle != nil && s.shuffled[id] != nil {
			s.explainShuffle(id, e)
		}
	}
	return out
}

// explainShuffle adds what a shuffle has moved.
func (s *Session) explainShuffle(id int, e *ExplainedNode) {
	e.Rows, e.Bytes = 0, 0
	for _, o := range s.shuffled[id] {
		if o != nil {
			e.Tasks++
			e.Rows += o.Rows
			e.Bytes += sumOf(o.Raw)
		}
	}
	sums := s.sums[id]
	if sums == nil || len(sums.bytes) == 0 {
		return
	}
	e.Bytes += sumOf(sums.bytes)
	e.Partitions = len(sums.bytes)
	for family := range s.g.size() {
		for _, joined := range s.g.node(family).joins {
			if d := s.g.decisionOf(family); joined == id && len(d) > 1 {
				e.Joined = len(d) - 1
			}
		}
	}
}

// String returns the plan as text.
func (x *Explanation) String() string {
	var b strings.Builder
	for i := range x.Nodes {
		n := &x.Nodes[i]
		fmt.Fprintf(&b, "stage %d  %3d %s%s", n.Stage, n.ID, n.name(), n.inputs())
		if size := n.size(); size != "" {
			b.WriteString(": " + size)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// name returns what a node is.
func (n *ExplainedNode) name() string {
	name := n.Kind
	if n.Detail != "" {
		name += " (" + n.Detail + ")"
	}
	if n.Label != "" {
		name += fmt.Sprintf(" %q", n.Label)
	}
	return name
}

// inputs returns what a node is computed from: the way that was taken, or all that there are.
func (n *ExplainedNode) inputs() string {
	var ways []string
	for i, in := range n.Inputs {
		if n.Chosen == 0 || n.Chosen == i+1 {
			ways = append(ways, strings.Trim(fmt.Sprint(in), "[]"))
		}
	}
	if len(ways) == 0 {
		return ""
	}
	return " of " + strings.Join(ways, " or ")
}

// size returns how much a node came to.
func (n *ExplainedNode) size() string {
	var parts []string
	if n.Rows >= 0 {
		parts = append(parts, fmt.Sprintf("%d rows", n.Rows))
	}
	if n.Bytes >= 0 {
		parts = append(parts, inBytes(n.Bytes))
	}
	if n.Tasks > 0 {
		parts = append(parts, fmt.Sprintf("%d map tasks", n.Tasks))
	}
	switch {
	case n.Joined > 0 && n.Joined < n.Partitions:
		parts = append(parts, fmt.Sprintf("%d partitions joined into %d", n.Partitions, n.Joined))
	case n.Partitions > 0:
		parts = append(parts, fmt.Sprintf("%d partitions", n.Partitions))
	}
	return strings.Join(parts, ", ")
}

// inBytes returns a number of bytes in a unit that suits it.
func inBytes(n int64) string {
	f, unit := float64(n), 0
	for f >= 1024 && unit < 5 {
		f, unit = f/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %ciB", f, "KMGTP"[unit-1])
}

// Measures of the drawing, in pixels.
const (
	drawnLine   = 34
	drawnStage  = 28
	drawnLetter = 7
	drawnMargin = 16
)

// WriteSVG draws the plan: a column for each stage, a box for each node, and a line from each input; those of ways that
// were not taken are dashed.
func (x *Explanation) WriteSVG(w io.Writer) error {
	at, width, height := x.places()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="monospace" font-size="12">`+
		"\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", width, height)
	for i := range x.Nodes {
		n := &x.Nodes[i]
		for way, inputs := range n.Inputs {
			dashes := ""
			if n.Chosen > 0 && n.Chosen != way+1 {
				dashes = ` stroke-dasharray="3 4"`
			}
			for _, in := range inputs {
				from, to := at[in], at[i]
				fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#888"%s/>`+"\n", from.x+from.width, from.y+11,
					to.x, to.y+11, dashes)
			}
		}
	}
	for i := range x.Nodes {
		n, p := &x.Nodes[i], at[i]
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="22" fill="%s" stroke="#333"/>`+"\n", p.x, p.y, p.width,
			map[bool]string{true: "#eee", false: "white"}[n.Tasks > 0])
		fmt.Fprintf(&b, `<text x="%d" y="%d">`, p.x+6, p.y+15)
		if err := xml.EscapeText(&b, []byte(n.drawn())); err != nil {
			return err
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// drawn returns the text of a node's box.
func (n *ExplainedNode) drawn() string {
	text := fmt.Sprintf("%d %s", n.ID, n.name())
	if r := []rune(text); len(r) > 60 {
		text = string(r[:59]) + "…"
	}
	if size := n.size(); size != "" {
		text += ": " + size
	}
	return text
}

// drawnPlace is where a box lies.
type drawnPlace struct{ x, y, width int }

// places lays the boxes out: stages side by side, the nodes of each below one another.
func (x *Explanation) places() (at []drawnPlace, width, height int) {
	at = make([]drawnPlace, len(x.Nodes))
	var wide, rows []int
	for i := range x.Nodes {
		n := &x.Nodes[i]
		for len(wide) <= n.Stage {
			wide, rows = append(wide, 0), append(rows, 0)
		}
		at[i].width = drawnLetter*len([]rune(n.drawn())) + 14
		at[i].y = drawnMargin + drawnLine*rows[n.Stage]
		wide[n.Stage], rows[n.Stage] = max(wide[n.Stage], at[i].width), rows[n.Stage]+1
		height = max(height, at[i].y+drawnLine)
	}
	left := drawnMargin
	starts := make([]int, len(wide))
	for stage, w := range wide {
		starts[stage] = left
		left += w + drawnStage
	}
	for i := range at {
		at[i].x = starts[x.Nodes[i].Stage]
	}
	return at, left, height + drawnMargin
}
