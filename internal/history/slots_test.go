package history_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/audit/logtest"
	"github.com/volley-engine/volley/internal/history"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd"
)

// trained writes the event log of ten steps on three executors of two slots, the last of a quarter of the speed.
func trained(t *testing.T, sync string) (path string) {
	t.Helper()
	cfg, err := volley.ParseConfig("--sync", sync, "--pace", "static:1,1,0.25", "--slots", "2", "--executors", "3",
		"--clock", "virtual", "--pace-rate", "2000")
	if err != nil {
		t.Fatal(err)
	}
	return stepped(t, cfg, 12)
}

// stepped writes the event log of ten steps over a number of splits.
func stepped(t *testing.T, cfg volley.Config, splits int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log")
	cfg.DataDir, cfg.EventLog = t.TempDir(), path
	build := func(g *rdd.Graph, _ struct{}) rdd.Step[int, int64] {
		rows := rdd.Map(rdd.Range(g, 0, 3000, 1), func(n int64) rdd.Point {
			return rdd.Point{Values: []float64{float64(n)}}
		})
		return rdd.Aggregate(rdd.Pack(rows, rdd.Splits(splits)), rdd.Aggregator[int, rdd.Point, int64]{
			Zero:  func(int) int64 { return 0 },
			Add:   func(n int64, _ int, _ rdd.Point) int64 { return n + 1 },
			Merge: func(a, b int64) int64 { return a + b },
			Scale: func(a int64, _ float64) int64 { return a },
		}, rdd.Aggressive(0.5))
	}
	loop := func(ctx context.Context, s *rdd.Session, _ struct{}, step rdd.Step[int, int64]) (string, error) {
		for range 10 {
			if _, err := step.Run(ctx, s, 0); err != nil {
				return "", err
			}
		}
		return "end", nil
	}
	if _, err := volley.Run(context.Background(), cfg, "steps", struct{}{}, build, loop); err != nil {
		t.Fatal(err)
	}
	return path
}

// spansOf returns for how long the slots of an executor did something in a step.
func spansOf(e driver.LogSlotsOf, kind plan.SpanKind) (sum int64) {
	for _, p := range e.Spans {
		if p[1] == int64(kind) {
			sum += p[5]
		}
	}
	return sum
}

// TestSlotsOfAStep: each slot of each executor has a row, what they did is where the step was, and who is fast helps.
func TestSlotsOfAStep(t *testing.T) {
	t.Parallel()
	for sync, helped := range map[string]bool{"absp": false, "bsp": false, "steal": true} {
		run, err := history.Read(trained(t, sync), sync)
		if err != nil {
			t.Fatal(err)
		}
		s := run.Told
		if s == nil || s.Number != 10 || len(s.Slots) != 3 {
			t.Fatalf("%s: the last step that is told of is %+v", sync, s)
		}
		var rows, others int64
		for _, e := range s.Slots {
			did := spansOf(e, plan.Folding) + spansOf(e, plan.Helping)
			most := 2*e.BusyNs + 2*e.BusyNs/10
			if did < 2*e.BusyNs || !helped && did > most { // leases not merged count, too
				t.Errorf("%s: %s folded for %d ns in spans, %d by its results", sync, e.Executor, did, 2*e.BusyNs)
			}
			if rows, others = rows+e.Rows, others+spansOf(e, plan.Helping); e.ArrivedNs > int64(s.Took) {
				t.Errorf("%s: %s was here after the step", sync, e.Executor)
			}
		}
		if (others > 0) != helped || rows == 0 || sync != "absp" && rows != 3000 {
			t.Errorf("%s: %d rows, others' for %d ns", sync, rows, others)
		}
		var page strings.Builder
		history.Draw(&page, []history.Run{run})
		for _, want := range []string{"Step 10: what each slot did", "executor-2 slot 1", "executor-2 slot 2",
			"Here: "} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("%s: the page has no %q", sync, want)
			}
		}
	}
}

