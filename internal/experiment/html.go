package experiment

import (
	"fmt"
	"html"
	"strings"

	"github.com/volley-engine/volley/internal/chart"
	"github.com/volley-engine/volley/internal/history"
)

// html writes the report as one page without anything from elsewhere.
func (r *Report) html(b *strings.Builder) {
	fmt.Fprintf(b, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>%s</title>\n<style>%s</style>\n",
		html.EscapeString(r.Title), chart.Style)
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
		if title := r.Groups[i].Title; title != "" {
			fmt.Fprintf(b, "<h2>%s</h2>\n", html.EscapeString(title))
		}
		history.Draw(b, r.Groups[i].Courses)
	}
	b.WriteString("</html>\n")
}

// draw writes bars, the longest of which fills the width.
func (c *Chart) draw(b *strings.Builder) {
	chart.Figure{Title: c.Title, Of: &chart.Bars{Of: "seconds", Unit: "s", None: "does not arrive", Names: c.Names,
		Bars: c.Times}}.Write(b)
}
