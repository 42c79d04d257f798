package host

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/rdd"
)

// TestActionsSideBySide: each has its line, after the header and one line of the plan; without a log nothing is kept.
func TestActionsSideBySide(t *testing.T) {
	t.Parallel()
	g := rdd.NewGraph()
	rdd.Count(rdd.Range(g, 0, 10, 1))
	path := filepath.Join(t.TempDir(), "log")
	log, err := driver.CreateEventLog(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &record{log: log, header: driver.LogHeader{Event: "header"}}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				r.plan(g)
				r.action(&driver.LogAction{Event: "action"})
				r.shuffle(&driver.LogShuffle{Event: "shuffle"})
			}
		})
	}
	all.Wait()
	if err := r.finish(context.Background(), "end"); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for event, want := range map[string]int{"header": 1, "plan": 1, "action": 160, "shuffle": 160, "footer": 1} {
		if got := strings.Count(string(raw), `{"event":"`+event+`"`); got != want {
			t.Errorf("%d lines of %s, want %d", got, event, want)
		}
	}
	if !strings.HasPrefix(string(raw), `{"event":"header"`) {
		t.Errorf("it begins with %.60s", raw)
	}
	none := &record{}
	none.shuffle(&driver.LogShuffle{Event: "shuffle"})
	if len(none.early) > 0 {
		t.Error("lines wait for a log that there is not")
	}
}
