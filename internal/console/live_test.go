package console

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/internal/audit/logtest"
	"github.com/volley-engine/volley/internal/web"
	"github.com/volley-engine/volley/internal/wire"
)

// long returns a job that has ended, with a log that is not read at once.
func long(t *testing.T, steps int) *cluster {
	t.Helper()
	c := &cluster{log: filepath.Join(t.TempDir(), "events.jsonl"), jobs: []*wire.JobInfo{{Id: "job-1", Job: "job",
		State: "done"}}}
	if err := os.WriteFile(c.log, bytes.Join(logtest.Large(t, 200, steps), nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestALongLogIsReadToItsEnd: a page of a part of it says so, and has all of it soon; what is no page waits for all.
func TestALongLogIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	const steps = 400
	c := long(t, steps)
	at, browser := serve(t, c, web.Grant{})
	_, page, _ := get(t, browser, at+"/jobs/job-1")
	if !strings.Contains(page, "of its event log are read so far") || !strings.Contains(page, "is not read yet") {
		t.Errorf("a part is shown as the whole: %.1500s", page)
	}
	listen(t, browser, at+"/jobs/job-1/live", func(parts map[string]string, ended bool) bool {
		if ended && (!strings.Contains(parts["words"], "400 steps") || strings.Contains(parts["state"], "are read")) {
			t.Errorf("the page has ended with %s %s", parts["state"], parts["words"])
		}
		return ended
	})
	fresh := New(Config{Name: "Test", Sessions: web.NewSessions("test", nil), Source: func() Source { return c }})
	run, err := fresh.Run(c, "job-1")
	for until := time.Now().Add(time.Minute); err == nil && run.Partial && time.Now().Before(until); {
		run, err = fresh.Run(c, "job-1") // the machine is busy
	}
	if n := len(run.Steps); err != nil || run.Partial || n != steps {
		t.Errorf("%d steps, partial %v: %v", n, run.Partial, err)
	}
}

// TestWhoMayNotReadAnyMoreIsToldNoMore: an open page ends with its session.
func TestWhoMayNotReadAnyMoreIsToldNoMore(t *testing.T) {
	t.Parallel()
	c := evils(t)
	var revoked atomic.Bool
	at, browser := serve(t, c, web.Grant{Holds: func() bool { return !revoked.Load() }})
	res, err := browser.Get(at + "/jobs/job-1/live")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewScanner(res.Body)
	in.Buffer(nil, 1<<20)
	for n := 0; in.Scan(); {
		if in.Text() != "event: part" {
			continue
		}
		if n++; n == 3 {
			revoked.Store(true)
			c.set("job-1", func(i *wire.JobInfo) { i.Step = 77 }) // something to tell
		}
	}
	if err := in.Err(); err != nil || !revoked.Load() {
		t.Errorf("the page did not end by itself: %v", err)
	}
	if code, _, _ := get(t, browser, at+"/jobs/job-1"); code != http.StatusUnauthorized {
		t.Errorf("status %d", code)
	}
}

// TestAPanicIsOfItsPageAlone: what cannot be drawn is said, and nothing else ends.
func TestAPanicIsOfItsPageAlone(t *testing.T) {
	t.Parallel()
	m := guarded(func() made { panic("a log that no one has thought of") })
	if !m.ended || len(m.parts) != 1 || !strings.Contains(m.parts[0].HTML, "cannot be shown: a log that no one") {
		t.Errorf("%+v", m)
	}
	c := New(Config{Sessions: web.NewSessions("test", nil)})
	top := c.view("x", "one", func() made { panic("again") })
	for deadline := time.Now().Add(time.Minute); ; {
		parts, ended, changed := top.now()
		if ended && len(parts) == 1 {
			break
		}
		select {
		case <-changed:
		case <-time.After(time.Until(deadline)):
			t.Fatal("it is not said")
		}
	}
	c.leave("x", "one", top)
	if len(c.topics) != 0 || c.seen != 0 {
		t.Errorf("%d topics, %d viewers", len(c.topics), c.seen)
	}
}

// TestLinksAndCookies: to ask what is at a link does not use it up; a page of another site leads on; a host's ports
// have cookies of their own.
func TestLinksAndCookies(t *testing.T) {
	t.Parallel()
	at, browser := serve(t, evils(t), web.Grant{})
	other, _ := serve(t, evils(t), web.Grant{})
	jar := browser.Jar
	sessions := web.NewSessions("volley", nil)
	s, err := web.Serve(web.Config{Addr: "127.0.0.1:0", Logger: hclog.NewNullLogger(),
		Refusal: func(*http.Request) (int, string) { return 0, "" }, Routes: []web.Route{{Path: web.EnterPath,
			Serve: func(w http.ResponseWriter, r *http.Request) {
				if !sessions.Enter(w, r, r.URL.Query().Get("token")) {
					web.Refuse(w, http.StatusUnauthorized, "no")
					return
				}
				web.Opened(w, r, "/")
			}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	link := "http://" + s.Addr() + sessions.Link(web.Grant{})
	res, err := http.Head(link)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	req, err := http.NewRequest(http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	res, err = (&http.Client{Jar: jar}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if code, page, _ := read(t, res); code != http.StatusOK || !strings.Contains(page, "url=/") ||
		len(res.Cookies()) != 1 {
		t.Errorf("status %d: %s", code, page)
	}
	if code, _, _ := get(t, browser, at+"/"); code != http.StatusOK {
		t.Errorf("a session of another port has ended this one: status %d", code)
	}
	if code, _, _ := get(t, browser, other+"/"); code != http.StatusUnauthorized {
		t.Errorf("a session of one port opens another: status %d", code)
	}
}

// TestActionsInProgressAreShown: a job whose first action runs says how far that is, and one that has ended does not.
func TestActionsInProgressAreShown(t *testing.T) {
	t.Parallel()
	c := &cluster{log: filepath.Join(t.TempDir(), "none"), jobs: []*wire.JobInfo{{Id: "job-1", Job: "job",
		State: "running", Actions: []*wire.ActionInfo{{Node: 5, Tasks: 40, Done: 12}}}}}
	at, browser := serve(t, c, web.Grant{})
	const says = "Node 5 of its plan runs: 12 of its 40 tasks are done."
	if _, page, _ := get(t, browser, at+"/jobs/job-1"); !strings.Contains(page, says) {
		t.Errorf("what runs is not shown: %.1500s", page)
	}
	c.set("job-1", func(i *wire.JobInfo) {
		i.State, i.Actions = "failed", []*wire.ActionInfo{{Node: 5, Tasks: 40, Done: 12}}
	})
	if _, page, _ := get(t, browser, at+"/jobs/job-1"); strings.Contains(page, "Node 5") {
		t.Error("what runs no more is shown")
	}
}

// TestOneReaderLeavesPlacesToOthers: who has as many pages open as one may opens no more; others do, and so does this
// one after it has closed some.
func TestOneReaderLeavesPlacesToOthers(t *testing.T) {
	t.Parallel()
	c := New(Config{Name: "Test", Sessions: web.NewSessions("test", nil)})
	build := func() made { return made{ended: true} }
	var open []*topic
	for range mostOfOne {
		open = append(open, c.view("page", "greedy", build))
	}
	if c.view("page", "greedy", build) != nil {
		t.Error("one more is opened")
	}
	other := c.view("page", "other", build)
	if other == nil {
		t.Fatal("another reader finds no place")
	}
	c.leave("page", "greedy", open[0])
	if c.view("page", "greedy", build) == nil {
		t.Error("a place that was left is not free")
	}
	c.leave("page", "other", other)
	if len(c.readers) != 1 {
		t.Errorf("readers that have gone are kept: %v", c.readers)
	}
}
