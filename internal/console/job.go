package console

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volley-engine/volley/internal/chart"
	"github.com/volley-engine/volley/internal/history"
	"github.com/volley-engine/volley/internal/pages"
	"github.com/volley-engine/volley/internal/web"
	"github.com/volley-engine/volley/internal/wire"
)

// mostJobs is how many jobs' logs are followed at a time; of more, the one that was looked at first is let go.
const mostJobs = 16

// jobPage is how a job goes, as its event log has it so far.
type jobPage struct {
	mu      sync.Mutex
	path    string
	follow  *history.Following
	at      int64 // what was read of the log
	taken   int   // parts that were read
	size    int64 // what it has
	failed  error
	anew    bool  // it was begun anew, and has not come to where it was yet
	until   int64 // where that was
	info    *wire.JobInfo
	run     history.Run
	parts   []pages.Part
	drawn   int64         // what of the log they have
	used    atomic.Int64  // when it was asked for last, Unix nanoseconds
	part    []byte        // of the log, being read
	reading chan struct{} // closed when what is being read was read; nil where nothing is
}

// jobOf returns a job's page.
func (c *Console) jobOf(s Source, id string) (*jobPage, error) {
	path, err := s.EventLog(id)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.jobs[id]
	if p == nil || p.path != path {
		p = &jobPage{path: path}
		c.jobs[id] = p
	}
	p.used.Store(time.Now().UnixNano())
	for len(c.jobs) > mostJobs {
		oldest := id
		for other, q := range c.jobs {
			if q.used.Load() < c.jobs[oldest].used.Load() {
				oldest = other
			}
		}
		delete(c.jobs, oldest)
	}
	return p, nil
}

// made returns a job's page, and the job.
func (p *jobPage) made(s Source, id string, now time.Time) (m made, info *wire.JobInfo, err error) {
	if info, err = s.Job(id); err != nil {
		return m, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used.Store(now.UnixNano())
	news := p.read(info.Job)
	if p.drawn != p.at || p.info == nil || over(info) != over(p.info) || news {
		began := time.Now()
		p.draw(id, info)
		m.cost = time.Since(began)
	}
	p.info = info
	m.parts = append([]pages.Part{{ID: "state", HTML: p.state(now)}}, p.parts...)
	m.ended = over(info) && (p.whole() || p.failed != nil) && !news
	return m, info, nil
}

// draw makes the parts of what was read.
func (p *jobPage) draw(id string, info *wire.JobInfo) {
	if p.run = (history.Run{}); p.follow != nil {
		p.run = p.follow.Run()
	}
	p.run.Goes, p.run.Partial = !over(info), p.at < p.size
	p.parts, p.drawn = p.figures(id), p.at
}

// mostCompared is how many jobs are compared at a time.
const mostCompared = 8

// compare lays the courses of jobs over each other, and shows what is said of each.
func (c *Console) compare(s Source, w http.ResponseWriter, r *http.Request) {
	ids := r.URL.Query()["job"]
	if len(ids) < 2 || len(ids) > mostCompared {
		c.fail(w, r, http.StatusBadRequest, fmt.Sprintf("choose 2 to %d jobs", mostCompared))
		return
	}
	var runs []history.Run
	for _, id := range ids {
		run, err := c.Run(s, id)
		if err != nil {
			c.fail(w, r, http.StatusNotFound, web.Reason(err))
			return
		}
		run.Name = id
		runs = append(runs, run)
	}
	parts := []pages.Part{{ID: "over", HTML: drawn(history.Convergence(runs), "")}}
	for i, id := range ids {
		parts = append(parts, pages.Part{ID: fmt.Sprintf("job%d", i), HTML: fmt.Sprintf("<h2>%s</h2>%s%s",
			link(jobPath(id), id), said(&runs[i]), drawn(runs[i].Figures()["shares"], ""))})
	}
	pages.Write(w, r, pages.Page{Title: "Compared: " + strings.Join(ids, ", "),
		Back: []pages.Link{{Path: "/", Name: c.name}}, Parts: parts})
}

// drawn returns a figure, whose numbers are at a path.
func drawn(f chart.Figure, numbers string) string {
	var b strings.Builder
	if f.Of != nil {
		f.Linked(&b, numbers)
	}
	return b.String()
}

// said returns what is said of a run.
func said(run *history.Run) string {
	if !run.Shows() {
		return ""
	}
	var b strings.Builder
	for i, words := range run.Words() {
		fmt.Fprintf(&b, "<p%s>%s</p>", map[bool]string{true: " class=\"first\""}[i > 0], text(words))
	}
	return b.String()
}

// runWait is how long it is waited for a log to be read.
const runWait = 5 * time.Second

// Run returns how a job goes, as its event log has it so far; where that is long, as far as it was read.
func (c *Console) Run(s Source, id string) (run history.Run, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its event log cannot be shown: %v", r)
		}
	}()
	p, err := c.jobOf(s, id)
	if err != nil {
		return run, err
	}
	for until := time.Now().Add(runWait); ; {
		if _, _, err := p.made(s, id, time.Now()); err != nil {
			return run, err
		}
		p.mu.Lock()
		run, err = p.run, p.failed
		p.mu.Unlock()
		if err != nil || !run.Partial || time.Now().After(until) {
			return run, err
		}
	}
}

