package history_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/audit/logtest"
	"github.com/volley-engine/volley/internal/history"
	"github.com/volley-engine/volley/rdd"
)

// counted writes the event log of a program that counts words, of which one is most.
func counted(t *testing.T) string {
	t.Helper()
	in, log := filepath.Join(t.TempDir(), "text"), filepath.Join(t.TempDir(), "log")
	var text strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&text, "the the the word%d\n", i)
	}
	if err := os.WriteFile(in, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	type plan struct {
		Count rdd.Action[int64]
	}
	build := func(g *rdd.Graph, _ int) plan {
		words := rdd.FlatMap(rdd.TextFile(g, in), strings.Fields)
		pairs := rdd.Map(words, func(w string) rdd.Pair[string, int] { return rdd.Pair[string, int]{Key: w, Value: 1} })
		return plan{rdd.Count(rdd.GroupByKey(pairs))}
	}
	run := func(ctx context.Context, s *rdd.Session, _ int, p plan) (string, error) {
		n, err := p.Count.Run(ctx, s)
		if err == nil && n != 60_001 {
			err = fmt.Errorf("%d words", n)
		}
		return "end", err
	}
	cfg := volley.Config{Executors: 2, DataDir: t.TempDir(), EventLog: log, TaskMemory: 256 << 10}
	if _, err := volley.Run(context.Background(), cfg, "words", 0, build, run); err != nil {
		t.Fatal(err)
	}
	return log
}

// TestARunOfActions: what its tasks have come to is in its log, is drawn and said.
func TestARunOfActions(t *testing.T) {
	t.Parallel()
	run, err := history.Read(counted(t), "words")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(run.Words(), " ")
	for _, want := range []string{"words: a program whose work is actions", "took longest", "on 2 executors"} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is not in %s", want, words)
		}
	}
	if text := run.Text(120); !strings.Contains(text, "3 group-by-key") || !strings.Contains(text, "60000 rows read") {
		t.Errorf("a terminal shows %s", text)
	}
	figures := run.Figures()
	for _, name := range []string{"plan", "tasks", "partitions", "fetched", "ran"} {
		if figures[name].Empty() {
			t.Errorf("there is no figure %s", name)
		}
	}
	var read, moved int64
	for _, o := range run.Plan {
		if o.Moved != nil {
			read, moved = o.Rows, o.Moved.Rows
		}
	}
	var fetched, spilled int64
	for _, e := range run.Ran {
		spilled += e.Spilled
		for _, from := range e.Fetched {
			fetched += from.Bytes
		}
	}
	t.Logf("%d fetched, %d spilled, %d", fetched, spilled, run.Plan[3].Moved.Bytes)
	if read != 60_000 || moved != 240_000 {
		t.Errorf("%d lines were read, and %d words moved", read, moved)
	}
}

// TestChangedActionsAreRefused: a log whose lines of actions do not make sense is not verified.
func TestChangedActionsAreRefused(t *testing.T) {
	t.Parallel()
	path := counted(t)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.SplitAfter(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n"))
	verified := func(lines [][]byte) bool {
		if err := os.WriteFile(path, bytes.Join(logtest.Seal(lines), nil), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := audit.Read(path)
		return err == nil && len(audit.Verify(l).Violations) == 0
	}
	if !verified(bytes.SplitAfter(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n"))) {
		t.Fatal("as it was it is refused")
	}
	changes := map[string]map[string][]any{
		`"plan"`: {"nodes": {[]any{map[string]any{"node": 1, "stage": 0, "kind": "x"}},
			[]any{map[string]any{"node": 0, "stage": 0, "kind": "x", "inputs": [][]int{{0}}}}}},
		`"action"`: {"node": {-1, 99}, "tasks": {0, 99}, "rows": {-1, 7}, "took_ns": {-1}, "began_ns": {-1}, "again": {-1},
			"lost": {-1, 1}, "executors.0.spilled": {-1, 1 << 60},
			"executors.0.fetched_others": {-1, 1 << 60},
			"executors.0.fetched": {[]any{map[string]any{"holder": "x", "bytes": -1}},
				[]any{map[string]any{"holder": "x", "bytes": 1}, map[string]any{"holder": "a", "bytes": 1}}},
			"busy_ns": {[]int64{5, 4, 3, 2, 1}, []int64{0, 0, 0, 0, 1 << 60}}},
		`"shuffle"`: {"tasks": {0}, "rows": {-1}, "bytes": {-1, 0}, "partitions": {-1}, "largest": {-1, 1 << 30},
			"partition_bytes": {[]int64{5, 4, 3, 2, 1}}, "hot_share": {-1.0, 2.0}},
	}
	tried := 0
	for i, line := range whole {
		for kind, fields := range changes {
			if !bytes.HasPrefix(line, []byte(`{"event":`+kind)) {
				continue
			}
			for field, values := range fields {
				for _, v := range values {
					changed := append([][]byte{}, whole...)
					changed[i] = logtest.Changed(t, bytes.TrimSuffix(line, []byte("\n")), field, v)
					if !bytes.HasSuffix(changed[i], []byte("\n")) {
						changed[i] = append(changed[i], '\n')
					}
					if tried++; verified(changed) {
						t.Errorf("line %d, %s = %v is taken", i+1, field, v)
					}
				}
			}
		}
	}
	if tried < 20 {
		t.Errorf("only %d changes were tried", tried)
	}
}
