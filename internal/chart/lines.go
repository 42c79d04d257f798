package chart

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Lines are lines over one axis.
type Lines struct {
	Across, Up  string // what the axes are of
	Logarithmic bool   // upwards
	Loose       bool   // the axis upwards need not begin at 0
	Lines       []Line
}

// Line is a line of points, of which some may be marked as open, as those of passes that were cut.
type Line struct {
	Name string
	X, Y []float64
	Open []bool    // by point; nil has no marks
	Err  []float64 // standard error of each point that has a mark; nil, and 0, is not known
}

// dashes tell lines apart without colour.
var dashes = []string{"", "7 3", "2 3", "9 3 2 3", "4 2", "1 4"}

// mostPoints is how many points of a line are drawn; of more, those of each stretch that lie lowest and highest are.
const mostPoints = 400

// mostMarks is up to how many points have marks.
const mostMarks = 150

// scale maps values to pixels.
type scale struct{ low, high, from, to float64 }

func (s scale) at(v float64) float64 {
	if s.high == s.low {
		return s.from
	}
	if math.IsInf(s.high-s.low, 0) {
		return s.from + (v/2-s.low/2)/(s.high/2-s.low/2)*(s.to-s.from)
	}
	return s.from + (v-s.low)/(s.high-s.low)*(s.to-s.from)
}

// up returns the height of a value, before it is scaled.
func (c *Lines) up(y float64) float64 {
	if c.Logarithmic {
		return math.Log10(y)
	}
	return y
}

// drawn reports whether a value has a place.
func (c *Lines) drawn(x, y float64) bool {
	return !math.IsNaN(x+c.up(y)) && !math.IsInf(x+c.up(y), 0)
}

// scales returns those that all lines fit; false where there is no point.
func (c *Lines) scales() (x, y scale, ok bool) {
	x = scale{math.Inf(1), math.Inf(-1), margin, width - 8}
	y = scale{math.Inf(1), math.Inf(-1), height - 34, top}
	for _, l := range c.Lines {
		for i := range l.X {
			if c.drawn(l.X[i], l.Y[i]) {
				x.low, x.high = min(x.low, l.X[i]), max(x.high, l.X[i])
				y.low, y.high = min(y.low, c.up(l.Y[i])), max(y.high, c.up(l.Y[i]))
			}
		}
	}
	if !c.Logarithmic && !c.Loose {
		y.low = min(0, y.low)
	}
	return x, y, x.low <= x.high
}

func (c *Lines) size() (int, int) {
	if _, _, ok := c.scales(); !ok {
		return 0, 0
	}
	return width, height + 18*len(c.Lines)
}

func (c *Lines) draw(b *strings.Builder) {
	x, y, _ := c.scales()
	fmt.Fprintf(b, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" "+
		"height=\"%d\"/>", margin, top, width-8-margin, height-34-top)
	c.axes(b, x, y)
	for i, l := range c.Lines {
		l = c.thinned(l)
		fmt.Fprintf(b, "<polyline class=\"s%d\" stroke-dasharray=\"%s\" points=\"", i%6, dashes[i%6])
		for k := range l.X {
			fmt.Fprintf(b, "%.1f,%.1f ", x.at(l.X[k]), y.at(c.up(l.Y[k])))
		}
		b.WriteString("\"/>")
		for k := range l.Err {
			whisker(b, i%6, x.at(l.X[k]), y, c.up(l.Y[k]-2*l.Err[k]), c.up(l.Y[k]+2*l.Err[k]))
		}
		for k := range l.Open {
			fmt.Fprintf(b, "<circle class=\"mark s%d %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>", i%6,
				map[bool]string{true: "open", false: "fill"}[l.Open[k]], x.at(l.X[k]), y.at(c.up(l.Y[k])))
		}
		at := height + 4 + 18*i
		fmt.Fprintf(b, "<line class=\"key s%d\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke-dasharray=\"%s\"/>"+
			"<text x=\"%d\" y=\"%d\">%s</text>", i%6, margin, margin+40, at, at, dashes[i%6], margin+48, at+4,
			html.EscapeString(l.Name))
	}
}

// whisker draws what two standard errors on both sides of a point are, as far as it is within the scale.
func whisker(b *strings.Builder, series int, at float64, y scale, from, to float64) {
	if from, to = max(from, y.low), min(to, y.high); to > from { // not a number is none
		fmt.Fprintf(b, "<line class=\"s%d\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", series, at, at,
			y.at(from), y.at(to))
	}
}