// figures shows the run as its log has it.
func (p *jobPage) figures(id string) (parts []pages.Part) {
	parts = append(parts, pages.Part{ID: "words", HTML: said(&p.run)}, pages.Part{ID: "last", HTML: lastStep(&p.run)})
	figures := p.run.Figures()
	for _, name := range history.FigureNames {
		parts = append(parts, pages.Part{ID: name, HTML: drawn(figures[name], jobPath(id, "numbers", name))})
	}
	return append(parts, pages.Part{ID: "environment", HTML: p.run.Environment()})
}

// lastStep shows what has no figure: what auto chose, and which splits move.
func lastStep(run *history.Run) string {
	s := run.Last
	if s == nil {
		return ""
	}
	var b strings.Builder
	if s.Why != "" {
		fmt.Fprintf(&b, "<p>The last step was made so: %s", text(s.Why))
		if s.Ratio > 0 {
			fmt.Fprintf(&b, " (ratio %.2f)", s.Ratio)
		}
		b.WriteString(".</p>")
	}
	for i, m := range s.Moved {
		if i == mostMoves {
			fmt.Fprintf(&b, "<p>… and %d more splits move.</p>", len(s.Moved)-i)
			break
		}
		role := ""
		if m.Role {
			role = ", which has the rows already"
		}
		fmt.Fprintf(&b, "<p>After step %d split %d moves from %s to %s%s.</p>", s.Number, m.Split, text(m.From),
			text(m.To), role)
	}
	return b.String()
}

// mostMoves is how many moves of splits are listed.
const mostMoves = 10

// state shows how the job stands.
func (p *jobPage) state(now time.Time) string {
	i := p.info
	var b strings.Builder
	fmt.Fprintf(&b, "<p>%s ", state(i.State))
	if k := p.run.Iteration(); k > 0 && !p.run.Partial {
		fmt.Fprintf(&b, "iteration %d, ", k)
	} else if i.Step > 0 {
		fmt.Fprintf(&b, "step %d, ", i.Step)
	}
	fmt.Fprintf(&b, "%s since it was submitted", took(lasted(i, now)))
	if left, known := p.run.Left(); known && i.State == "running" {
		fmt.Fprintf(&b, ", about %s to its limits", took(left))
	}
	b.WriteString(".</p>")
	if i.State == "running" {
		for _, a := range i.Actions {
			fmt.Fprintf(&b, "<p role=\"status\">%s runs: %d of its %d tasks are done.</p>", text(p.operation(a.Node)),
				a.Done, a.Tasks)
		}
	}
	if i.Restarts > 0 {
		fmt.Fprintf(&b, "<p class=\"alarm\">Its process was started again (%d ×).</p>", i.Restarts)
	}
	if i.Why != "" {
		fmt.Fprintf(&b, "<p class=\"alarm\">%s</p>", text(i.Why))
	}
	switch {
	case p.failed != nil:
		fmt.Fprintf(&b, "<p class=\"alarm\">Its event log cannot be shown: %s</p>", text(p.failed.Error()))
	case p.at < p.size:
		fmt.Fprintf(&b, "<p role=\"status\">%.0f %% of its event log are read so far: what follows is of these.</p>",
			100*float64(p.at)/float64(p.size))
	case p.size == 0 && !over(i):
		b.WriteString("<p role=\"status\">It has no event log yet: it loads, or waits for its turn.</p>")
	}
	return b.String()
}

