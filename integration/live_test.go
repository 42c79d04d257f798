package integration

import (
	"context"
	"errors"
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

	"github.com/chromedp/cdproto"
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
	poll := chromedp.Poll(script, nil, chromedp.WithPollingInterval(10*time.Millisecond))
	b.do(element+" shows "+text, chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			var gone *cdproto.Error
			if err := poll.Do(ctx); !errors.As(err, &gone) || !strings.Contains(gone.Message, "context") {
				return err
			} // a page that was just opened may still take the place of the one before it
		}
	}))
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
	b.shows("#words", "Executor slow is slow: it processes")
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
	t.Logf("the job's page shows it %v later", b.shows("#words", "Executor b (by step"))
	overview.picture("overview")
	b.picture("job")

	b.do("open the stacks", chromedp.Navigate(jobPage+"/stacks"))
	for _, of := range []string{"its own process", "slow", "goroutine"} {
		b.shows("#stacks", of)
	}
	b.fits(axe, base+"/", jobPage, jobPage+"/output", jobPage+"/stacks", jobPage+"/cancel", base+"/jobs/none")
	b.do("cancel it", chromedp.Navigate(jobPage), chromedp.Click("//a[text()='cancel it']", chromedp.BySearch),
		chromedp.Click("form.act button", chromedp.NodeVisible))
	b.do("wait for the job's page", chromedp.WaitVisible("#state"))
	b.shows("#state", "cancelled")
	b.shows("#live", "ended")
	if j, err := c.job(id); err != nil || j.State != "cancelled" {
		t.Errorf("the job is %s: %v", j.State, err)
	}
	c.pagesOfOthers(b, axe, base, id, data)
	b.complain = slices.DeleteFunc(b.complain, func(s string) bool { return strings.Contains(s, "404") }) // asked for
	b.silent()
	overview.silent()
}

// fits checks that pages fit in three widths, and that axe finds nothing serious.
func (b *tab) fits(axe string, pages ...string) {
	b.t.Helper()
	for _, page := range pages {
		for _, width := range []int64{360, 800, 1280} {
			var wide bool
			b.do("open "+page, chromedp.EmulateViewport(width, 900), chromedp.Navigate(page),
				chromedp.Evaluate("document.documentElement.scrollWidth > innerWidth", &wide))
			if wide {
				b.t.Errorf("%s does not fit in %d pixels", page, width)
			}
		}
		b.accessible(axe, page)
	}
}

// pagesOfOthers has a job of workers on tables and one of a dataflow run, and looks at their pages, at what the last
// prints, and at the first beside a job of steps.
func (c *cluster) pagesOfOthers(b *tab, axe, base, steps, data string) {
	c.t.Helper()
	onTables := c.submit("--data", data, "--sync", "ssp", "--tol", "0", "--max-iterations", "5")
	words := built(c.t, "./examples/01-wordcount")
	dir, err := os.MkdirTemp("", "pages-") // whose name is in a picture
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { os.RemoveAll(dir) })
	text, err := os.ReadFile("../docs/guide.md")
	if err != nil || os.WriteFile(filepath.Join(dir, "guide.md"), text, 0o600) != nil {
		c.t.Fatal(err)
	}
	out, errs, code := volley(c.t, "submit", "--driver", c.Addr, "--detach", "--binary", words, "--", "--input",
		filepath.Join(dir, "guide.md"), "--output", filepath.Join(dir, "words-of-the-guide"))
	if code != 0 {
		c.t.Fatalf("exit %d: %s", code, errs)
	}
	dataflow := strings.TrimSpace(out)
	for _, id := range []string{onTables, dataflow} {
		c.await(id, "done", func(j job) bool { return j.State == "done" })
	}
	compared := base + "/compare?job=" + steps + "&job=" + onTables
	b.fits(axe, base+"/jobs/"+onTables, base+"/jobs/"+dataflow, base+"/jobs/"+dataflow+"/output", compared)
	b.do("open the job on tables", chromedp.Navigate(base+"/jobs/"+onTables))
	b.shows("#workers", "wait")
	b.do("open the dataflow", chromedp.Navigate(base+"/jobs/"+dataflow))
	b.shows("#plan", "shuffle")
	b.picture("dataflow")
	b.do("open what it prints", chromedp.Navigate(base+"/jobs/"+dataflow+"/output"))
	b.picture("output")
	b.do("open both", chromedp.Navigate(compared))
	b.shows("#over", onTables)
	b.picture("compare")
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
