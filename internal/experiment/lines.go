package experiment

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// lines is a chart of lines over one axis.
type lines struct {
	title, across string
	logarithmic   bool
	lines         []line
}

type line struct {
	name string
	x, y []float64
}

var dashes = []string{"", "7 3", "2 3", "9 3 2 3", "4 2", "1 4"}

// scale maps values to pixels.
type scale struct{ low, high, from, to float64 }

func (s scale) at(v float64) float64 {
	if s.high == s.low {
		return s.from
	}
	return s.from + (v-s.low)/(s.high-s.low)*(s.to-s.from)
}

// over returns the value of a line that the chart shows.
func (c *lines) over(y float64) float64 {
	if c.logarithmic {
		return math.Log10(y)
	}
	return y
}

// scales returns those that all lines fit; false where there is no point.
func (c *lines) scales() (x, y scale, ok bool) {
	x, y = scale{math.Inf(1), math.Inf(-1), margin, figureWidth - 8}, scale{math.Inf(1), math.Inf(-1),
		figureHeight - 30, 8}
	for _, l := range c.lines {
		for i := range l.x {
			x.low, x.high = min(x.low, l.x[i]), max(x.high, l.x[i])
			y.low, y.high = min(y.low, c.over(l.y[i])), max(y.high, c.over(l.y[i]))
		}
	}
	if !c.logarithmic {
		y.low = min(0, y.low)
	}
	return x, y, x.low <= x.high
}

func (c *lines) draw(b *strings.Builder) {
	x, y, ok := c.scales()
	if !ok {
		return
	}
	fmt.Fprintf(b, "<figure><figcaption>%s</figcaption><svg width=\"%d\" height=\"%d\" role=\"img\">",
		html.EscapeString(c.title), figureWidth, figureHeight+16*len(c.lines))
	fmt.Fprintf(b, "<rect x=\"%d\" y=\"8\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#999\"/>", margin,
		figureWidth-8-margin, figureHeight-38)
	c.mark(b, x, y)
	for i, l := range c.lines {
		var points strings.Builder
		for k := range l.x {
			fmt.Fprintf(&points, "%.1f,%.1f ", x.at(l.x[k]), y.at(c.over(l.y[k])))
		}
		fmt.Fprintf(b,
			"<polyline points=\"%s\" fill=\"none\" stroke=\"#111\" stroke-width=\"1.5\" stroke-dasharray=\"%s\"/>",
			points.String(), dashes[i%len(dashes)])
		at := figureHeight + 16*i
		fmt.Fprintf(b, "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#111\" stroke-width=\"1.5\" "+
			"stroke-dasharray=\"%s\"/><text x=\"%d\" y=\"%d\">%s</text>", margin, margin+40, at, at,
			dashes[i%len(dashes)],
			margin+48, at+4, html.EscapeString(l.name))
	}
	b.WriteString("</svg></figure>\n")
}

// mark writes the ends of both axes.
func (c *lines) mark(b *strings.Builder, x, y scale) {
	for _, v := range []float64{y.low, y.high} {
		text := number(v)
		if c.logarithmic {
			text = number(math.Pow(10, v))
		}
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>", margin-4, y.at(v)+4, text)
	}
	for _, v := range []float64{x.low, x.high} {
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", min(x.at(v), figureWidth-30),
			figureHeight-14, html.EscapeString(number(v)+" "+c.across))
	}
}