// operation returns what a node of the plan is, as far as the log says.
func (p *jobPage) operation(node uint32) string {
	if int(node) < len(p.run.Plan) {
		return fmt.Sprintf("Node %d, %s,", node, p.run.Plan[node].Name())
	}
	return fmt.Sprintf("Node %d of its plan", node)
}

// job shows a job.
func (c *Console) job(s Source, w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	p, err := c.jobOf(s, id)
	if err != nil {
		c.fail(w, r, http.StatusNotFound, web.Reason(err))
		return
	}
	var info *wire.JobInfo
	m := guarded(func() (m made) {
		m, info, err = p.made(s, id, time.Now())
		return m
	})
	if err != nil {
		c.fail(w, r, http.StatusNotFound, web.Reason(err))
		return
	}
	if info == nil {
		info = &wire.JobInfo{Id: id}
	}
	pages.Write(w, r, pages.Page{Title: fmt.Sprintf("%s, %s", info.Job, id),
		Back: []pages.Link{{Path: "/", Name: c.name}}, Live: jobPath(id, "live"),
		Parts: append([]pages.Part{{ID: "do", HTML: c.buttons(r, info)}}, append(m.parts,
			pages.Part{ID: "how", HTML: configuration(info)})...)})
}

// buttons shows what the reader may do, and where there is more.
func (c *Console) buttons(r *http.Request, i *wire.JobInfo) string {
	var b strings.Builder
	b.WriteString("<p>" + link(jobPath(i.Id, "output"), "what it prints"))
	if s, ok := c.sessions.Of(r); ok && s.Change {
		b.WriteString(" · " + link(jobPath(i.Id, "events.jsonl"), "event log"))
		if i.State == "running" {
			b.WriteString(" · " + link(jobPath(i.Id, "stacks"), "stacks"))
		}
		do := Cancel
		if over(i) {
			do = Resume
		}
		if i.State != "done" {
			b.WriteString(" · " + link(jobPath(i.Id, string(do)), string(do)+" it"))
		}
	}
	b.WriteString("</p>")
	return b.String()
}

// configuration shows what the job was submitted with.
func configuration(i *wire.JobInfo) string {
	return fmt.Sprintf("<h2>Configuration</h2><p>Submitted %s by %s, pool %s, priority %d.</p><pre "+
		"tabindex=\"0\">%s %s</pre>", clock(i.SubmittedUnixNs), text(i.Owner), text(i.Pool), i.Priority, text(i.Job),
		text(strings.Join(i.Args, " ")))
}

// jobLive sends a job's page as it goes on.
func (c *Console) jobLive(s Source, w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	p, err := c.jobOf(s, id)
	if err != nil {
		web.Refuse(w, http.StatusNotFound, web.Reason(err))
		return
	}
	c.follow(s, w, r, jobPath(id, "live"), func() made {
		m, _, err := p.made(s, id, time.Now())
		if err != nil {
			return made{parts: []pages.Part{{ID: "state", HTML: alarm(web.Reason(err))}}, ended: true}
		}
		return m
	})
}

// numbers returns the numbers of one of a job's figures.
func (c *Console) numbers(s Source, w http.ResponseWriter, r *http.Request) {
	run, err := c.Run(s, r.PathValue("id"))
	if err != nil {
		web.Refuse(w, http.StatusNotFound, web.Reason(err))
		return
	}
	if run.Partial {
		web.Refuse(w, http.StatusServiceUnavailable, "its event log is not read to its end yet: ask again")
		return
	}
	f, ok := run.Figures()[r.PathValue("figure")]
	if !ok {
		web.Refuse(w, http.StatusNotFound, "there is no such figure")
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(chart.CSV(f.Of)) // who has asked may be gone
}

// eventLog sends a job's event log to who may change it, as far as it goes.
func (c *Console) eventLog(s Source, w http.ResponseWriter, r *http.Request) {
	if o, ok := c.sessions.Of(r); !ok || !o.Change {
		web.Refuse(w, http.StatusForbidden, "an event log is for who may cancel the job")
		return
	}
	path, err := s.EventLog(r.PathValue("id"))
	if err != nil {
		web.Refuse(w, http.StatusNotFound, web.Reason(err))
		return
	}
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		web.Refuse(w, http.StatusNotFound, "it has no event log yet")
		return
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", "attachment; filename=\"events.jsonl\"")
	for buf := make([]byte, 1<<20); ; {
		n, err := file.Read(buf)
		web.Extend(w)
		if _, failed := w.Write(buf[:n]); failed != nil || err != nil || !c.still(r) {
			return
		}
	}
}
