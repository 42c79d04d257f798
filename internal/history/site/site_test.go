package site

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/history"
	"github.com/volley-engine/volley/internal/synth"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
)

// logged makes a run on two executors, of which one has half the other's speed, and its event log.
func logged(t *testing.T, path string) {
	t.Helper()
	dir := t.TempDir()
	data := filepath.Join(dir, "data.libsvm")
	law := synth.Logistic{Rows: 2000, Features: 5, Eps: 0.3}
	if err := synth.Write(t.Context(), law, "libsvm", data, 1); err != nil {
		t.Fatal(err)
	}
	cfg, err := volley.ParseConfig("--clock", "virtual", "--pace", "static:1,0.5", "--pace-rate", "1000",
		"--data-dir", dir,
		"--event-log", path)
	if err != nil {
		t.Fatal(err)
	}
	job := mllib.LinearConfig{Data: []string{data}, Splits: 4, MaxIterations: 5, Solver: mllib.Auto,
		Stop: mllib.ByObjective}
	_, err = volley.Run(t.Context(), cfg, "logistic", job, mllib.BuildLinear,
		func(ctx context.Context, s *rdd.Session, job mllib.LinearConfig, p mllib.LinearPlan) (string, error) {
			out, err := mllib.TrainLinear(ctx, s, job, p)
			if err != nil {
				return "", err
			}
			return out.StoppedBy, nil
		})
	if err != nil {
		t.Fatal(err)
	}
}

// begin shows a folder, and returns a browser.
func begin(t *testing.T, dir string) (*Site, *http.Client) {
	t.Helper()
	s, err := Serve(dir, "127.0.0.1:0", hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, &http.Client{Jar: jar, Timeout: time.Minute}
}

func get(t *testing.T, browser *http.Client, url string) (code int, body string, h http.Header) {
	t.Helper()
	res, err := browser.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw), res.Header
}

// TestRunsOfAFolder: they are listed, shown and compared as volley report has them; what is no log is left out, what is
// damaged is named, and nothing outside of the folder is shown.
func TestRunsOfAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "older"), 0o755); err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join(dir, "a.log"), filepath.Join(dir, "older", "b & <b>.log")
	logged(t, first)
	raw, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	odd := `{"event":"header","version":6,"job":"<script>alert(1)</script>","n":[1]}` + "\n"
	for path, content := range map[string][]byte{second: raw, filepath.Join(dir, "notes.txt"): []byte("no log"),
		filepath.Join(dir, "cut.log"):   raw[:100],
		filepath.Join(dir, "other.log"): bytes.Replace(raw, []byte(`"iteration":2`), []byte(`"iteration":3`), 1),
		filepath.Join(dir, "odd.log"):   []byte(odd)} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, browser := begin(t, dir)
	at := "http://" + s.server.Addr()
	code, list, h := get(t, browser, s.Link())
	for _, want := range []string{">a.log</a>", "b &amp; &lt;b&gt;.log", "cut short, damaged", "&lt;script&gt;alert",
		"5 event logs", "logistic", "has no end"} {
		if code != http.StatusOK || !strings.Contains(list, want) {
			t.Errorf("status %d: the list does not have %q:\n%s", code, want, list)
		}
	}
	if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") ||
		strings.Contains(list, "<script>") || strings.Contains(list, "notes.txt") || strings.Contains(list, "style=") {
		t.Errorf("under %q:\n%s", csp, list)
	}
	run, err := history.Read(first, "a.log")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	history.DrawLinked(&want, []history.Run{run}, func(_ int, figure string) string {
		return "/numbers?" + url.Values{"log": {"a.log"}, "figure": {figure}}.Encode()
	})
	if code, numbers, _ := get(t, browser, at+"/numbers?log=a.log&figure=shares"); code != http.StatusOK ||
		!strings.HasPrefix(numbers, "step,split,share,marked\n1,0,1,") {
		t.Errorf("status %d: the numbers are %.200s", code, numbers)
	}
	if code, _, _ := get(t, browser, at+"/numbers?log=a.log&figure=none"); code != http.StatusNotFound {
		t.Errorf("the numbers of no figure: status %d", code)
	}
	if _, page, _ := whole(t, browser, at+"/runs?log=a.log"); !strings.Contains(page, want.String()) ||
		strings.Contains(page, "style=") {
		t.Errorf("the page does not have what a report has:\n%s", page)
	}
	both := url.Values{"log": {"a.log", "older/b & <b>.log"}}.Encode()
	if code, page, _ := whole(t, browser, at+"/runs?"+both); code != http.StatusOK || strings.Count(page, "<h2>") != 2 {
		t.Errorf("status %d: two runs are not compared:\n%s", code, page)
	}
	for query, status := range map[string]int{"log=../secret": 404, "log=/etc/passwd": 404, "": 400,
		"log=none.log":  404,
		"log=other.log": 422, strings.Repeat("log=a.log&", 13): 400, "log=cut.log": 422} {
		if code, page, _ := whole(t, browser, at+"/runs?"+query); code != status {
			t.Errorf("%q: status %d, want %d: %s", query, code, status, page)
		}
	}
	logged(t, filepath.Join(dir, "later.log"))
	if _, list, _ := get(t, browser, at+"/"); !strings.Contains(list, "later.log") {
		t.Error("a log that came later is not listed")
	}
}

