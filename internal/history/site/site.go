package site

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/internal/chart"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/pages"
	"github.com/volley-engine/volley/internal/web"
)

// Site shows the runs of a folder.
type Site struct {
	dir      string
	sessions *web.Sessions

	mu     sync.Mutex
	logs   found
	made   map[string]*reading // of runs, by their logs
	reads  chan struct{}       // a place for each that goes on
	server *web.Server
}

// How many runs one may compare, and how many a page of the list has.
const (
	mostCompared = 12
	ofList       = 200
)

// Serve begins to show a folder at an address of this machine, HOST:PORT.
func Serve(dir, addr string, log hclog.Logger) (*Site, error) {
	s := &Site{dir: dir, sessions: web.NewSessions("volley_history", nil), logs: found{}, made: map[string]*reading{},
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
