package pages

import (
	"compress/gzip"
	_ "embed"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"

	"github.com/volley-engine/volley/internal/chart"
	"github.com/volley-engine/volley/internal/web"
)

// Page is one that is shown. Its text comes from Parts, each of which is replaced by itself where the page is live.
type Page struct {
	Title string
	Back  []Link // to the pages that it is below of
	Parts []Part
	Live  string // path of its events; empty is of a page that does not change
}

// Link is one to another page.
type Link struct{ Path, Name string }

// Part is a part of a page, in HTML.
type Part struct {
	ID   string
	HTML string
}

// policy is what browsers may do for a page: nothing that it does not have from here.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data: blob:; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Routes returns those of what pages need: their style and script.
func Routes() []web.Route {
	return []web.Route{{Path: stylePath, Serve: fixed("text/css", chart.Style+frame)},
		{Path: scriptPath, Serve: fixed("text/javascript", script)}}
}

const (
	stylePath  = "/style.css"
	scriptPath = "/page.js"
)

// Free reports whether a path is of what pages need, of which nothing is secret.
func Free(path string) bool { return path == stylePath || path == scriptPath }

//go:embed page.js
var script string

// frame is the style of what pages have beside figures.
const frame = `
section:has(>figure){display:inline}nav{font-size:13px}.live{float:right;color:var(--soft);font-size:13px}
.state{border:1px solid var(--line);border-radius:3px;padding:0 .4rem;white-space:nowrap}
.alarm{border-left:4px solid var(--c1);padding:.2rem .6rem;margin:.3rem 0}
form.act{display:inline-block;margin:0 .6rem 0 0}button{font:inherit;padding:.15rem .7rem}
pre{overflow:auto;max-height:40rem;border:1px solid var(--line);padding:.5rem;font-size:12px}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
meter{width:6rem}.skip{position:absolute;left:-99rem}.skip:focus{position:static}
:focus-visible{outline:2px solid var(--c0);outline-offset:1px}
`

func fixed(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		packed(w, r, text)
	}
}

// Write shows a page.
func Write(w http.ResponseWriter, r *http.Request, p Page) { WriteStatus(w, r, http.StatusOK, p) }

// WriteStatus shows a page by which a request is answered with a status.
func WriteStatus(w http.ResponseWriter, r *http.Request, code int, p Page) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	packedStatus(w, r, code, p.text())
}

func (p *Page) text() string {
	var b strings.Builder
	title := html.EscapeString(p.Title)
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "+
		"content=\"width=device-width\"><title>%s</title><link rel=\"stylesheet\" href=\"%s\"><script defer "+
		"src=\"%s\"></script>", title, stylePath, scriptPath)
	if p.Live != "" { // without scripts it is asked for again
		b.WriteString("<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>")
	}
	b.WriteString("</head>\n<body><a class=\"skip\" href=\"#main\">to the content</a>")
	p.nav(&b)
	fmt.Fprintf(&b, "<main id=\"main\"%s>\n", live(p.Live))
	if p.Live != "" {
		b.WriteString("<span class=\"live\" id=\"live\" role=\"status\"></span>")
	}
	fmt.Fprintf(&b, "<h1>%s</h1>\n", title)
	for _, part := range p.Parts {
		fmt.Fprintf(&b, "<section id=\"%s\">%s</section>\n", part.ID, part.HTML)
	}
	b.WriteString("</main></body></html>\n")
	return b.String()
}

func (p *Page) nav(b *strings.Builder) {
	if len(p.Back) == 0 {
		return
	}
	b.WriteString("<nav aria-label=\"pages above\">")
	for i, l := range p.Back {
		if i > 0 {
			b.WriteString(" › ")
		}
		fmt.Fprintf(b, "<a href=\"%s\">%s</a>", html.EscapeString(l.Path), html.EscapeString(l.Name))
	}
	b.WriteString("</nav>")
}

func live(path string) string {
	if path == "" {
		return ""
	}
	return fmt.Sprintf(" data-live=\"%s\"", html.EscapeString(path))
}

func packed(w http.ResponseWriter, r *http.Request, text string) {
	packedStatus(w, r, http.StatusOK, text)
}

// packedStatus writes a text, compressed where the reader takes that. Who has asked may be gone.
func packedStatus(w http.ResponseWriter, r *http.Request, code int, text string) {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") || len(text) < 1024 {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Vary", "Accept-Encoding")
	w.WriteHeader(code)
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
}
