package tables_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// TestWorkersThatDoNotComeBackEndTheRun by name: one that blocks, one that computes without a sign of it, one whose
// goroutine ends. One that calls Worked goes on.
func TestWorkersThatDoNotComeBackEndTheRun(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	spin := func(sign func()) {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
				sign()
			}
		}
	}
	for name, c := range map[string]struct {
		do   func(c *tables.Clock[int, int64, struct{}])
		want string
		kind fault.Kind
	}{
		"blocked": {func(*tables.Clock[int, int64, struct{}]) { <-over }, "it has taken no row", fault.Timeout},
		"busy": {func(*tables.Clock[int, int64, struct{}]) { spin(func() {}) }, "it has taken no row",
			fault.Timeout},
		"goexit": {func(*tables.Clock[int, int64, struct{}]) { runtime.Goexit() }, "runtime.Goexit", fault.UserCode},
		"in order": {func(c *tables.Clock[int, int64, struct{}]) {
			for range 2_000_000 {
				c.Worked(1e-6)
			}
		}, "", fault.Internal},
	} {
		err := runStuck(context.Background(), t, c.do, "--task-timeout", "2s")
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "clock 2 of worker 1")):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// runStuck runs two workers of which one does something in its third clock.
func runStuck(ctx context.Context, t *testing.T, do func(c *tables.Clock[int, int64, struct{}]),
	flags ...string) error {
	t.Helper()
	cfg, err := volley.ParseConfig(append(flags, "--data-dir", t.TempDir(), "--executors", "2")...)
	if err != nil {
		return err
	}
	build := func(g *rdd.Graph, _ struct{}) tables.Work[int, int64, struct{}] {
		table := tables.New[float64](g, "t", tables.Dense(3, 2), tables.SSP(1))
		data := rdd.Pack(rdd.Range(g, 0, 4, 2), rdd.Splits(2))
		return tables.Worker(data, func(k *tables.Clock[int, int64, struct{}]) error {
			if k.Worker() == 1 && k.Number() == 2 {
				do(k)
			}
			table.In(k).Inc(0, 0, 1)
			return nil
		}, table)
	}
	_, err = volley.Run(ctx, cfg, "stuck", struct{}{}, build, func(ctx context.Context,
		s *rdd.Session, _ struct{}, w tables.Work[int, int64, struct{}]) (string, error) {
		for _, err := range w.Clocks(ctx, s, 0, 5, 1) {
			if err != nil {
				return "", err
			}
		}
		return "", nil
	})
	return err
}

// TestAnInterruptedRunDoesNotWaitForGood, for a worker that does not come back.
func TestAnInterruptedRunDoesNotWaitForGood(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	for _, clock := range [][]string{nil, {"--clock", "virtual", "--pace", "static:1,1", "--pace-rate", "1000"}} {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- runStuck(ctx, t, func(*tables.Clock[int, int64, struct{}]) {
				cancel()
				<-over
			}, append(clock, "--task-timeout", "500ms")...)
		}()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "canceled") {
				t.Errorf("%v: %v", clock, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("%v: it goes on", clock)
		}
	}
}
