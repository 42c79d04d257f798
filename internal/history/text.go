package history

import (
	"fmt"
	"math"
	"strings"

	"github.com/volley-engine/volley/internal/chart"
)

// How much of a run is shown in a terminal.
const (
	mostTextRows      = 16
	mostTextExecutors = 12
	leastWidth        = 40
)

// shades are shares of a split's rows: none, parts, all.
var shades = []rune("·░▒▓█")

// heights are of bars side by side.
var heights = []rune("▁▂▃▄▅▆▇█")

// Text returns what a page shows of a run, for a terminal of a number of columns.
func (c *Run) Text(width int) string {
	width = max(leastWidth, width)
	var b strings.Builder
	for _, words := range c.Words() {
		b.WriteString(wrapped(words, width))
	}
	c.course(&b, width-12)
	c.strip(&b, width-12)
	c.executors(&b, width-36)
	c.planText(&b, width)
	return b.String()
}

// wrapped returns a text in lines of a number of columns at most, where its words are no longer.
func wrapped(text string, width int) string {
	var b strings.Builder
	at := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case at == 0:
		case at+1+n > width:
			b.WriteString("\n")
			at = 0
		default:
			b.WriteString(" ")
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String() + "\n"
}

// course shows the objective by iterations: of those that a column stands for the last one.
func (c *Run) course(b *strings.Builder, columns int) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range c.Points {
		low, high = min(low, p.Objective), max(high, p.Objective)
	}
	if len(c.Points) < 2 || !(high > low) || math.IsInf(high-low, 0) {
		return
	}
	columns = min(columns, len(c.Points))
	b.WriteString("\nobjective   ")
	for k := range columns {
		p := c.Points[(k+1)*len(c.Points)/columns-1]
		at := min(1, max(0, (p.Objective-low)/(high-low)))
		b.WriteRune(heights[int(at*float64(len(heights)-1)+0.5)])
	}
	fmt.Fprintf(b, "\n            %s to %s\n", chart.Number(c.Points[0].Objective),
		chart.Number(c.Points[len(c.Points)-1].Objective))
}

// strip shows the share of each split in the last steps: of those that a cell stands for the least.
func (c *Run) strip(b *strings.Builder, columns int) {
	steps := c.Steps[max(0, len(c.Steps)-columns):]
	rows := min(mostTextRows, c.Splits)
	if len(steps) == 0 || rows == 0 {
		return
	}
	fmt.Fprintf(b, "\nsplits      in steps %d to %d: %s all, %s a part, %s none of their rows\n", steps[0].Number,
		steps[len(steps)-1].Number, string(shades[4]), string(shades[1:4]), string(shades[0]))
	for row := range rows {
		from, to := row*c.Splits/rows, (row+1)*c.Splits/rows
		name := fmt.Sprint(from)
		if to-from > 1 {
			name = fmt.Sprintf("%d–%d", from, to-1)
		}
		fmt.Fprintf(b, "%10s  ", name)
		for i := range steps {
			b.WriteRune(shade(steps[i].Shares, from, to))
		}
		b.WriteString("\n")
	}
}

// shade returns how the least share of some splits is shown; of steps of which none is known, all.
func shade(shares []float64, from, to int) rune {
	least := 1.0
	for _, s := range shares[min(from, len(shares)):min(to, len(shares))] {
		least = min(least, s)
	}
	switch {
	case least <= 0:
		return shades[0]
	case least >= 1:
		return shades[len(shades)-1]
	}
	return shades[1+int(least*3)]
}

// executors shows how fast each is, the first where they are many.
func (c *Run) executors(b *strings.Builder, columns int) {
	top := 0.0
	for _, v := range c.Speeds {
		if !math.IsNaN(float64(v)) {
			top = max(top, float64(v))
		}
	}
	if top == 0 {
		return
	}
	b.WriteString("\nexecutors   rows a second\n")
	for e := range min(mostTextExecutors, len(c.Executors)) {
		v := float64(c.Speeds[e])
		if math.IsNaN(v) {
			v = 0
		}
		name := []rune(c.name(e))
		fmt.Fprintf(b, "%-20s  %-*s %s\n", string(name[:min(20, len(name))]), max(1, columns),
			strings.Repeat("█", int(v/top*float64(max(1, columns)))), chart.Number(v))
	}
	if n := len(c.Executors) - mostTextExecutors; n > 0 {
		fmt.Fprintf(b, "and %d more\n", n)
	}
}
