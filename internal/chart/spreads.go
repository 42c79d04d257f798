package chart

import (
	"fmt"
	"html"
	"strings"
)

// Spreads are distributions below each other: the least, the quartiles and the most of each.
type Spreads struct {
	Of    string // what they are, with its unit
	Unit  string // behind each number
	Names []string
	Five  [][5]float64
}

func (c *Spreads) top() (top float64) {
	for _, f := range c.Five {
		top = max(top, f[4])
	}
	return top
}

func (c *Spreads) size() (int, int) {
	if c.top() == 0 {
		return 0, 0
	}
	return nameWidth + barsMax + 2*numberWidth, len(c.Five)*(barHeight+barGap) + 4
}

func (c *Spreads) draw(b *strings.Builder) {
	for i, f := range c.Five {
		y, x := i*(barHeight+barGap), [5]float64{}
		for k, v := range f {
			x[k] = nameWidth + v/c.top()*barsMax
		}
		middle := y + barHeight/2
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", nameWidth-6, y+barHeight-3,
			html.EscapeString(short(c.Names[i])))
		fmt.Fprintf(b, "<line class=\"end\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x[0], x[4], middle, middle)
		fmt.Fprintf(b, "<rect class=\"bar s0 fill\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>", x[1], y+2,
			max(1, x[3]-x[1]), barHeight-4)
		fmt.Fprintf(b, "<line class=\"end\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x[2], x[2], y, y+barHeight)
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\">%s</text>", x[4]+6, y+barHeight-3,
			html.EscapeString(fmt.Sprintf("%s, most %s %s", Number(f[2]), Number(f[4]), c.Unit)))
	}
}

func (c *Spreads) words() string {
	var parts []string
	for i, f := range c.Five {
		parts = append(parts, fmt.Sprintf("%s: %s to %s, median %s %s", c.Names[i], Number(f[0]), Number(f[4]),
			Number(f[2]), c.Unit))
	}
	return c.Of + ". " + strings.Join(parts, "; ")
}

func (c *Spreads) table() (header []string, rows [][]string) {
	for i, f := range c.Five {
		row := []string{c.Names[i]}
		for _, v := range f {
			row = append(row, exact(v))
		}
		rows = append(rows, row)
	}
	return []string{c.Of, "least", "first quartile", "median", "third quartile", "most"}, rows
}
