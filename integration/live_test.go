package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/volley-engine/volley/integration/lab"
)

// tab is one of a browser, which keeps what the browser complains of.
type tab struct {
	context.Context
	t        *testing.T
	mu       sync.Mutex
	complain []string
}

// openTab opens a tab of a browser of its own.
func openTab(t *testing.T, chromium string) *tab {
	t.Helper()
	flags := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium),
		chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))
	allocated, cancel := chromedp.NewExecAllocator(t.Context(), flags...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)
	b := &tab{Context: ctx, t: t}
	chromedp.ListenTarget(ctx, func(ev any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			b.complain = append(b.complain, ev.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			b.complain = append(b.complain, fmt.Sprint(ev.Type))
		case *log.EventEntryAdded:
			b.complain = append(b.complain, ev.Entry.Text+" "+ev.Entry.URL)
		}
	})
	if err := chromedp.Run(ctx, log.Enable()); err != nil { // the browser ends with the context of its first actions
		t.Fatal(err)
	}
	return b
}

// do carries actions out, within a bound.
func (b *tab) do(what string, actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b, time.Minute)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// shows waits until an element has a text, and returns how long that took.
func (b *tab) shows(element, text string) time.Duration {
	b.t.Helper()
	began := time.Now()
	script := fmt.Sprintf("(document.querySelector(%q)||{}).textContent?.includes(%q) === true", element, text)
	b.do(element+" shows "+text, chromedp.Poll(script, nil, chromedp.WithPollingInterval(10*time.Millisecond)))
	return time.Since(began)
}

// silent fails where the browser has complained: of errors of scripts, or of what a page's policy forbids.
func (b *tab) silent() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complain {
		b.t.Error("the browser complains: " + c)
	}
}

// accessible checks a page by axe-core, where that is there: what it calls serious or critical fails.
func (b *tab) accessible(axe, page string) {
	b.t.Helper()
	if axe == "" {
		return
	}
	var found []string
	b.do("check "+page, chromedp.Evaluate(axe, nil), chromedp.Evaluate(`axe.run().then(r => r.violations.filter(v =>
		["serious", "critical"].includes(v.impact)).map(v => v.id + ": " + v.help + " " + v.nodes[0].html))`, &found,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, v := range found {
		b.t.Errorf("%s is not accessible: %s", page, v)
	}
}

// axeCore returns the script of axe-core, which npm brings; empty where it cannot.
func axeCore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "npm", "install", "--silent", "--no-audit", "--prefix", dir,
		"axe-core@4.10.3").CombinedOutput(); err != nil {
		t.Logf("axe-core does not check the pages: npm: %v: %s", err, out)
		return ""
	}
	raw, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// picture keeps a picture of a page, where VOLLEY_PICTURES names a directory for them.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("VOLLEY_PICTURES")
	if dir == "" {
		return
	}
	var raw []byte
	b.do("draw "+name, chromedp.Evaluate(`document.getElementById("how")?.remove()`, nil), // which has paths
		chromedp.EmulateViewport(1200, 900), chromedp.FullScreenshot(&raw, 100))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), raw, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// TestTheLivePageInABrowser: of a job on four executors, of which one has a quarter of the others' speed and one is
// killed, the page shows the cut steps, what comes first after them, and who is lost; a button cancels another job.
func TestTheLivePageInABrowser(t *testing.T) {
	chromium := browser(t)
	axe := axeCore(t)
	c := &cluster{lab.New(binary, t.TempDir(), "--suspicion", suspicion.String(), "--http", "127.0.0.1:0"), t}
	t.Cleanup(c.stop)
	c.startDriver()
	for name, speed := range map[string]string{"a": "1", "b": "1", "c": "1", "slow": "0.25"} {
		c.join(name, "--pace", "static:"+speed, "--pace-rate", "20000")
	}
	data := labelled(t, 20_000)
	flags := []string{"--data", data, "--sync", "absp", "--sync-ratio", "0.6", "--splits", "16", "--solver", "nesterov",
		"--tol", "0", "--max-iterations"}
	id := c.submit(append(flags, "100000")...)
	b, base := openTab(t, chromium), "http://"+c.Driver.Ready["http"]
	another, errs, code := volley(t, "page", "--driver", c.Addr)
	if code != 0 || another == c.Driver.Ready["page"] {
		t.Fatalf("exit %d: %s%s", code, another, errs)
	}
	b.do("open the link", chromedp.Navigate(strings.TrimSpace(another)))
	b.shows("#jobs", id)
	b.shows("#executors", "slow")
	c.atStep(id, 10)

	jobPage := base + "/jobs/" + id
	b.do("open the job", chromedp.Navigate(jobPage))
	b.shows("#words", "ended before every row was processed")
	b.shows("#words", "slow is slow: it processes")
	b.shows("#step", "the step is cut")
	b.shows("#cursors", "left out")
	b.shows("#shares", "< 100 %")
	b.shows("#live", "live")

	overview := openTab(t, chromium)
	link := strings.TrimSpace(token(t, c))
	overview.do("open the overview by a token", chromedp.Navigate(base+"/enter?token="+link))
	overview.shows("#live", "live")
	c.Signal("b", syscall.SIGKILL)
	t.Logf("the overview shows the loss %v after the kill", overview.shows("#executors", "lost"))
	t.Logf("the job's page shows it %v later", b.shows("#words", "An executor is lost; its splits go to others: b."))
	overview.picture("overview")
	b.picture("job")

	for _, page := range []string{base + "/", jobPage, jobPage + "/output", jobPage + "/cancel", base + "/jobs/none"} {
		for _, width := range []int64{360, 800, 1280} {
			var wide bool
			b.do("open "+page, chromedp.EmulateViewport(width, 900), chromedp.Navigate(page),
				chromedp.Evaluate("document.documentElement.scrollWidth > innerWidth", &wide))
			if wide {
				t.Errorf("%s does not fit in %d pixels", page, width)
			}
		}
		b.accessible(axe, page)
	}
	b.do("cancel it", chromedp.Navigate(jobPage), chromedp.Click("//a[text()='cancel it']", chromedp.BySearch),
		chromedp.Click("form.act button", chromedp.NodeVisible))
	b.do("wait for the job's page", chromedp.WaitVisible("#state"))
	b.shows("#state", "cancelled")
	b.shows("#live", "ended")
	if j, err := c.job(id); err != nil || j.State != "cancelled" {
		t.Errorf("the job is %s: %v", j.State, err)
	}
	b.complain = slices.DeleteFunc(b.complain, func(s string) bool { return strings.Contains(s, "404") }) // asked for
	b.silent()
	overview.silent()
}

// token returns one that lets its holder read.
func token(t *testing.T, c *cluster) string {
	t.Helper()
	out, errs, code := volley(t, "token", "create", "--role", "read", "--driver", c.Addr)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	return strings.Fields(out)[0]
}
