package site

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/internal/chart"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/history"
	"github.com/volley-engine/volley/internal/pages"
	"github.com/volley-engine/volley/internal/web"
)

// Site shows the runs of a folder.
type Site struct {
	dir      string
	sessions *web.Sessions

	mu     sync.Mutex
	logs   found
	made   map[string]page // of runs, by their logs
	reads  chan struct{}   // a place for each log that is being read
	server *web.Server
}

// page is a page that was made, of logs as they were then.
type page struct {
	of   []entry
	text string
	runs []history.Run
}

// How many pages are kept, how many runs one may compare, and how many logs are read at a time.
const (
	mostPages    = 32
	mostCompared = 12
	atOnce       = 2
	ofList       = 200 // entries on a page of the list
)

// Serve begins to show a folder at an address of this machine, HOST:PORT.
func Serve(dir, addr string, log hclog.Logger) (*Site, error) {
	s := &Site{dir: dir, sessions: web.NewSessions("volley_history", nil), logs: found{}, made: map[string]page{},
		reads: make(chan struct{}, atOnce)}
	if _, err := s.logs.scan(dir); err != nil {
		return nil, fault.New(fault.BadInput, "show", dir, err)
	}
	server, err := web.Serve(web.Config{Addr: addr, Logger: log, Refusal: s.refusal, Routes: append(pages.Routes(),
		web.Route{Path: "/{$}", Serve: s.list}, web.Route{Path: web.EnterPath, Serve: s.open},
		web.Route{Path: "/runs", Serve: s.runs}, web.Route{Path: "/numbers", Serve: s.numbers})})
	if err != nil {
		return nil, err
	}
	s.server = server
	return s, nil
}

// Link returns where a browser begins: each lets one in.
func (s *Site) Link() string { return "http://" + s.server.Addr() + s.sessions.Link(web.Grant{}) }

// Close ends it.
func (s *Site) Close() error { return s.server.Close() }

// refusal returns why a request is not answered: it is of a browser that has not opened the link.
func (s *Site) refusal(r *http.Request) (code int, why string) {
	if _, ok := s.sessions.Of(r); ok || r.URL.Path == web.EnterPath || pages.Free(r.URL.Path) {
		return 0, ""
	}
	return http.StatusUnauthorized, "open the link that volley history has printed; it works once"
}

// open lets a browser in that has the link.
func (s *Site) open(w http.ResponseWriter, r *http.Request) {
	if !s.sessions.Enter(w, r, r.URL.Query().Get("token")) {
		web.Refuse(w, http.StatusUnauthorized, "this link has been used, or is none: start volley history again for "+
			"another")
		return
	}
	web.Opened(w, r, "/")
}

// list shows the logs of the folder, the newest first.
func (s *Site) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	all, err := s.logs.scan(s.dir)
	s.mu.Unlock()
	if err != nil {
		web.Refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	from, err := strconv.Atoi(r.URL.Query().Get("from"))
	if err != nil || from < 0 || from >= len(all) {
		from = 0
	}
	pages.Write(w, r, pages.Page{Title: "Runs", Parts: []pages.Part{{ID: "runs", HTML: listed(all, from)}}})
}

// listed returns a part of the list, from which runs are chosen.
func listed(all []entry, from int) string {
	if len(all) == 0 {
		return "<p>There are no event logs here. volley run … --event-log run.log writes one.</p>"
	}
	var b strings.Builder
	some := all[from:min(from+ofList, len(all))]
	fmt.Fprintf(&b, "<p>%d to %d of %d event logs, the newest first.</p><form action=\"/runs\"><div "+
		"class=\"wide\"><table>"+
		"<tr><th>compare</th><th>log</th><th>written</th><th>job</th><th>sync</th><th>rows</th><th>splits</th>"+
		"<th>steps</th><th>ended by</th></tr>\n", from+1, from+len(some), len(all))
	for _, e := range some {
		name, link := html.EscapeString(e.Path), html.EscapeString("/runs?"+url.Values{"log": {e.Path}}.Encode())
		if e.Unusable != "" {
			fmt.Fprintf(&b, "<tr><td></td><td>%s</td><td>%s</td><td "+
				"colspan=\"6\">%s</td></tr>\n", name, written(e), e.Unusable)
			continue
		}
		ended := e.Stopped
		if ended == "" {
			ended = "has no end"
		}
		fmt.Fprintf(&b, "<tr><td><input type=\"checkbox\" name=\"log\" value=\"%s\" aria-label=\"compare "+
			"%s\"></td><td>"+
			"<a "+
			"href=\"%s\">%s</a></td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%d</td><td>%d</td><td>%s</td></tr>"+
			"\n",
			name, name, link, name, written(e), html.EscapeString(e.Job), html.EscapeString(e.Sync),
			chart.Number(float64(e.Rows)), e.Splits, e.Steps, html.EscapeString(ended))
	}
	b.WriteString("</table></div><p><button>Compare</button></p></form>")
	if next := from + ofList; next < len(all) {
		fmt.Fprintf(&b, "<p><a href=\"/?from=%d\">older</a></p>", next)
	}
	return b.String()
}

