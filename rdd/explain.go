package rdd

import (
	"fmt"
	"strings"
)

// Explain writes the plan, a node a line, with the stage that it is computed in:
// a shuffle ends one, and what reads it begins another. Alternatives of which one
// is chosen when the plan runs are shown with "or".
func (g *Graph) Explain() string {
	var b strings.Builder
	stages := make([]int, len(g.nodes))
	for id := range g.nodes {
		n := &g.nodes[id]
		for _, in := range n.inputs {
			at := stages[in]
			if g.nodes[in].shuffle != nil {
				at++
			}
			stages[id] = max(stages[id], at)
		}
		fmt.Fprintf(&b, "stage %d  %3d %s", stages[id], id, n.kind)
		if n.detail != "" {
			fmt.Fprintf(&b, " (%s)", n.detail)
		}
		if n.label != "" {
			fmt.Fprintf(&b, " %q", n.label)
		}
		b.WriteString(n.explainInputs())
		b.WriteByte('\n')
	}
	return b.String()
}

func (n *node) explainInputs() string {
	if n.choice == nil {
		if len(n.inputs) == 0 {
			return ""
		}
		return " of " + strings.Trim(fmt.Sprint(n.inputs), "[]")
	}
	var ways []string
	for _, in := range n.choice.inputs {
		ways = append(ways, strings.Trim(fmt.Sprint(in), "[]"))
	}
	return " of " + strings.Join(ways, " or ")
}
