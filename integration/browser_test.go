package integration

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// browser returns a headless browser; where there is none the test is skipped, and says so.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium")
	return ""
}

// seen opens a page in a browser of a width, and returns what it then has; it must not have complained of anything.
func seen(t *testing.T, browser, page string, width int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
		"--user-data-dir="+t.TempDir(), fmt.Sprintf("--window-size=%d,1200", width), "--dump-dom", page)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	for _, complaint := range []string{"CONSOLE", "Content Security Policy", "Uncaught"} {
		if strings.Contains(said.String(), complaint) {
			t.Errorf("%s, %d pixels wide: %s", page, width, said.String())
		}
	}
	return string(out)
}

// TestPagesInABrowser: a report and the list of a folder's runs are shown by a browser, narrow and wide, without a
// complaint of its own or of the page's security policy.
func TestPagesInABrowser(t *testing.T) {
	chromium, dir := browser(t), t.TempDir()
	log, page := filepath.Join(dir, "run.log"), filepath.Join(dir, "run.html")
	for _, args := range [][]string{{"run", "logistic", "--data", labelled(t, 4000), "--clock", "virtual",
		"--pace", "static:1,1,1,0.25", "--max-iterations", "10", "--event-log", log,
		"--data-dir", filepath.Join(dir, "packs")},
		{"report", log, "--out", page}} {
		if _, errs, code := volley(t, args...); code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
	}
	for _, width := range []int{360, 800, 1280} {
		if dom := seen(t, chromium, "file://"+page, width); !strings.Contains(dom, "is slow: it processes") {
			t.Errorf("%d pixels wide the report has\n%s", width, dom)
		}
		if dom := seen(t, chromium, listed(t, dir), width); !strings.Contains(dom, "run.log</a>") {
			t.Errorf("%d pixels wide the list has\n%s", width, dom)
		}
	}
}

// listed shows a folder's runs until the test ends, and returns the link.
func listed(t *testing.T, dir string) string {
	t.Helper()
	c := exec.Command(binary, "history", dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	link, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(link)
}
