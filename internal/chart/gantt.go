package chart

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// Gantt is what each of several did over a time.
type Gantt struct {
	Of    string // what the axis is of, with its unit
	Kinds []Kind // of what they do
	Idle  int    // the kind that is drawn hollow
	Names []string
	Rows  [][]Span // by name, in the order of time
	Marks []Mark
}

// Kind is one of the things that are done, its colour, as series have, and which part of its row's height it is drawn
// over: from the top, as shares of it; none is all.
type Kind struct {
	Name      string
	Colour    int
	Top, High float64
}

// place returns where a kind is drawn in a row, and how high.
func (k Kind) place(height float64) (top, high float64) {
	if k.High == 0 {
		return 0, height
	}
	return k.Top * height, k.High * height
}

// Span is what one did for a while.
type Span struct {
	From, To float64
	Kind     int
	Idle     float64 // part of it in which it did not, which it is drawn lower for
}

// Mark is a time that is marked across all rows.
type Mark struct {
	At   float64
	Name string
}

// letterWidth is the room of a mark's letter, in pixels.
const letterWidth = 11

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
			if c.busy(c.Rows[i]) > c.busy(c.Rows[longest]) {
				longest = i
			}
		}
		places = append(places, longest)
	}
	return places
}

// busy returns for how long one did anything.
func (c *Gantt) busy(row []Span) (sum float64) {
	for _, s := range row {
		if s.Kind != c.Idle {
			sum += s.To - s.From - s.Idle
		}
	}
	return sum
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
	x := scale{0, c.end(), nameWidth, width - 8 - 2*letterWidth}
	for k, i := range c.shown() {
		y := k * (barHeight + barGap)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", nameWidth-6, y+barHeight-3,
			html.EscapeString(short(c.Names[i])))
		for _, s := range c.Rows[i] {
			if from, to := x.at(s.From), x.at(s.To); to > from {
				top, high := c.Kinds[s.Kind].place(barHeight)
				if s.To > s.From {
					lower := high * min(0.75, s.Idle/(s.To-s.From))
					top, high = top+lower, high-lower
				}
				fmt.Fprintf(b, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
					c.class(s.Kind), from, float64(y)+top, to-from, high)
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
	return fmt.Sprintf("bar s%d fill", c.Kinds[kind].Colour)
}

// marks draws a line for each mark, which a letter goes with, and the axis.
func (c *Gantt) marks(b *strings.Builder, x scale) {
	below := c.below()
	free := 0.0 // from where on the place of letters is
	for i, m := range c.Marks {
		at, letter := x.at(m.At), string(rune('A'+i))
		free = max(at, free)
		fmt.Fprintf(b, "<line class=\"end\" stroke-dasharray=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\"/>"+
			"<text class=\"axis\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", dashes[i%6], at, at, below,
			free, below+12, letter)
		free += letterWidth
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">%s  at %s: %s</text>", nameWidth, below+32+18*i, letter, Number(m.At),
			html.EscapeString(m.Name))
	}
	fmt.Fprintf(b, "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", nameWidth-6, below+12,
		html.EscapeString(c.Of))
}

// occurs reports whether something of a kind was done.
func (c *Gantt) occurs(kind int) bool {
	return slices.ContainsFunc(c.Rows, func(row []Span) bool {
		return slices.ContainsFunc(row, func(s Span) bool { return s.Kind == kind && s.To > s.From })
	})
}

func (c *Gantt) keys(b *strings.Builder) {
	top := c.below() + 24 + 18*len(c.Marks)
	at := 0
	for i, kind := range c.Kinds {
		if !c.occurs(i) {
			continue
		}
		x, y := nameWidth+(width-nameWidth)/2*(at%2), top+18*(at/2)
		at++
		from, high := kind.place(12)
		fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"12\" height=\"%.1f\"/><text x=\"%d\" "+
			"y=\"%d\">%s</text>", c.class(i), x, float64(y)+from, high, x+16, y+11, html.EscapeString(kind.Name))
	}
}

func (c *Gantt) words() string {
	sums := make([]float64, len(c.Kinds))
	for _, row := range c.Rows {
		for _, s := range row {
			sums[s.Kind] += s.To - s.From - s.Idle
		}
	}
	var parts []string
	for i, kind := range c.Kinds {
		if sums[i] > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", kind.Name, Number(sums[i])))
		}
	}
	for _, m := range c.Marks {
		parts = append(parts, fmt.Sprintf("%s at %s", m.Name, Number(m.At)))
	}
	return fmt.Sprintf("%d in %s: %s", len(c.Rows), c.Of, strings.Join(parts, ", "))
}

func (c *Gantt) table() (header []string, rows [][]string) {
	for i, row := range c.Rows {
		for _, s := range row {
			rows = append(rows, []string{c.Names[i], c.Kinds[s.Kind].Name, exact(s.From), exact(s.To),
				exact(s.To - s.From - s.Idle)})
		}
	}
	return []string{"name", "what", "from", "to", "for"}, rows
}
