package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/pages"
	"github.com/volley-engine/volley/internal/web"
	"github.com/volley-engine/volley/internal/wire"
)

// asked are the questions that buttons are confirmed by.
var asked = map[Action]string{
	Cancel: "Cancel it? Its process ends. A job of a cluster can be resumed from its last checkpoint; a run in one " +
		"process can where it was started with --checkpoint-every, and is lost otherwise.",
	Resume: "Resume it? It goes on from its last checkpoint.",
}

// ask shows the question that an action is confirmed by.
func (c *Console) ask(s Source, w http.ResponseWriter, r *http.Request) {
	do, id := Action(r.PathValue("action")), r.PathValue("id")
	question, known := asked[do]
	session, ok := c.sessions.Of(r)
	switch _, err := s.Job(id); {
	case !known:
		c.fail(w, r, http.StatusNotFound, fmt.Sprintf("there is no %s", r.URL.Path))
	case err != nil:
		c.fail(w, r, http.StatusNotFound, web.Reason(err))
	case !ok || !session.Change:
		c.fail(w, r, http.StatusForbidden, "this link lets you read, and no more")
	default:
		pages.Write(w, r, pages.Page{Title: fmt.Sprintf("%s %s", do, id), Back: []pages.Link{{Path: "/", Name: c.name},
			{Path: jobPath(id), Name: id}}, Parts: []pages.Part{{ID: "ask", HTML: fmt.Sprintf("<p>%s</p><form "+
			"class=\"act\" method=\"post\" action=\"%s\"><input type=\"hidden\" name=\"form\" value=\"%s\"><button>%s"+
			"</button></form>%s", question, text(jobPath(id, string(do))), session.Form, do,
			link(jobPath(id), "back"))}}})
	}
}

// act carries out an action that was confirmed.
func (c *Console) act(s Source, w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	do, id := Action(r.PathValue("action")), r.PathValue("id")
	if _, known := asked[do]; !known {
		c.fail(w, r, http.StatusNotFound, fmt.Sprintf("there is no %s", r.URL.Path))
		return
	}
	if !c.sessions.Sent(r) {
		c.fail(w, r, http.StatusForbidden, "this was not sent by the page that asks for it")
		return
	}
	if err := s.Act(r, do, id); err != nil {
		c.fail(w, r, http.StatusConflict, web.Reason(err))
		return
	}
	http.Redirect(w, r, jobPath(id), http.StatusSeeOther)
}

// mostOutput is how much is shown of what a process has printed: the end of it.
const mostOutput = 64 << 10

// output shows what a job prints, or one of its runners.
func (c *Console) output(s Source, w http.ResponseWriter, r *http.Request) {
	id, of, only := r.PathValue("id"), r.URL.Query().Get("executor"), r.URL.Query().Get("only")
	if _, err := s.Job(id); err != nil {
		c.fail(w, r, http.StatusNotFound, web.Reason(err))
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<form action=\"%s\"><p><label>of <select name=\"executor\"><option value=\"\">its own process"+
		"</option>", text(jobPath(id, "output")))
	for _, e := range s.Executors() {
		chosen := map[bool]string{true: " selected"}[e.Name == of]
		fmt.Fprintf(&b, "<option%s>%s</option>", chosen, text(e.Name))
	}
	fmt.Fprintf(&b, "</select></label> <label>lines with <input name=\"only\" value=\"%s\"></label> "+
		"<button>Show</button></p></form>", text(only))
	query := url.Values{"executor": {of}, "only": {only}}
	pages.Write(w, r, pages.Page{Title: "What " + id + " prints", Back: []pages.Link{{Path: "/", Name: c.name},
		{Path: jobPath(id), Name: id}}, Live: jobPath(id, "output", "live") + "?" + query.Encode(),
		Parts: []pages.Part{{ID: "of", HTML: b.String()}, printed(s, id, of, only)}})
}

// outputLive follows the same.
func (c *Console) outputLive(s Source, w http.ResponseWriter, r *http.Request) {
	id, of, only := r.PathValue("id"), r.URL.Query().Get("executor"), r.URL.Query().Get("only")
	last := time.Now() // when it was seen to go on
	name := jobPath(id, "output", "live") + "?" + url.Values{"executor": {of}, "only": {only}}.Encode()
	c.follow(s, w, r, name, func() made {
		began := time.Now()
		m := made{parts: []pages.Part{printed(s, id, of, only)}, cost: time.Since(began)}
		if info, err := s.Job(id); err == nil && !over(info) {
			last = began
		}
		m.ended = began.Sub(last) > time.Second // what it prints last may come after its end
		return m
	})
}

// printed shows the end of what a process has printed, of which only lines with a text are shown.
func printed(s Source, id, of, only string) pages.Part {
	raw, err := s.Output(id, of, mostOutput)
	if err != nil {
		return pages.Part{ID: "lines", HTML: "<p class=\"alarm\">" + text(web.Reason(err)) + "</p>"}
	}
	var b strings.Builder
	b.WriteString("<pre tabindex=\"0\">")
	for line := range strings.Lines(strings.ToValidUTF8(string(raw), "�")) {
		if strings.Contains(line, only) {
			b.WriteString(text(line))
		}
	}
	b.WriteString("</pre>")
	return pages.Part{ID: "lines", HTML: b.String()}
}

// mostStacks is how much is shown of the stacks of a process.
const mostStacks = 1 << 20

// stacks shows what the processes of a job are doing, to who may change it.
func (c *Console) stacks(s Source, w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if o, ok := c.sessions.Of(r); !ok || !o.Change {
		c.fail(w, r, http.StatusForbidden, "stacks are for who may cancel the job")
		return
	}
	all, err := s.Stacks(r, id)
	web.Extend(w) // processes may have taken long to answer
	if err != nil {
		c.fail(w, r, http.StatusConflict, web.Reason(err))
		return
	}
	slices.SortFunc(all, func(a, b *wire.Inspection) int { return strings.Compare(a.Executor, b.Executor) })
	var b strings.Builder
	for _, of := range all {
		fmt.Fprintf(&b, "<h2>%s</h2>", text(cmp.Or(of.Executor, "its own process")))
		if of.Failure != "" {
			b.WriteString(alarm(of.Failure))
			continue
		}
		said := strings.ToValidUTF8(string(of.Data[:min(len(of.Data), mostStacks)]), "\uFFFD")
		b.WriteString("<pre tabindex=\"0\">" + text(said) + "</pre>")
	}
	pages.Write(w, r, pages.Page{Title: "Stacks of " + id, Back: []pages.Link{{Path: "/", Name: c.name},
		{Path: jobPath(id), Name: id}}, Parts: []pages.Part{{ID: "stacks", HTML: b.String()}}})
}
