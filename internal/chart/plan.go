package chart

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// Plan is operations in the order in which they were declared, each with those that it is computed from.
type Plan struct {
	Nodes []PlanNode
}

// PlanNode is an operation.
type PlanNode struct {
	Number int
	Stage  int
	Name   string
	Says   string // what it has come to; empty where it has not run
	Busy   bool   // it has run
	Of     []int  // numbers of those that it is computed from
}

// Sizes of a plan, in pixels; and how many operations are drawn, the others are in its numbers.
const (
	planRow, planIndent  = 28, 14
	planGutter, planWide = 70, 760
	planMost             = 150
	planLetter           = 63 // tenths of a pixel, that one takes
	planLeast            = 22 // letters of a name that are drawn at least
)

// left returns where the box of an operation begins.
func (n *PlanNode) left() int { return planGutter + planIndent*min(n.Stage, 8) }

func (c *Plan) shown() []PlanNode { return c.Nodes[:min(len(c.Nodes), planMost)] }

func (c *Plan) size() (int, int) {
	if len(c.Nodes) == 0 {
		return 0, 0
	}
	return planWide, len(c.shown())*planRow + 24
}

func (c *Plan) draw(b *strings.Builder) {
	rows := map[int]int{} // by number
	for i, n := range c.shown() {
		rows[n.Number] = i
	}
	stage := -1
	for i, n := range c.shown() {
		y, x := i*planRow+14, n.left()
		for _, in := range n.Of {
			if from, there := rows[in]; there {
				edge(b, from*planRow+14, c.Nodes[from].left(), y, x)
			}
		}
		if n.Stage != stage {
			stage = n.Stage
			fmt.Fprintf(b, "<text class=\"axis\" x=\"0\" y=\"%d\">stage %d</text>", y+4, stage)
		}
		class := "frame"
		if n.Busy {
			class = "bar l0"
		}
		letters := (planWide - x - 20) * 10 / planLetter
		says := cut(n.Says, letters-planLeast)
		name := cut(fmt.Sprintf("%d %s", n.Number, n.Name), letters-len([]rune(says))-2)
		fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"22\"/><text x=\"%d\" "+
			"y=\"%d\">%s</text>", class, x, y-11, planWide-x-1, x+6, y+4, html.EscapeString(name))
		if says != "" {
			fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", planWide-8, y+4,
				html.EscapeString(says))
		}
	}
	if more := len(c.Nodes) - planMost; more > 0 {
		fmt.Fprintf(b, "<text class=\"axis\" x=\"%d\" y=\"%d\">and %d more, in the table</text>", planGutter,
			planMost*planRow+16, more)
	}
}

// cut returns a text of which the end is left out where it has more letters.
func cut(text string, letters int) string {
	if all := []rune(text); len(all) > letters {
		return string(all[:max(0, letters-1)]) + "…"
	}
	return text
}

// edge draws a line between two operations, farther out where they are farther apart.
func edge(b *strings.Builder, from, fromLeft, to, toLeft int) {
	left := max(48, min(fromLeft, toLeft)-6-min((to-from)/planRow, 12))
	fmt.Fprintf(b, "<path class=\"frame\" d=\"M%d %dL%d %dL%d %dL%d %d\"/>", fromLeft, from+2, left, from+6, left, to-4,
		toLeft, to)
}

func (c *Plan) words() string {
	ran := 0
	for _, n := range c.Nodes {
		if n.Busy {
			ran++
		}
	}
	return fmt.Sprintf("A plan of %d operations, of which %d have run tasks; the table has each", len(c.Nodes), ran)
}

func (c *Plan) table() (header []string, rows [][]string) {
	for _, n := range c.Nodes {
		rows = append(rows, []string{strconv.Itoa(n.Number), strconv.Itoa(n.Stage), n.Name,
			strings.Trim(fmt.Sprint(n.Of), "[]"), n.Says})
	}
	return []string{"node", "stage", "operation", "of", "came to"}, rows
}
