package daemon

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// TestTheLastWordsAreWhyItEnded: of all that a job's process has printed, the user
// is shown what it died of.
func TestTheLastWordsAreWhyItEnded(t *testing.T) {
	const stack = "\n\ngoroutine 1 [running]:\nmain.run(0x1)\n\t/src/main.go:12 +0x1d\nmain.main()\n\t/src/main.go:5 " +
		"+0x2a\nexit status 2\n"
	for name, c := range map[string]struct{ said, want string }{
		"an error": {"volley: read /x: no such file\n", "read /x: no such file"},
		"a panic":  {"panic: row seven" + stack, "row seven"},
		"a panic after the engine": {"volley: waiting for executors: none has joined\npanic: row seven" +
			stack, "row seven"},
		"a panic in a panic":           {"panic: row seven [recovered]\n\tpanic: row eight" + stack, "row seven"},
		"a fatal error":                {"fatal error: all goroutines are asleep - deadlock!" + stack, "deadlock"},
		"an error that is a long text": {"volley: run partition 3 on e1: panic: row seven" + stack, "row seven"},
		"progress before an error": {"step 10 of 60\nvolley: the disk is full\nstep 11 of 60\n",
			"the disk is full"},
		"nothing": {"step 10 of 60\n", "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			d := scriptedDaemon(t, fmt.Sprintf("cat >&2 <<'END'\n%s\nEND\nexit 3", strings.TrimSuffix(c.said, "\n")))
			i := awaitJob(t, submitted(t, d), "end", over)
			notice := strings.Contains(i.Why, "waiting for executors") || strings.Contains(i.Why, "step 1") &&
				name != "nothing"
			if i.State != JobFailed || !strings.Contains(i.Why, c.want) || notice {
				t.Errorf("%s: %q, want something of %q", i.State, i.Why, c.want)
			}
		})
	}
}

// TestTheLastWordsAreOfTheLastLife: what an earlier process of a job complained of is
// not what the last one died of.
func TestTheLastWordsAreOfTheLastLife(t *testing.T) {
	d := scriptedDaemon(t, `if [ -e lived ]; then exit 7; fi
touch lived
echo "volley: an old complaint" >&2
kill -9 $$`)
	if i := awaitJob(t, submitted(t, d), "end", over); strings.Contains(i.Why, "old complaint") ||
		!strings.Contains(i.Why, "7") {
		t.Errorf("%s: %q", i.State, i.Why)
	}
}

// TestScrapesAtOnceCountOnce: each of many that ask for the metrics at the same time
// is told how many jobs there are.
func TestScrapesAtOnceCountOnce(t *testing.T) {
	d := testDaemon(t)
	const jobs, clients, times = 300, 8, 40
	for i := range jobs {
		id := fmt.Sprintf("job-%06d", i+1)
		d.jobs.mu.Lock()
		d.jobs.add(d.jobs.newWork(&wire.JobInfo{Id: id, State: JobDone}, trust.NewSecret()))
		d.jobs.mu.Unlock()
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	said := map[string]int{}
	for range clients {
		wg.Go(func() {
			for range times {
				line := doneJobs(d)
				mu.Lock()
				said[line]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	want := fmt.Sprintf(`volley_jobs{state="done"} %d`, jobs)
	if said[want] != clients*times {
		t.Errorf("%d of %d were told %q; all: %v", said[want], clients*times, want, said)
	}
}

// doneJobs is what the metrics say of jobs that are done.
func doneJobs(d *Daemon) string {
	req, _ := http.NewRequest("GET", "http://"+d.HTTPAddr()+"/metrics", nil)
	req.Header.Set("Authorization", "Bearer "+readToken(d))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	var text strings.Builder
	if err := res.Write(&text); err != nil {
		return err.Error()
	}
	lines := strings.Split(text.String(), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, `volley_jobs{state="done"}`) })
	if at < 0 {
		return "nothing"
	}
	return strings.TrimSpace(lines[at])
}
