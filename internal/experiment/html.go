package experiment

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// style reads in black and white: bars differ by their hatching, not their colour.
const style = `body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#111}
table{border-collapse:collapse;font-size:13px}td,th{border-bottom:1px solid #999;padding:.25rem .6rem;text-align:left}
figure{display:inline-block;margin:1rem 1.5rem 0 0;vertical-align:top}figcaption{font-weight:600;font-size:13px}
svg{font:12px system-ui,sans-serif}`

// html writes the report as one page without anything from elsewhere.
func (r *Report) html(b *strings.Builder) {
	fmt.Fprintf(b, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>%s</title>\n<style>%s</style>\n",
		html.EscapeString(r.Title), style)
	fmt.Fprintf(b, "<h1>%s</h1>\n", html.EscapeString(r.Title))
	for _, p := range r.About {
		fmt.Fprintf(b, "<p>%s</p>\n", html.EscapeString(p))
	}
	b.WriteString("<table><tr>")
	for _, h := range r.Header {
		fmt.Fprintf(b, "<th>%s</th>", html.EscapeString(h))
	}
	b.WriteString("</tr>\n")
	for _, row := range r.Rows {
		b.WriteString("<tr>")
		for _, text := range row {
			fmt.Fprintf(b, "<td>%s</td>", html.EscapeString(text))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table>\n")
	for i := range r.Charts {
		r.Charts[i].draw(b)
	}
	for i := range r.Groups {
		r.Groups[i].draw(b)
	}
	b.WriteString("</html>\n")
}

// Sizes of a chart, in pixels.
const (
	barHeight, barGap  = 16, 6
	nameWidth, barsMax = 130, 260
	numberWidth        = 70
)

// draw writes bars, the longest of which fills the width.
func (c *Chart) draw(b *strings.Builder) {
	top := 0.0
	for _, t := range c.Times {
		if !math.IsNaN(t) {
			top = max(top, t)
		}
	}
	if top == 0 {
		return
	}
	fmt.Fprintf(b, "<figure><figcaption>%s</figcaption><svg width=\"%d\" height=\"%d\" role=\"img\">",
		html.EscapeString(c.Title), nameWidth+barsMax+numberWidth, len(c.Times)*(barHeight+barGap))
	for i, t := range c.Times {
		y := i * (barHeight + barGap)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", nameWidth-6, y+barHeight-4,
			html.EscapeString(c.Names[i]))
		if math.IsNaN(t) {
			fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">does not arrive</text>", nameWidth, y+barHeight-4)
			continue
		}
		width := t / top * barsMax
		fmt.Fprintf(b, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\" stroke=\"#111\"/>",
			nameWidth, y,
			width, barHeight, []string{"#111", "#fff", "#888", "#ddd"}[i%4])
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\">%s s</text>", nameWidth+width+6, y+barHeight-4, number(t))
	}
	b.WriteString("</svg></figure>\n")
}
