package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/volley-engine/volley/internal/wire"
)

// TestRESTStories tell what the REST interface answers, of jobs and executors that a story names. Commands:
//
//	job ID state=… [kind= step= restarts= why= args= pool= weight= ended]   (input: what it printed as its result)
//	executor NAME slots=… [splits= rows= memory= disk= lost= unfit= excluded= draining drained]
//	closing                                                             (the driver begins to end)
//	get PATH [method= token= host= origin= lines=]                      (lines: only those that begin so)
func TestRESTStories(t *testing.T) {
	datadriven.Walk(t, "testdata/rest", func(t *testing.T, path string) {
		s := restStory{d: testDaemon(t)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "job":
				s.job(t, d)
			case "executor":
				s.executor(d)
			case "closing":
				s.d.cancel()
			case "get":
				return s.get(t, d)
			default:
				d.Fatalf(t, "there is no command %q", d.Cmd)
			}
			return ""
		})
	})
}

// stamps are times, in this machine's zone.
var stamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)`)

// restStory is a driver that a story is told of. Times in it are seconds after noon.
type restStory struct {
	d *Daemon
	n int64
}

func (s *restStory) time() int64 {
	s.n++
	return time.Date(2026, 1, 2, 12, 0, int(s.n), 0, time.UTC).UnixNano()
}

// text is an argument of a command; empty where it is not there.
func text(d *datadriven.TestData, key string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return strings.Join(a.Vals, " ")
		}
	}
	return ""
}

func number(d *datadriven.TestData, key string) uint64 {
	n, _ := strconv.ParseUint(text(d, key), 10, 64)
	return n
}

func (s *restStory) job(t *testing.T, d *datadriven.TestData) {
	info := &wire.JobInfo{Id: d.CmdArgs[0].Key, Job: text(d, "kind"), State: text(d, "state"), Why: text(d, "why"),
		SubmittedUnixNs: s.time(),
		Step:            number(d, "step"), Restarts: uint32(number(d, "restarts")),
		Args: strings.Fields(text(d, "args")),
		Pool: text(d, "pool"), Weight: uint32(number(d, "weight"))}
	if Over(info.State) {
		info.EndedUnixNs = s.time()
	}
	s.d.jobs.mu.Lock()
	defer s.d.jobs.mu.Unlock()
	w := s.d.jobs.newWork(info, "")
	if d.Input != "" {
		if err := os.MkdirAll(w.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.dir, "result.json"), []byte(d.Input), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.d.jobs.enter(w)
}

func (s *restStory) executor(d *datadriven.TestData) {
	m := &member{name: d.CmdArgs[0].Key, slots: uint32(number(d, "slots")), since: time.Unix(0, s.time()),
		gone:  make(chan string, 1),
		ended: make(chan struct{}), out: wire.NewOutbox(func(*wire.ForExecutor) error { return nil }, func(error) {})}
	m.mu.beat = &wire.Beat{Splits: number(d, "splits"), RowsPerSecond: float64(number(d, "rows")),
		Memory: number(d, "memory"),
		Disk:   number(d, "disk"), Unfit: text(d, "unfit")}
	m.mu.shown = ExecutorShown{Excluded: text(d, "excluded"), Draining: d.HasArg("draining"),
		Drained: d.HasArg("drained")}
	if m.mu.why = text(d, "lost"); m.mu.why != "" {
		m.mu.ended = time.Unix(0, s.time())
	}
	s.d.members.put(m)
}

func (s *restStory) get(t *testing.T, d *datadriven.TestData) string {
	code, body := get(t, s.d, d.CmdArgs[0].Key, func(r *http.Request) {
		if m := text(d, "method"); m != "" {
			r.Method = m
		}
		if h := text(d, "host"); h != "" {
			r.Host = h
		}
		if o := text(d, "origin"); o != "" {
			r.Header.Set("Origin", o)
		}
		if k := text(d, "token"); k != "" {
			r.Header.Set("Authorization", "Bearer "+k)
		}
	})
	if only := text(d, "lines"); only != "" {
		var kept []string
		for _, line := range strings.Split(body, "\n") {
			if strings.HasPrefix(line, only) {
				kept = append(kept, line)
			}
		}
		body = strings.Join(kept, "\n") + "\n"
	}
	body = stamps.ReplaceAllStringFunc(body, func(s string) string {
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return s
		}
		return at.UTC().Format(time.RFC3339)
	})
	var pretty bytes.Buffer
	if json.Indent(&pretty, []byte(body), "", "  ") == nil {
		body = pretty.String()
	}
	return fmt.Sprintf("%d\n%s", code, body)
}
