package chart

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Picture is what a figure shows.
type Picture interface {
	// size returns the width and height of its drawing, in pixels; nothing is drawn where there is none.
	size() (width, height int)
	// draw writes the elements of its drawing.
	draw(b *strings.Builder)
	// words returns what it shows, for who does not see it.
	words() string
	// table returns its numbers.
	table() (header []string, rows [][]string)
}

// Figure is a picture with its title, the number in it that its reader looks for, and how to read it: what good looks
// like, what bad looks like, what to do.
type Figure struct {
	Title string
	Here  string
	Read  string
	Of    Picture
}

// Write writes a figure as HTML, with its numbers behind a link; nothing where there is nothing to show.
func (f Figure) Write(b *strings.Builder) {
	numbers := CSV(f.Of)
	if len(numbers) > mostNumbers {
		f.Linked(b, "")
		return
	}
	f.Linked(b, "data:text/csv;base64,"+base64.StdEncoding.EncodeToString(numbers))
}

// Linked does the same where its numbers are elsewhere; they have no link where that is empty.
func (f Figure) Linked(b *strings.Builder, numbers string) {
	if f.Empty() {
		return
	}
	fmt.Fprintf(b, "<figure><figcaption>%s</figcaption>%s", html.EscapeString(f.Title), SVG(f.Of))
	if f.Here != "" {
		fmt.Fprintf(b, "<p class=\"here\">Here: %s.</p>", html.EscapeString(f.Here))
	}
	if f.Read != "" {
		fmt.Fprintf(b, "<p class=\"read\">%s</p>", html.EscapeString(f.Read))
	}
	if numbers != "" {
		fmt.Fprintf(b, "<p class=\"data\"><a download=\"%s.csv\" href=\"%s\">table (CSV)</a></p>", fileName(f.Title),
			html.EscapeString(numbers))
	}
	b.WriteString("</figure>\n")
}

// Empty reports whether there is nothing to show.
func (f Figure) Empty() bool {
	_, height := f.Of.size()
	return height == 0
}

// mostNumbers is how long a figure's numbers may be, to be in the page.
const mostNumbers = 256 << 10

// fileName returns a title as a file may be named.
func fileName(title string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(title)), "-")
}

// SVG returns a picture's drawing.
func SVG(p Picture) string {
	var b strings.Builder
	w, h := p.size()
	words := html.EscapeString(p.words())
	fmt.Fprintf(&b, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"%s\">", w, h, w, h,
		words)
	p.draw(&b)
	b.WriteString("</svg>")
	return b.String()
}

// CSV returns a picture's numbers.
func CSV(p Picture) []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	header, rows := p.table()
	_ = w.Write(header)
	_ = w.WriteAll(rows) // a buffer takes all
	return out.Bytes()
}

// Style is how figures look: in colours that most of who confuse some tell apart (Okabe and Ito 2008), which dashes and
// hatching go with, and by the reader's own choice of light or dark.
const Style = `:root{color-scheme:light dark;--ink:#111;--paper:#fff;--line:#999;--soft:#555;
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#a8507f;--c4:#8a6d00;--c5:#333}
@media(prefers-color-scheme:dark){:root{--ink:#eee;--paper:#14171a;--line:#777;--soft:#bbb;
--c0:#56b4e9;--c1:#f0883e;--c2:#2fc79a;--c3:#dd9cc0;--c4:#e6c84a;--c5:#ccc}}
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:var(--ink);
background:var(--paper)}a{color:var(--c0)}
table{border-collapse:collapse;font-size:13px}td,th{border-bottom:1px solid var(--line);padding:.25rem .6rem;
text-align:left}.wide{overflow-x:auto}p,h1,h2,summary{overflow-wrap:break-word}
figure{display:inline-block;margin:1rem 1.5rem 0 0;vertical-align:top;max-width:100%}
figcaption{font-weight:600;font-size:13px}.here,.read,.data{font-size:13px;max-width:520px;margin:.2rem 0}
.read,.data{color:var(--soft)}
.first{font-weight:600}svg{font:12px system-ui,sans-serif;max-width:100%;height:auto}svg text{fill:var(--ink)}
svg .frame{fill:none;stroke:var(--line)}svg .axis{fill:var(--soft)}
svg .halo{paint-order:stroke;stroke:var(--paper);stroke-width:4}
svg text.on{fill:var(--paper)}svg .bar{stroke:var(--ink)}svg .end{stroke:var(--ink);stroke-width:2}
` + classes

// classes has a colour for each series.
const classes = `.s0{stroke:var(--c0);--f:var(--c0)}.s1{stroke:var(--c1);--f:var(--c1)}
.s2{stroke:var(--c2);--f:var(--c2)}
.s3{stroke:var(--c3);--f:var(--c3)}.s4{stroke:var(--c4);--f:var(--c4)}.s5{stroke:var(--c5);--f:var(--c5)}
polyline,line.key{fill:none;stroke-width:1.5}.fill{fill:var(--f)}.open{fill:var(--paper)}.mark{stroke-width:1}
.l0{fill:var(--ink);fill-opacity:.12}.l1{fill:var(--ink);fill-opacity:.34}.l2{fill:var(--ink);fill-opacity:.56}
.l3{fill:var(--ink);fill-opacity:.78}.l4{fill:var(--ink)}`

// Number returns a number with as many digits as a figure needs.
func Number(v float64) string {
	size := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "–"
	case size < 1e4 || size >= 1e12:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	digits := strconv.FormatInt(int64(math.Round(v)), 10)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// exact returns a number with all of its digits.
func exact(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Sizes of drawings, in pixels.
const (
	width, height = 520, 260
	margin        = 60
	top           = 20 // of what is drawn, below what the axis is of
)
