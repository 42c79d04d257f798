package console

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit/logtest"
	"github.com/volley-engine/volley/internal/history"
	"github.com/volley-engine/volley/internal/web"
	"github.com/volley-engine/volley/internal/wire"
)

// cluster is a source of a test's own.
type cluster struct {
	mu        sync.Mutex
	jobs      []*wire.JobInfo
	executors []*wire.ExecutorInfo
	log       string
	printed   string
	did       []string
}

func (c *cluster) Jobs() []*wire.JobInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*wire.JobInfo(nil), c.jobs...)
}

func (c *cluster) Job(id string) (*wire.JobInfo, error) {
	for _, j := range c.Jobs() {
		if j.Id == id {
			return j, nil
		}
	}
	return nil, fmt.Errorf("there is no job %q", id)
}

func (c *cluster) Executors() []*wire.ExecutorInfo {
	return append([]*wire.ExecutorInfo(nil), c.executors...)
}

func (c *cluster) Alarms() []string { return []string{"the disk is <full>"} }

func (c *cluster) EventLog(job string) (string, error) {
	_, err := c.Job(job)
	return c.log, err
}

func (c *cluster) Output(_, executor string, most int64) ([]byte, error) {
	if executor == "none" {
		return nil, errors.New("there is no executor \"none\"")
	}
	return []byte(c.printed[max(0, len(c.printed)-int(most)):]), nil
}

func (c *cluster) Stacks(*http.Request, string) ([]*wire.Inspection, error) {
	return []*wire.Inspection{{Executor: "worker<b>", Data: []byte("goroutine 1 <script>")},
		{Executor: "slow", Failure: "it has not answered"}, {Data: []byte("goroutine 2")}}, nil
}

func (c *cluster) Act(_ *http.Request, do Action, job string) error {
	c.did = append(c.did, string(do)+" "+job)
	return nil
}

// set changes a job.
func (c *cluster) set(id string, change func(*wire.JobInfo)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, j := range c.jobs {
		if j.Id == id {
			copied := &wire.JobInfo{Id: j.Id, Job: j.Job, State: j.State, Step: j.Step}
			change(copied)
			c.jobs[i] = copied
		}
	}
}