// changedLog writes a log with some of its lines changed, and reports whether it is verified.
func changedLog(t *testing.T, path string, lines [][]byte) bool {
	t.Helper()
	if err := os.WriteFile(path, bytes.Join(logtest.Seal(lines), nil), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := audit.Read(path)
	return err == nil && len(audit.Verify(l).Violations) == 0
}

func linesOf(t *testing.T, path string) [][]byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.SplitAfter(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n"))
}

// TestChangedSlotsAreRefused: what a log says of slots is what the reports of the step say, and can have been.
func TestChangedSlotsAreRefused(t *testing.T) {
	t.Parallel()
	path := trained(t, "steal")
	whole := linesOf(t, path)
	if !changedLog(t, path, linesOf(t, path)) {
		t.Fatal("as it was it is refused")
	}
	changes := map[string][]any{"line": {0, 99}, "executors.0.executor": {"x"}, "executors.0.slots": {0, 3, 1 << 40},
		"executors.1.rows": {-1, 3001}, "executors.1.helped": {-1, 4000}, "executors.2.busy_ns": {-1, 1},
		"executors.0.arrived_ns": {-1, 1 << 60}, "executors": {[]any{}},
		"executors.0.spans.0": {[]int64{0, 9, -1, 0, 1, 1}, []int64{7, 1, 0, 0, 1, 1}, []int64{0, 1, 99, 0, 1, 1},
			[]int64{0, 1, -2, 0, 1, 1}, []int64{0, 1, 0, 5, 1, 0}, []int64{0, 1, 0, -5, 1, 0},
			[]int64{0, 1, 0, 0, 1 << 60, 0}, []int64{0, 1, 0, 0, 1, 2}, []int64{0, 1, 0, 0, 1, -1}}}
	tried := 0
	for i, line := range whole {
		if !bytes.HasPrefix(line, []byte(`{"event":"slots"`)) {
			continue
		}
		tried += refusesChanges(t, path, whole, i, changes)
	}
	if tried < 40 {
		t.Errorf("only %d changes were tried", tried)
	}
}

// TestSpeedsWithoutReports: who is slow is known of what slots did, where a log has left reports out.
func TestSpeedsWithoutReports(t *testing.T) {
	t.Parallel()
	path := trained(t, "absp")
	lines := linesOf(t, path)
	for i, line := range lines {
		var l map[string]any
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l["event"] == "step" {
			line = logtest.Changed(t, bytes.TrimSuffix(line, []byte("\n")), "reports", nil)
			lines[i] = append(bytes.TrimSuffix(logtest.Changed(t, line, "reports_left_out", true), []byte("\n")), '\n')
		}
	}
	if !changedLog(t, path, lines) {
		t.Fatal("without reports it is refused")
	}
	run, err := history.Read(path, "run")
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Speeds) != 3 || math.Abs(float64(run.Speeds[2]/run.Speeds[0])-0.25) > 0.05 {
		t.Errorf("executors have %v rows a second", run.Speeds)
	}
	if words := fmt.Sprint(run.Words()); !strings.Contains(words, "executor-2 is slow") {
		t.Errorf("who is slow is not said: %s", words)
	}
}

// TestSlotsAfterALoss: who takes splits of a lost executor over folds them as they come, beside what it folds, and the
// log is whole, and drawn. Who is lost neither waits nor is slow.
func TestSlotsAfterALoss(t *testing.T) {
	t.Parallel()
	for _, after := range []int{1, 3, 7} {
		losses := []volley.Loss{{Executor: 3, After: after}}
		path := stepped(t, volley.Config{Executors: 4, Slots: 1, Losses: losses}, 100)
		l, err := audit.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if broken := audit.Verify(l).Violations; len(broken) > 0 {
			t.Errorf("lost after %d messages: %v", after, broken)
		}
		run, err := history.Read(path, "run")
		if err != nil {
			t.Fatal(err)
		}
		words := fmt.Sprint(run.Words())
		if strings.Contains(words, "executor-3 is slow") || !strings.Contains(words, "Executor executor-3 (by step ") {
			t.Errorf("who is lost is not said: %s", words)
		}
		f := run.Figures()["step"]
		if f.Empty() || strings.Contains(f.Here, "NaN") {
			t.Errorf("lost after %d messages: %q", after, f.Here)
		}
	}
}

// refusesChanges checks that a log is refused where a field of one of its lines has another value, or where the line is
// there twice, and returns how many values were tried.
func refusesChanges(t *testing.T, path string, whole [][]byte, i int, changes map[string][]any) (tried int) {
	t.Helper()
	line := whole[i]
	for field, values := range changes {
		for _, v := range values {
			changed := append([][]byte{}, whole...)
			changed[i] = append(bytes.TrimSuffix(logtest.Changed(t, bytes.TrimSuffix(line, []byte("\n")), field, v),
				[]byte("\n")), '\n')
			if tried++; changedLog(t, path, changed) {
				t.Errorf("line %d, %s = %v is taken", i+1, field, v)
			}
		}
	}
	if twice := append(append(append([][]byte{}, whole[:i]...), line), whole[i:]...); changedLog(t, path, twice) {
		t.Errorf("line %d is taken twice", i+1)
	}
	return tried
}
