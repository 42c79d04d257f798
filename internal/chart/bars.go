package chart

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Bars are numbers side by side, the longest of which fills the width. One that is not a number says None.
type Bars struct {
	Of    string // what they are, with its unit
	Unit  string // behind each number
	None  string
	Names []string
	Bars  []float64
	End   float64 // where a line is drawn across all bars; 0 is none
	Weak  float64 // the share of the longest below which a bar is marked
}

// Sizes of bars, in pixels.
const (
	barHeight, barGap  = 16, 6
	nameWidth, barsMax = 130, 260
	numberWidth        = 90
)

func (c *Bars) longest() (top float64) {
	for _, v := range c.Bars {
		if !math.IsNaN(v) {
			top = max(top, v)
		}
	}
	return max(top, c.End)
}

// line returns where the line of the end is drawn.
func (c *Bars) line() float64 { return nameWidth + c.End/c.longest()*barsMax }

func (c *Bars) size() (int, int) {
	if c.longest() == 0 {
		return 0, 0
	}
	return nameWidth + barsMax + numberWidth, len(c.Bars)*(barHeight+barGap) + 4
}

func (c *Bars) draw(b *strings.Builder) {
	for i, v := range c.Bars {
		y := i * (barHeight + barGap)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", nameWidth-6, y+barHeight-3,
			html.EscapeString(short(c.Names[i])))
		if math.IsNaN(v) {
			fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">%s</text>", nameWidth, y+barHeight-3, html.EscapeString(c.None))
			continue
		}
		w := v / c.longest() * barsMax
		series, mark := 0, ""
		if v < c.Weak*c.longest() {
			series, mark = 1, "◂"
		}
		fmt.Fprintf(b, "<rect class=\"bar s%d fill\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>"+
			"<text x=\"%.1f\" y=\"%d\">%s</text>", series, nameWidth, y, w, barHeight, max(nameWidth+w, c.line())+6,
			y+barHeight-3, html.EscapeString(strings.Join(strings.Fields(Number(v)+" "+c.Unit+" "+mark), " ")))
	}
	if c.End > 0 {
		_, high := c.size()
		x := c.line()
		fmt.Fprintf(b, "<line class=\"end\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\"/>", x, x, high)
	}
}

// short returns a name of which the end is left out, where it is long.
func short(name string) string {
	if all := []rune(name); len(all) > 20 {
		return string(all[:19]) + "…"
	}
	return name
}

func (c *Bars) words() string {
	var parts []string
	for i, v := range c.Bars {
		if math.IsNaN(v) {
			parts = append(parts, c.Names[i]+": "+c.None)
		} else {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s: %s %s", c.Names[i], Number(v), c.Unit)))
		}
	}
	return c.Of + ". " + strings.Join(parts, "; ")
}

func (c *Bars) table() (header []string, rows [][]string) {
	for i, v := range c.Bars {
		rows = append(rows, []string{c.Names[i], exact(v)})
	}
	return []string{"name", c.Of}, rows
}