func written(e entry) string { return e.Changed.UTC().Format(time.DateTime) }

// runs shows the runs of logs, compared where they are several.
func (s *Site) runs(w http.ResponseWriter, r *http.Request) {
	if p, ok := s.asked(w, r); ok {
		pages.Write(w, r, pages.Page{Title: strings.Join(r.URL.Query()["log"], ", "),
			Back: []pages.Link{{Path: "/", Name: "all runs"}}, Parts: []pages.Part{{ID: "run", HTML: p.text}}})
	}
}

// numbers returns the numbers of a figure of the run of a log.
func (s *Site) numbers(w http.ResponseWriter, r *http.Request) {
	p, ok := s.asked(w, r)
	if !ok {
		return
	}
	f, ok := p.runs[0].Figures()[r.URL.Query().Get("figure")]
	if !ok {
		web.Refuse(w, http.StatusNotFound, "there is no such figure")
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(chart.CSV(f.Of)) // who has asked may be gone
}

// asked returns what was made of the logs that a request names; false is that it is refused.
func (s *Site) asked(w http.ResponseWriter, r *http.Request) (p page, ok bool) {
	names := r.URL.Query()["log"]
	if len(names) == 0 || len(names) > mostCompared {
		web.Refuse(w, http.StatusBadRequest, fmt.Sprintf("choose 1 to %d runs", mostCompared))
		return p, false
	}
	s.mu.Lock()
	all, err := s.logs.scan(s.dir)
	s.mu.Unlock()
	if err != nil {
		web.Refuse(w, http.StatusInternalServerError, err.Error())
		return p, false
	}
	var chosen []entry
	for _, name := range names {
		at := slices.IndexFunc(all, func(e entry) bool { return e.Path == name })
		if at < 0 {
			web.Refuse(w, http.StatusNotFound, fmt.Sprintf("there is no event log %q here", name))
			return p, false
		}
		chosen = append(chosen, all[at])
	}
	if p, err = s.drawn(r.Context(), chosen); err != nil {
		web.Refuse(w, http.StatusUnprocessableEntity, err.Error())
		return p, false
	}
	return p, true
}

// drawn returns the figures of runs, made once for logs that do not change.
func (s *Site) drawn(ctx context.Context, of []entry) (page, error) {
	key := ""
	for _, e := range of {
		key += e.Path + "\x00"
	}
	s.mu.Lock()
	p, known := s.made[key]
	s.mu.Unlock()
	if known && slices.Equal(p.of, of) {
		return p, nil
	}
	select {
	case s.reads <- struct{}{}:
	case <-ctx.Done(): // who has asked is gone
		return p, ctx.Err()
	}
	defer func() { <-s.reads }()
	var runs []history.Run
	for _, e := range of {
		run, err := history.Read(filepath.Join(s.dir, filepath.FromSlash(e.Path)), e.Path)
		if err != nil {
			return p, err
		}
		runs = append(runs, run)
	}
	var b strings.Builder
	history.DrawLinked(&b, runs, func(run int, figure string) string {
		return "/numbers?" + url.Values{"log": {of[run].Path}, "figure": {figure}}.Encode()
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.made) >= mostPages {
		clear(s.made)
	}
	s.made[key] = page{of, b.String(), runs}
	return s.made[key], nil
}