// TestOnlyTheLinkLetsIn, once; other hosts and sites are refused, and so is what would change something.
func TestOnlyTheLinkLetsIn(t *testing.T) {
	t.Parallel()
	s, browser := begin(t, t.TempDir())
	at := "http://" + s.server.Addr()
	link := s.Link()
	for _, path := range []string{"/", "/runs?log=x", "/enter", "/enter?token=", "/enter?token=x"} {
		if code, _, _ := get(t, browser, at+path); code != http.StatusUnauthorized {
			t.Errorf("%s without the link: status %d", path, code)
		}
	}
	if code, body, _ := get(t, browser, link); code != http.StatusOK || !strings.Contains(body, "no event logs here") {
		t.Errorf("the link: status %d: %s", code, body)
	}
	if code, _, _ := get(t, &http.Client{}, link); code != http.StatusUnauthorized {
		t.Errorf("the link, used again: status %d", code)
	}
	for name, change := range map[string]func(*http.Request){
		"another host": func(r *http.Request) { r.Host = "volley.example:80" },
		"another site": func(r *http.Request) { r.Header.Set("Origin", "http://volley.example") },
		"a change":     func(r *http.Request) { r.Method = http.MethodPost },
	} {
		req, err := http.NewRequest(http.MethodGet, at+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		res, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: status %d", name, res.StatusCode)
		}
	}
	if _, err := Serve(filepath.Join(t.TempDir(), "none"), "127.0.0.1:0", hclog.NewNullLogger()); err == nil {
		t.Error("a folder that is not there is shown")
	}
	if _, err := Serve(t.TempDir(), "0.0.0.0:0", hclog.NewNullLogger()); err == nil {
		t.Error("it is shown to other machines")
	}
}

// TestLongListsHavePages: of more logs than a page has all are found, and a log that has not changed is not read again.
func TestLongListsHavePages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for k := range ofList + 7 {
		line := fmt.Sprintf(`{"event":"header","version":6,"job":"job-%d","n":[1]}`+"\n", k)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(k)), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, browser := begin(t, dir)
	_, first, _ := get(t, browser, s.Link())
	_, second, _ := get(t, browser, "http://"+s.server.Addr()+fmt.Sprintf("/?from=%d", ofList))
	if strings.Count(first, "checkbox") != ofList || strings.Count(second, "checkbox") != 7 ||
		!strings.Contains(first, "older</a>") || strings.Contains(second, "older</a>") {
		t.Errorf("%d and %d entries", strings.Count(first, "checkbox"), strings.Count(second, "checkbox"))
	}
	if _, page, _ := get(t, browser, "http://"+s.server.Addr()+"/?from=-3"); page != first {
		t.Error("a place that is none is not the beginning")
	}
}

// TestALongLogIsReadBeside: until it is read a page says how far it is and asks again, then it has the run; what cannot
// be read says so, and those that would be one too many are refused.
func TestALongLogIsReadBeside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logged(t, filepath.Join(dir, "run.log"))
	bad := []byte(`{"event":"header","version":"x"}` + "\n")
	if err := os.WriteFile(filepath.Join(dir, "bad.log"), bad, 0o600); err != nil {
		t.Fatal(err)
	}
	s, browser := begin(t, dir)
	for range atOnce {
		s.reads <- struct{}{}
	}
	get(t, browser, s.Link())
	at := "http://" + s.server.Addr() + "/runs?log=run.log"
	code, page, h := get(t, browser, at)
	if code != http.StatusOK || h.Get("Refresh") != "1" || !strings.Contains(page, "0 % of its event log are read") {
		t.Errorf("%d: while it is read: %v %s", code, h, page)
	}
	for i := range mostPages { // other choices of logs
		query := url.Values{"log": {"run.log", "run.log"}}
		for bit := range 6 {
			query.Add("log", []string{"run.log", "bad.log"}[i>>bit&1])
		}
		s.page(chosen(t, s, query["log"]))
	}
	if code, page, _ := get(t, browser, at+"&log=bad.log"); code != http.StatusServiceUnavailable {
		t.Errorf("%d: one more than there may be: %s", code, page)
	}
	for range atOnce {
		<-s.reads
	}
	code, page, h = whole(t, browser, at)
	if code != http.StatusOK || !strings.Contains(page, "<figure>") || strings.Contains(page, "are read") {
		t.Errorf("%d: when it is read: %v %.600s", code, h, page)
	}
	if code, page, _ := whole(t, browser, "http://"+s.server.Addr()+"/runs?log=bad.log"); code == http.StatusOK ||
		!strings.Contains(page, "bad.log") {
		t.Errorf("%d: of what is no log: %s", code, page)
	}
}

// whole asks for a page until it does not ask to be asked for again.
func whole(t *testing.T, browser *http.Client, url string) (code int, body string, h http.Header) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; {
		code, body, h = get(t, browser, url)
		if h.Get("Refresh") == "" || time.Now().After(until) {
			return code, body, h
		}
	}
}

// chosen returns the entries of logs.
func chosen(t *testing.T, s *Site, names []string) (of []entry) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.logs.scan(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		of = append(of, all[slices.IndexFunc(all, func(e entry) bool { return e.Path == name })])
	}
	return of
}