// serve shows a cluster, and returns where, with a browser that may do what g says.
func serve(t *testing.T, c *cluster, g web.Grant) (at string, browser *http.Client) {
	t.Helper()
	sessions := web.NewSessions("test", func(token string) (web.Grant, bool) { return web.Grant{}, token == "good" })
	shown := New(Config{Name: "Test", Sessions: sessions, Source: func() Source {
		if c == nil {
			return nil
		}
		return c
	}, Away: func() string { return "it is elsewhere" }})
	s, err := web.Serve(web.Config{Addr: "127.0.0.1:0", Routes: shown.Routes(), Login: web.EnterPath,
		Logger: hclog.NewNullLogger(), Refusal: func(r *http.Request) (int, string) {
			if shown.Open(r) {
				return 0, ""
			}
			return http.StatusUnauthorized, "no session"
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	at, browser = "http://"+s.Addr(), &http.Client{Jar: jar, Timeout: time.Minute}
	get(t, browser, at+sessions.Link(g))
	return at, browser
}

func get(t *testing.T, browser *http.Client, url string) (code int, body string, h http.Header) {
	t.Helper()
	res, err := browser.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, res)
}

func read(t *testing.T, res *http.Response) (code int, body string, h http.Header) {
	t.Helper()
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw), res.Header
}

const evil = `<script>alert(1)</script><svg onload="alert(2)">"'`

func evils(t *testing.T) *cluster {
	lines := logtest.Runs["absp"](t).Written()
	log := filepath.Join(t.TempDir(), "events.jsonl")
	var b strings.Builder
	for _, l := range lines[:len(lines)-1] {
		b.Write(l)
	}
	if err := os.WriteFile(log, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return &cluster{log: log, printed: evil + "\nsecond line\n",
		jobs: []*wire.JobInfo{{Id: "job-1", Job: evil, State: "running", Why: evil, Owner: evil, Pool: evil,
			Args: []string{evil}, SubmittedUnixNs: time.Now().UnixNano()}, {Id: evil, Job: "other", State: "failed",
			Restarts: 3, EndedUnixNs: time.Now().UnixNano()}},
		executors: []*wire.ExecutorInfo{{Name: evil, State: "lost", Why: evil, SinceUnixNs: time.Now().UnixNano()},
			{Name: "b", State: "alive", Slots: 2, RowsPerSecond: 100, Memory: 3 << 20}}}
}

// TestStacksAreForWhoMayChange: they are shown as text, those that did not answer are named, and who may only read does
// not get them.
func TestStacksAreForWhoMayChange(t *testing.T) {
	t.Parallel()
	c := evils(t)
	c.set("job-1", func(i *wire.JobInfo) { i.State = "running" })
	at, browser := serve(t, c, web.Grant{Change: true})
	code, page, _ := get(t, browser, at+"/jobs/job-1/stacks")
	for _, want := range []string{"worker&lt;b&gt;", "goroutine 1 &lt;script&gt;", "it has not answered", "goroutine 2",
		"its own process"} {
		if code != http.StatusOK || !strings.Contains(page, want) {
			t.Errorf("%d: %q is not in %s", code, want, page)
		}
	}
	if _, job, _ := get(t, browser, at+"/jobs/job-1"); !strings.Contains(job, "/stacks") {
		t.Error("nothing leads to the stacks")
	}
	at, browser = serve(t, c, web.Grant{})
	if code, page, _ := get(t, browser, at+"/jobs/job-1/stacks"); code != http.StatusForbidden ||
		strings.Contains(page, "goroutine") {
		t.Errorf("a reader is shown stacks: %d", code)
	}
}

// TestNothingThatOthersChooseRuns: names, reasons, arguments and lines of logs are shown as text on every page, under a
// policy by which a browser runs nothing of a page's own text.
func TestNothingThatOthersChooseRuns(t *testing.T) {
	t.Parallel()
	c := evils(t)
	at, browser := serve(t, c, web.Grant{Change: true})
	for _, path := range []string{"/", "/jobs/job-1", "/jobs/job-1/output", "/jobs/job-1/output?only=" +
		url.QueryEscape(evil) + "&executor=" + url.QueryEscape(evil),
		"/jobs/job-1/cancel", "/compare?job=job-1&job=" + url.QueryEscape(evil), "/jobs/" + url.PathEscape(evil),
		"/jobs/" + url.PathEscape(evil+"x"), "/enter?token=" + url.QueryEscape(evil), "/?jobs=-1&executors=999"} {
		_, body, h := get(t, browser, at+path)
		if strings.Contains(body, "<script>") || strings.Contains(body, "<svg onload") || strings.Contains(body, `""'`) {
			t.Errorf("%s has what others have chosen as it is:\n%s", path, body)
		}
		policy := h.Get("Content-Security-Policy")
		if h.Get("Content-Type") == "text/html; charset=utf-8" && (!strings.HasPrefix(policy, "default-src 'none'; ") ||
			strings.Contains(policy, "unsafe")) || strings.Contains(body, " style=") || strings.Contains(body, " "+
			"onclick=") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
	}
	_, overview, _ := get(t, browser, at+"/")
	for _, want := range []string{"the disk is &lt;full&gt;", "1 of 2 executors are lost", "restarted 3 ×",
		"1 jobs run, 0 wait, 0 are done, 1 failed", "&lt;script&gt;", "100 %</meter>", "3 MiB"} {
		if !strings.Contains(overview, want) {
			t.Errorf("the overview does not have %q:\n%s", want, overview)
		}
	}
	_, printed, _ := get(t, browser, at+"/jobs/job-1/output?only=second")
	if !strings.Contains(printed, "<pre tabindex=\"0\">second line\n</pre>") {
		t.Errorf("not the lines that were asked for:\n%s", printed)
	}
}

// TestOnlyAFormOfThePageActs, of a session that may: not a form from elsewhere, nor one of another session, nor a link.
func TestOnlyAFormOfThePageActs(t *testing.T) {
	t.Parallel()
	c := evils(t)
	at, browser := serve(t, c, web.Grant{Change: true})
	_, page, _ := get(t, browser, at+"/jobs/job-1/cancel")
	secret := regexp.MustCompile(`name="form" value="(\w+)"`).FindStringSubmatch(page)
	if secret == nil || len(c.did) != 0 {
		t.Fatalf("there is no form, or looking at it does it: %v\n%s", c.did, page)
	}
	post := func(browser *http.Client, path, form, origin string) int {
		req, err := http.NewRequest(http.MethodPost, at+path, strings.NewReader(url.Values{"form": {form}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		res, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		code, _, _ := read(t, res)
		return code
	}
	reader := &http.Client{Jar: nil}
	for name, got := range map[string]int{
		"another site":   post(browser, "/jobs/job-1/cancel", secret[1], "http://volley.example"),
		"no site at all": post(browser, "/jobs/job-1/cancel", secret[1], "null"),
		"no form":        post(browser, "/jobs/job-1/cancel", "", at),
		"another form":   post(browser, "/jobs/job-1/cancel", "x"+secret[1], at),
		"no session":     post(reader, "/jobs/job-1/cancel", secret[1], at),
		"another action": post(browser, "/jobs/job-1/destroy", secret[1], at),
		"where none is":  post(browser, "/jobs/job-1", secret[1], at),
	} {
		if got < 400 || len(c.did) != 0 {
			t.Errorf("%s: status %d, %v was done", name, got, c.did)
		}
	}
	if code := post(browser, "/jobs/job-1/cancel", secret[1], at); code != http.StatusOK || fmt.Sprint(c.did) !=
		"[cancel job-1]" {
		t.Errorf("the page's own form: status %d, %v was done", code, c.did)
	}
	at, browser = serve(t, c, web.Grant{})
	if code, _, _ := get(t, browser, at+"/jobs/job-1/cancel"); code != http.StatusForbidden {
		t.Errorf("who may only read is asked: status %d", code)
	}
	if code, _, _ := get(t, browser, at+"/jobs/job-1/events.jsonl"); code != http.StatusForbidden {
		t.Errorf("who may only read has the event log: status %d", code)
	}
	if _, page, _ := get(t, browser, at+"/jobs/job-1"); strings.Contains(page, "cancel it") {
		t.Error("who may only read has buttons")
	}
}

// TestWhoHasNoSessionIsLedToTheDoor, where a token opens it; where there is nothing to show it is said why.
func TestWhoHasNoSessionIsLedToTheDoor(t *testing.T) {
	t.Parallel()
	at, _ := serve(t, evils(t), web.Grant{})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	req, err := http.NewRequest(http.MethodGet, at+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	res, err := browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if code, page, _ := read(t, res); code != http.StatusOK || !strings.Contains(page, "Token <input") {
		t.Errorf("status %d: %s", code, page)
	}
	for token, want := range map[string]int{"bad": http.StatusUnauthorized, "good": http.StatusOK} {
		res, err := browser.PostForm(at+"/enter", url.Values{"token": {token}})
		if err != nil {
			t.Fatal(err)
		}
		if code, page, _ := read(t, res); code != want {
			t.Errorf("%s: status %d: %s", token, code, page)
		}
	}
	if code, _, _ := get(t, browser, at+"/jobs/job-1"); code != http.StatusOK {
		t.Errorf("the session of a token: status %d", code)
	}
	at, browser = serve(t, nil, web.Grant{})
	if code, page, _ := get(t, browser, at+"/"); code != http.StatusServiceUnavailable ||
		!strings.Contains(page, "it is elsewhere") {
		t.Errorf("status %d: %s", code, page)
	}
}

// listen follows a page, and returns its parts as they are when a condition holds.
func listen(t *testing.T, browser *http.Client, url string, until func(parts map[string]string, ended bool) bool) {
	t.Helper()
	res, err := browser.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in, parts := bufio.NewScanner(res.Body), map[string]string{}
	in.Buffer(nil, 1<<20)
	ended := false
	for in.Scan() {
		if in.Text() == "event: end" {
			ended = true
		}
		if data, ok := strings.CutPrefix(in.Text(), "data: "); ok {
			var p struct{ ID, HTML string }
			if err := json.Unmarshal([]byte(data), &p); err != nil {
				t.Fatal(err)
			}
			parts[p.ID] = p.HTML
			if until(parts, ended) {
				return
			}
		}
	}
	t.Fatalf("the page's events have ended: %v, %v", in.Err(), parts)
}

// TestHistoryIsTheEndOfTheLivePage: a page follows a job's log as it is written, to figures that are those of the log's
// history, to the pixel; then its events end.
func TestHistoryIsTheEndOfTheLivePage(t *testing.T) {
	t.Parallel()
	lines := logtest.Runs["absp"](t).Written()
	c := &cluster{log: filepath.Join(t.TempDir(), "events.jsonl"), jobs: []*wire.JobInfo{{Id: "job-1", Job: "job",
		State: "running", SubmittedUnixNs: time.Now().UnixNano()}}}
	at, browser := serve(t, c, web.Grant{})
	write := func(raw []byte) {
		f, err := os.OpenFile(c.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(raw); err != nil {
			t.Fatal(err)
		}
	}
	if _, page, _ := get(t, browser, at+"/jobs/job-1"); !strings.Contains(page, "no event log yet") {
		t.Error(page)
	}
	written := 0
	live := map[string]string{}
	listen(t, browser, at+"/jobs/job-1/live", func(parts map[string]string, ended bool) bool {
		steps := fmt.Sprintf("%d step", max(0, written-1))
		switch {
		case written == len(lines):
			c.set("job-1", func(i *wire.JobInfo) { i.State = "done" })
		case written < 2 || strings.Contains(parts["words"], steps) || written > 3:
			half := len(lines[written]) / 2
			write(lines[written][:half])
			write(lines[written][half:])
			written++
		}
		live = parts
		return ended
	})
	run, err := history.Read(c.log, "job")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	history.Draw(&want, []history.Run{run})
	drawings := regexp.MustCompile(`(?s)<svg.*?</svg>`)
	there := map[string]bool{}
	for _, html := range live {
		for _, d := range drawings.FindAllString(html, -1) {
			there[d] = true
		}
	}
	all := drawings.FindAllString(want.String(), -1)
	for _, d := range all {
		if !there[d] {
			t.Errorf("the live page does not have\n%s", d)
		}
	}
	if len(all) < 6 || len(all) != len(there) || !strings.Contains(live["state"], "done") {
		t.Errorf("%d figures, %d of them live; the state is %s", len(all), len(there), live["state"])
	}
}

// TestALogThatIsCutOffIsFollowedAnew, as that of a job that goes on from a checkpoint; one that makes no sense is
// named.
func TestALogThatIsCutOffIsFollowedAnew(t *testing.T) {
	t.Parallel()
	lines := logtest.Runs["absp"](t).Written()
	join := func(n int) (raw []byte) {
		for _, l := range lines[:n] {
			raw = append(raw, l...)
		}
		return raw
	}
	p := &jobPage{path: filepath.Join(t.TempDir(), "log")}
	for _, step := range []struct {
		raw  []byte
		want int // steps
		bad  bool
	}{{join(3), 2, false}, {join(2), 1, false}, {join(5), 3, false}, {join(4), 2, false},
		{append(join(3), "{}\n"...), 0, true}, {join(5), 3, false}} {
		if err := os.WriteFile(p.path, step.raw, 0o600); err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		for looked := 0; looked < 2 || p.reading != nil; looked++ {
			p.read("job")
		}
		if got := len(p.follow.Run().Steps); (p.failed != nil) != step.bad || !step.bad && got != step.want {
			t.Errorf("of %d bytes %d steps, want %d: %v", len(step.raw), got, step.want, p.failed)
		}
		p.mu.Unlock()
	}
}

// TestAForgedLogBringsNothingDown: one that says that it has a thousand million splits, or never ends a line.
func TestAForgedLogBringsNothingDown(t *testing.T) {
	t.Parallel()
	c := &cluster{log: filepath.Join(t.TempDir(), "events.jsonl"), jobs: []*wire.JobInfo{{Id: "job-1", State: "done"}}}
	at, browser := serve(t, c, web.Grant{})
	head := fmt.Sprintf(`{"event":"header","version":%d,"job":"x","n":[`, driver.LogVersion)
	for name, raw := range map[string]string{
		"splits":   head + strings.Repeat("1,", 13_000_000) + "1]}\n",
		"negative": head + "-1]}\n",
		"number":   head + "1e999]}\n",
		"other":    `{"event":"header","version":99}` + "\n",
		"binary":   "\x00\xff\n",
	} {
		if err := os.WriteFile(c.log, []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(time.Minute)
		for page := ""; !strings.Contains(page, "cannot be shown"); {
			if _, page, _ = get(t, browser, at+"/jobs/job-1"); time.Now().After(deadline) {
				t.Fatalf("%s: %.2000s", name, page)
			}
		}
	}
}

// TestListsHavePages, of a thousand jobs and executors, each of less than 100 kB.
func TestListsHavePages(t *testing.T) {
	t.Parallel()
	c := &cluster{}
	for k := range 1000 {
		c.jobs = append(c.jobs, &wire.JobInfo{Id: fmt.Sprintf("job-%d", k), Job: "logistic", State: "done",
			SubmittedUnixNs: int64(k + 1)})
		c.executors = append(c.executors, &wire.ExecutorInfo{Name: fmt.Sprintf("e%d", k), State: "alive"})
	}
	at, browser := serve(t, c, web.Grant{})
	for query, want := range map[string]int{"": 400, "job=job-1": 400, "job=job-1&job=none": 404,
		"job=job-1&job=job-2": 200} {
		if code, page, _ := get(t, browser, at+"/compare?"+query); code != want {
			t.Errorf("compare %q: status %d: %s", query, code, page)
		}
	}
	code, first, _ := get(t, browser, at+"/")
	if code != http.StatusOK || len(first) > 100_000 || !strings.Contains(first, "job-999<") ||
		strings.Contains(first, "job-949<") || !strings.Contains(first, "1 to 50 of 1000") {
		t.Errorf("status %d, %d bytes", code, len(first))
	}
	if _, last, _ := get(t, browser, at+"/?jobs=950&executors=950"); !strings.Contains(last, ">job-0<") ||
		!strings.Contains(last, ">e999<") || strings.Contains(last, "after</a>") {
		t.Errorf("the last page is\n%s", last)
	}
}
