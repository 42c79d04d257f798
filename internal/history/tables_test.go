package history_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/history"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

type slack struct{ Clocks int }

type summing struct {
	sums *tables.Table[float64]
	work tables.Work[struct{}, rdd.Point, struct{}]
}

// worked writes the event log of twelve clocks of workers on tables, on three executors, the last of a quarter of the
// speed.
func worked(t *testing.T) (path string) {
	t.Helper()
	path, err := workedUntil(t, t.Context(), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// workedUntil calls after with each clock that all have finished.
func workedUntil(t *testing.T, ctx context.Context, after func(clock int)) (path string, err error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log")
	cfg, err := volley.ParseConfig("--pace", "static:1,1,0.25", "--slots", "1", "--executors", "3",
		"--clock", "virtual", "--pace-rate", "20000")
	if err != nil {
		t.Fatal(err)
	}
	cfg.DataDir, cfg.EventLog = t.TempDir(), path
	build := func(g *rdd.Graph, a slack) (p summing) {
		rows := rdd.Map(rdd.Range(g, 0, 6000, 1), func(n int64) rdd.Point {
			return rdd.Point{Values: []float64{float64(n)}}
		})
		p.sums = tables.New[float64](g, "sums", tables.Dense(4, 2), tables.SSP(a.Clocks))
		clock := func(c *tables.Clock[struct{}, rdd.Point, struct{}]) error {
			sums := p.sums.In(c)
			for range c.Rows() {
				sums.Inc(c.Worker()%4, 0, 1)
			}
			_ = sums.Row((c.Worker() + 1) % 4)
			return nil
		}
		p.work = tables.Worker(rdd.Pack(rows, rdd.Splits(6)), clock, p.sums)
		return p
	}
	loop := func(ctx context.Context, s *rdd.Session, _ slack, p summing) (string, error) {
		for tick, err := range p.work.Clocks(ctx, s, struct{}{}, 12, 1) {
			if err != nil {
				return "", err
			}
			after(tick.Clock)
		}
		return "end", nil
	}
	_, err = volley.Run(ctx, cfg, "sums", slack{2}, build, loop)
	return path, err
}

// TestAnInterruptedRunIsToldToItsEnd: its log has what workers had done at the last clock that was reported, and says
// why there is no more.
func TestAnInterruptedRunIsToldToItsEnd(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	path, err := workedUntil(t, ctx, func(clock int) {
		if clock == 7 {
			interrupt()
		}
	})
	if err == nil {
		t.Fatal("it was not interrupted")
	}
	if !changedLog(t, path, linesOf(t, path)) {
		t.Error("its log is not verified")
	}
	run, err := history.Read(path, "run")
	if err != nil {
		t.Fatal(err)
	}
	if run.StoppedBy != "interrupted" || run.Used.Clock < 7 || run.Used.Clock == 12 {
		t.Errorf("stopped by %q at clock %d", run.StoppedBy, run.Used.Clock)
	}
}

// TestWorkersOnTablesAreShown: who is slow, how old what was read is, and what tables are.
func TestWorkersOnTablesAreShown(t *testing.T) {
	t.Parallel()
	run, err := history.Read(worked(t), "run")
	if err != nil {
		t.Fatal(err)
	}
	u := run.Used
	if u == nil || u.Clock != 12 || len(u.Workers) != 6 || len(u.Tables) != 1 || len(u.Executors) != 3 {
		t.Fatalf("%+v", u)
	}
	if slow, fast := u.Workers[2], u.Workers[0]; slow[2] < 3*fast[2] || u.Executors[slow[0]].Name != "executor-2" {
		t.Errorf("a slow worker %v, a fast one %v", slow, fast)
	}
	var reads int64
	for _, n := range u.Tables[0].Reads {
		reads += n
	}
	if reads < 6*12 || u.Tables[0].Rows != 4 || u.Tables[0].Sent[0] == 0 || u.Tables[0].Slack != 2 {
		t.Errorf("%+v", u.Tables[0])
	}
	var page strings.Builder
	history.Draw(&page, []history.Run{run})
	for _, want := range []string{"all had finished 12", "2, executor-2", "sums: none",
		"reads, which on average missed the newest",
		"in 4 rows", "the slack is 2 clocks", "those of executor-2 for",
		"rows asked for"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(page.String(), "done by others") { // none helps
		t.Error("it has help that was not")
	}
	for _, width := range []int{40, 120} {
		if text := run.Text(width); !strings.Contains(text, "executor-2") {
			t.Errorf("a terminal of %d columns has %s", width, text)
		}
	}
}

// TestChangedTablesAreRefused: what a log says of workers on tables can have been, and is within what tables allow.
func TestChangedTablesAreRefused(t *testing.T) {
	t.Parallel()
	path := worked(t)
	whole := linesOf(t, path)
	if !changedLog(t, path, linesOf(t, path)) {
		t.Fatal("as it was it is refused")
	}
	worker := func(at int, n int64) (w [8]int64) {
		w = [8]int64{0, 12, 1, 1, 1, 1, 1, 1}
		w[at] = n
		return w
	}
	changes := map[string][]any{
		"line":                  {0, 99},
		"clock":                 {-1, 0, 1 << 40},
		"helping_bytes":         {-1, 1 << 60},
		"state_bytes":           {-1},
		"executors":             {[]any{}},
		"executors.1.name":      {"executor-0", ""},
		"executors.0.slots":     {-1, 1 << 40},
		"executors.0.busy_ns":   {-1, 1 << 60},
		"executors.0.waited_ns": {-1, 1 << 60},
		"workers":               {[]any{}, [][]int64{{0, 100, 1, 1, 1, 0, 0, 0}}},
		"tables.0.name":         {strings.Repeat("x", 401)},
		"tables.0.slack":        {-2, -1, 0, 1, 3, 1000},
		"tables.0.rows":         {-1, 0, 1 << 62},
		"tables.0.bytes":        {-1, 1 << 60},
		"tables.0.waits":        {-1, 1 << 62},
		"tables.0.sent":         {[]any{}},
		"tables.0.sent.0":       {-1, 1 << 60},
		"tables.0.reads":        {[]any{}},
		"tables.0.reads.0":      {-1, 1 << 62},
		"tables.0.reads.3":      {1},
		"tables.0.reads.15":     {1},
	}
	for at := range 8 {
		changes["workers.0"] = append(changes["workers.0"], worker(at, -1), worker(at, math.MaxInt64))
	}
	changes["workers.0"] = append(changes["workers.0"], []int64{0, 100}, []int64{0, 100, 1, 1, 1, 0, 0, 0, 0})
	changes["workers.0"] = append(changes["workers.0"], worker(0, 3), worker(1, 0), worker(6, 2),
		[]int64{0, 12, 1, 1, 1, 0, 0, 100})
	tried := 0
	for i, line := range whole {
		if !bytes.HasPrefix(line, []byte(`{"event":"tables"`)) || bytes.Contains(line, []byte(`"clock":1,`)) {
			continue
		}
		tried += refusesChanges(t, path, whole, i, changes)
	}
	if tried < 60 {
		t.Error(fmt.Sprint("only ", tried, " changes were tried"))
	}
}
