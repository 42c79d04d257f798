package chart

import (
	"fmt"
	"html"
	"strings"
)

// Gantt is what each of several did over a time.
type Gantt struct {
	Of    string   // what the axis is of, with its unit
	Kinds []string // of what they do
	Idle  int      // the kind that is drawn hollow
	Names []string
	Rows  [][]Span // by name, in the order of time
	Marks []Mark
}

// Span is what one did for a while.
type Span struct {
	From, To float64
	Kind     int
}

// Mark is a time that is marked across all rows.
type Mark struct {
	At   float64
	Name string
}

// mostBars is how many rows are drawn.
const mostBars = 40

func (c *Gantt) end() (last float64) {
	for _, row := range c.Rows {
		for _, s := range row {
			last = max(last, s.To)
		}
	}
	for _, m := range c.Marks {
		last = max(last, m.At)
	}
	return last
}

// shown returns the places of the rows that are drawn: of many in each stretch the one that was busy the longest.
func (c *Gantt) shown() []int {
	places := make([]int, 0, min(len(c.Rows), mostBars))
	if len(c.Rows) <= mostBars {
		for i := range c.Rows {
			places = append(places, i)
		}
		return places
	}
	for k := range mostBars {
		from, to := k*len(c.Rows)/mostBars, (k+1)*len(c.Rows)/mostBars
		longest := from
		for i := from; i < to; i++ {
			if busy(c.Rows[i]) > busy(c.Rows[longest]) {
				longest = i
			}
		}
		places = append(places, longest)
	}
	return places
}

func busy(row []Span) float64 {
	if len(row) == 0 {
		return 0
	}
	return row[0].To
}

// below returns where the rows end.
func (c *Gantt) below() int { return len(c.shown())*(barHeight+barGap) + 4 }

func (c *Gantt) size() (int, int) {
	if len(c.Rows) == 0 || c.end() == 0 {
		return 0, 0
	}
	return width, c.below() + 20 + 18*len(c.Marks) + 18*((len(c.Kinds)+1)/2)
}

func (c *Gantt) draw(b *strings.Builder) {
	x := scale{0, c.end(), nameWidth, width - 8}
	for k, i := range c.shown() {
		y := k * (barHeight + barGap)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", nameWidth-6, y+barHeight-3,
			html.EscapeString(short(c.Names[i])))
		for _, s := range c.Rows[i] {
			if from, to := x.at(s.From), x.at(s.To); to > from {
				fmt.Fprintf(b, "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>",
					c.class(s.Kind), from, y, to-from, barHeight)
			}
		}
	}
	c.marks(b, x)
	c.keys(b)
}

// class returns how a kind is drawn.
func (c *Gantt) class(kind int) string {
	if kind == c.Idle {
		return "open mark s5"
	}
	return fmt.Sprintf("bar s%d fill", kind%6)
}

// marks draws a line for each mark, which a letter goes with, and the axis.
func (c *Gantt) marks(b *strings.Builder, x scale) {
	below := c.below()
	for i, m := range c.Marks {
		at, letter := x.at(m.At), string(rune('A'+i))
		fmt.Fprintf(b, "<line class=\"end\" stroke-dasharray=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\"/>"+
			"<text class=\"axis\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", dashes[i%6], at, at, below, at,
			below+12, letter)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">%s  %s: %s</text>", nameWidth, below+32+18*i, letter,
			html.EscapeString(m.Name), Number(m.At))
	}
	fmt.Fprintf(b, "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", nameWidth-6, below+12,
		html.EscapeString(c.Of))
}

func (c *Gantt) keys(b *strings.Builder) {
	top := c.below() + 24 + 18*len(c.Marks)
	for i, kind := range c.Kinds {
		x, y := nameWidth+(width-nameWidth)/2*(i%2), top+18*(i/2)
		fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"12\" height=\"12\"/><text x=\"%d\" y=\"%d\">"+
			"%s</text>", c.class(i), x, y, x+16, y+11, html.EscapeString(kind))
	}
}

func (c *Gantt) words() string {
	sums := make([]float64, len(c.Kinds))
	for _, row := range c.Rows {
		for _, s := range row {
			sums[s.Kind] += s.To - s.From
		}
	}
	var parts []string
	for i, kind := range c.Kinds {
		parts = append(parts, fmt.Sprintf("%s %s", kind, Number(sums[i])))
	}
	for _, m := range c.Marks {
		parts = append(parts, fmt.Sprintf("%s at %s", m.Name, Number(m.At)))
	}
	return fmt.Sprintf("%d in %s: %s", len(c.Rows), c.Of, strings.Join(parts, ", "))
}

func (c *Gantt) table() (header []string, rows [][]string) {
	for i, row := range c.Rows {
		for _, s := range row {
			rows = append(rows, []string{c.Names[i], c.Kinds[s.Kind], exact(s.From), exact(s.To)})
		}
	}
	return []string{"name", "what", "from", "to"}, rows
}
