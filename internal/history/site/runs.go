package site

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/volley-engine/volley/internal/chart"
	"github.com/volley-engine/volley/internal/history"
	"github.com/volley-engine/volley/internal/pages"
	"github.com/volley-engine/volley/internal/web"
)

// reading is the page of some runs, which is made of their logs as they were. All readers that ask for it wait for
// the same.
type reading struct {
	of   []entry
	done chan struct{} // closed once what follows is there
	text string
	runs []history.Run
	err  error
	read atomic.Int64 // bytes, so far
}

// How many pages are kept, how many are made at a time, and how long is waited for one before it is said how far it is.
const (
	mostPages = 32
	atOnce    = 2
	firstWait = 200 * time.Millisecond
)

// over reports whether it is there.
func (p *reading) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// far returns how much of the logs is read.
func (p *reading) far() string {
	size := int64(0)
	for _, e := range p.of {
		size += e.Size
	}
	return fmt.Sprintf("<p role=\"status\">%.0f %% of %s are read. The page comes by itself when all of it is.</p>",
		min(100, 100*float64(p.read.Load())/float64(max(1, size))), map[bool]string{true: "its event log",
			false: fmt.Sprintf("%d event logs", len(p.of))}[len(p.of) == 1])
}

// runs shows the runs of logs, compared where they are several; while they are read, how far that is.
func (s *Site) runs(w http.ResponseWriter, r *http.Request) {
	p, ok := s.asked(w, r)
	if !ok {
		return
	}
	wait := time.NewTimer(firstWait)
	defer wait.Stop()
	select {
	case <-p.done:
	case <-r.Context().Done():
		return
	case <-wait.C:
	}
	text := ""
	switch {
	case !p.over():
		w.Header().Set("Refresh", "1")
		text = p.far()
	case p.err != nil:
		web.Refuse(w, http.StatusUnprocessableEntity, p.err.Error())
		return
	default:
		text = p.text
	}
	pages.Write(w, r, pages.Page{Title: strings.Join(r.URL.Query()["log"], ", "),
		Back: []pages.Link{{Path: "/", Name: "all runs"}}, Parts: []pages.Part{{ID: "run", HTML: text}}})
}

// numbers returns the numbers of a figure of the run of a log.
func (s *Site) numbers(w http.ResponseWriter, r *http.Request) {
	p, ok := s.asked(w, r)
	if !ok {
		return
	}
	select {
	case <-p.done:
	case <-r.Context().Done():
		return
	}
	if p.err != nil {
		web.Refuse(w, http.StatusUnprocessableEntity, p.err.Error())
		return
	}
	f, ok := p.runs[0].Figures()[r.URL.Query().Get("figure")]
	if !ok {
		web.Refuse(w, http.StatusNotFound, "there is no such figure")
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	web.Extend(w)
	_, _ = w.Write(chart.CSV(f.Of)) // who has asked may be gone
}

// asked returns what is made of the logs that a request names; false is that it is refused.
func (s *Site) asked(w http.ResponseWriter, r *http.Request) (p *reading, ok bool) {
	names := r.URL.Query()["log"]
	if len(names) == 0 || len(names) > mostCompared {
		web.Refuse(w, http.StatusBadRequest, fmt.Sprintf("choose 1 to %d runs", mostCompared))
		return nil, false
	}
	s.mu.Lock()
	all, err := s.logs.scan(s.dir)
	s.mu.Unlock()
	if err != nil {
		web.Refuse(w, http.StatusInternalServerError, err.Error())
		return nil, false
	}
	var chosen []entry
	for _, name := range names {
		at := slices.IndexFunc(all, func(e entry) bool { return e.Path == name })
		if at < 0 {
			web.Refuse(w, http.StatusNotFound, fmt.Sprintf("there is no event log %q here", name))
			return nil, false
		}
		chosen = append(chosen, all[at])
	}
	if p = s.page(chosen); p == nil {
		web.Refuse(w, http.StatusServiceUnavailable, "too many event logs are being read: ask again in a while")
	}
	return p, p != nil
}

// page returns the page of some logs, made once while they do not change; nil where too many are being made.
func (s *Site) page(of []entry) *reading {
	var key strings.Builder
	for _, e := range of {
		key.WriteString(e.Path + "\x00")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.made[key.String()]; p != nil && slices.Equal(p.of, of) {
		return p
	}
	if len(s.made) >= mostPages {
		for k, p := range s.made {
			if p.over() {
				delete(s.made, k)
			}
		}
	}
	if len(s.made) >= mostPages {
		return nil
	}
	p := &reading{of: of, done: make(chan struct{})}
	s.made[key.String()] = p
	go s.make(p)
	return p
}

// make reads the logs of a page, and draws it.
func (s *Site) make(p *reading) {
	s.reads <- struct{}{}
	defer func() {
		if broken := recover(); broken != nil {
			p.err = cmp.Or(p.err, fmt.Errorf("its event log cannot be shown: %v", broken))
		}
		<-s.reads
		close(p.done)
	}()
	for _, e := range p.of {
		run, err := history.ReadAs(filepath.Join(s.dir, filepath.FromSlash(e.Path)), e.Path, func(bytes int) {
			p.read.Add(int64(bytes))
		})
		if err != nil {
			p.err = err
			return
		}
		p.runs = append(p.runs, run)
	}
	var b strings.Builder
	history.DrawLinked(&b, p.runs, func(run int, figure string) string {
		return "/numbers?" + url.Values{"log": {p.of[run].Path}, "figure": {figure}}.Encode()
	})
	p.text = b.String()
}