// thinned returns a line of the points that have a place, of many those that show where it has been.
func (c *Lines) thinned(l Line) Line {
	out := Line{Name: l.Name}
	keep := func(i int) {
		out.X, out.Y = append(out.X, l.X[i]), append(out.Y, l.Y[i])
		if l.Open != nil && len(l.X) <= mostMarks {
			if out.Open = append(out.Open, l.Open[i]); l.Err != nil {
				out.Err = append(out.Err, l.Err[i])
			}
		}
	}
	stretch := max(1, 2*len(l.X)/mostPoints)
	for from := 0; from < len(l.X); from += stretch {
		low, high := -1, -1
		for i := from; i < min(from+stretch, len(l.X)); i++ {
			if !c.drawn(l.X[i], l.Y[i]) {
				continue
			}
			if low < 0 || l.Y[i] < l.Y[low] {
				low = i
			}
			if high < 0 || l.Y[i] > l.Y[high] {
				high = i
			}
		}
		switch {
		case low < 0:
		case low == high:
			keep(low)
		default:
			keep(min(low, high))
			keep(max(low, high))
		}
	}
	return out
}

// axes writes the ends of both axes, and marks between them.
func (c *Lines) axes(b *strings.Builder, x, y scale) {
	for _, v := range ticks(y, c.Logarithmic) {
		text := Number(v)
		if c.Logarithmic {
			text = Number(math.Pow(10, v))
		}
		fmt.Fprintf(b, "<text class=\"axis\" x=\"%d\" y=\"%.1f\" "+
			"text-anchor=\"end\">%s</text>", margin-4, y.at(v)+4, text)
	}
	for _, v := range ticks(x, false) {
		fmt.Fprintf(b, "<text class=\"axis\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", x.at(v), height-20,
			Number(v))
	}
	fmt.Fprintf(b, "<text class=\"axis\" x=\"%d\" y=\"%d\" "+
		"text-anchor=\"middle\">%s</text>", (margin+width)/2, height-6,
		html.EscapeString(c.Across))
	above(b, c.Up)
}

// above writes what an axis upwards is of, with its unit.
func above(b *strings.Builder, what string) {
	fmt.Fprintf(b, "<text class=\"axis halo\" x=\"%d\" y=\"14\" text-anchor=\"end\">↑ %s</text>", width-12,
		html.EscapeString(what))
}

// ticks returns round values between the ends of a scale: four or so, of a logarithmic one whole powers of ten where
// there are two.
func ticks(s scale, logarithmic bool) (all []float64) {
	span := s.high - s.low
	if !(span > 8*ulp(max(math.Abs(s.low), math.Abs(s.high)))) || math.IsInf(span, 0) {
		return []float64{s.low} // there are no round values between numbers that differ by their last bits
	}
	step := math.Pow(10, math.Floor(math.Log10(span/2)))
	for span/step > 5 {
		step *= 2
	}
	if logarithmic && span >= 2 {
		step = math.Ceil(span / 5)
	}
	first := math.Ceil(s.low / step)
	for k := range mostTicks {
		v := (first + float64(k)) * step
		if v > s.high+1e-9*span {
			break
		}
		all = append(all, v)
	}
	return all
}

// mostTicks is how many values an axis has at most.
const mostTicks = 12

// ulp returns the distance of a number to the next.
func ulp(v float64) float64 { return math.Nextafter(v, math.Inf(1)) - v }

func (c *Lines) words() string {
	var parts []string
	for _, l := range c.Lines {
		if n := len(l.X); n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d points, from %s at %s to %s at %s", l.Name, n, Number(l.Y[0]),
				Number(l.X[0]), Number(l.Y[n-1]), Number(l.X[n-1])))
		}
	}
	return fmt.Sprintf("%s by %s. %s", c.Up, c.Across, strings.Join(parts, "; "))
}

func (c *Lines) table() (header []string, rows [][]string) {
	for _, l := range c.Lines {
		for i := range l.X {
			rows = append(rows, []string{l.Name, exact(l.X[i]), exact(l.Y[i])})
		}
	}
	return []string{"line", c.Across, c.Up}, rows
}
