package rdd_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/rdd"
)

type frequent struct {
	Least  int64
	Beside string // a file that only the later part reads
}

type laterPlan struct {
	Words rdd.Action[int64]
	Often rdd.LaterPart[frequent, rdd.Action[[]rdd.Pair[string, int64]]]
	Mean  rdd.LaterPart[[]string, rdd.Step[float64, sum]]
}

// buildLater counts words, and declares what is to be built of their number.
func buildLater(g *rdd.Graph, path string) laterPlan {
	words := rdd.Cache(rdd.FlatMap(rdd.TextFile(g, path), strings.Fields))
	return laterPlan{
		Words: rdd.Count(words),
		Often: rdd.Later(g, func(g *rdd.Graph, f frequent) rdd.Action[[]rdd.Pair[string, int64]] {
			all := rdd.Union(words, rdd.TextFile(g, f.Beside))
			counts := rdd.ReduceByKey(rdd.Map(all, func(w string) rdd.Pair[string, int64] {
				return rdd.Pair[string, int64]{Key: w, Value: 1}
			}), func(a, b int64) int64 { return a + b })
			return rdd.Collect(rdd.SortByKey(rdd.Filter(counts, func(p rdd.Pair[string, int64]) bool {
				return p.Value >= f.Least
			})))
		}),
		Mean: rdd.Later(g, func(g *rdd.Graph, keep []string) rdd.Step[float64, sum] {
			lengths := rdd.Map(rdd.Parallelize(g, 3, keep...), func(w string) float64 { return float64(len(w)) })
			return rdd.Aggregate(rdd.Pack(lengths, rdd.Splits(2)), rdd.Aggregator[float64, float64, sum]{
				Zero:  func(float64) sum { return sum{} },
				Add:   func(s sum, _, x float64) sum { return sum{s.N + 1, s.Total + x} },
				Merge: func(a, b sum) sum { return sum{a.N + b.N, a.Total + b.Total} },
			})
		}),
	}
}

// laterFiles writes words, and a file that the later part reads.
func laterFiles(t *testing.T) (words, beside string) {
	dir := t.TempDir()
	words, beside = filepath.Join(dir, "words.txt"), filepath.Join(dir, "beside.txt")
	for path, text := range map[string]string{words: strings.Repeat("one two three\ntwo three\nthree\n", 500),
		beside: strings.Repeat("one\n", 400)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return words, beside
}

// TestAPlanGrowsByWhatAnActionHasFound: with what was built before, other files and steps; on every executor, those
// that are lost meanwhile among them; more than once.
func TestAPlanGrowsByWhatAnActionHasFound(t *testing.T) {
	words, beside := laterFiles(t)
	run := func(ctx context.Context, s *rdd.Session, _ string, p laterPlan) (string, error) {
		n, err := p.Words.Run(ctx, s)
		if err != nil || n != 3000 {
			return "", fmt.Errorf("%d words: %v", n, err)
		}
		for least, want := range map[int64]string{n / 3: "two three", n/3 + 1: "three"} {
			often, err := p.Often.Build(ctx, s, frequent{least, beside})
			if err != nil {
				return "", err
			}
			rows, err := often.Run(ctx, s)
			var keys []string
			for _, r := range rows {
				keys = append(keys, r.Key)
			}
			if got := strings.Join(keys, " "); err != nil || len(got) != len(want) {
				return "", fmt.Errorf("at least %d: %q, not %q: %v", least, got, want, err)
			}
			step, err := p.Mean.Build(ctx, s, keys)
			if err != nil {
				return "", err
			}
			total, err := step.Run(ctx, s, 0)
			if err != nil || total.N != int64(len(keys)) || total.Total != float64(len(strings.Join(keys, ""))) {
				return "", fmt.Errorf("the lengths of %q: %+v: %v", keys, total, err)
			}
		}
		return "", nil
	}
	law, err := pace.Parse("one-straggler", 1e6)
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []volley.Config{{Executors: 1}, {Executors: 3}, {Executors: 3, Virtual: true, Pace: law},
		{Executors: 4, Losses: []volley.Loss{{Executor: 1, After: 6}, {Executor: 2, After: 12}}}} {
		cfg.DataDir = t.TempDir()
		if _, err := volley.Run(context.Background(), cfg, "later", words, buildLater, run); err != nil {
			t.Errorf("%d executors, %d lost: %v", cfg.Executors, len(cfg.Losses), err)
		}
	}
}

// TestAMistakeInALaterPart is an error of Build, and leaves the plan as it was; a part that differs between nodes ends
// the job.
func TestAMistakeInALaterPart(t *testing.T) {
	words, beside := laterFiles(t)
	var calls atomic.Int64
	type parts struct {
		Words                rdd.Action[int64]
		Wrong, Panics, Other rdd.LaterPart[int, rdd.Action[int64]]
		Missing              rdd.LaterPart[string, rdd.Action[int64]]
	}
	build := func(g *rdd.Graph, path string) parts {
		lines := rdd.TextFile(g, path)
		return parts{Words: rdd.Count(lines),
			Wrong: rdd.Later(g, func(g *rdd.Graph, n int) rdd.Action[int64] {
				return rdd.Count(rdd.Repartition(lines, n))
			}),
			Panics: rdd.Later(g, func(g *rdd.Graph, n int) rdd.Action[int64] { panic("no such part") }),
			Other: rdd.Later(g, func(g *rdd.Graph, n int) rdd.Action[int64] {
				return rdd.Count(rdd.Repartition(lines, n+int(calls.Add(1))))
			}),
			Missing: rdd.Later(g, func(g *rdd.Graph, path string) rdd.Action[int64] {
				return rdd.Count(rdd.TextFile(g, path))
			})}
	}
	_, err := volley.Run(context.Background(), volley.Config{Executors: 2, DataDir: t.TempDir()}, "later", words, build,
		func(ctx context.Context, s *rdd.Session, _ string, p parts) (string, error) {
			if _, err := p.Wrong.Build(ctx, s, -3); err == nil || !strings.Contains(err.Error(), "later_test.go:") {
				t.Errorf("-3 partitions: %v", err)
			}
			if _, err := p.Panics.Build(ctx, s, 1); fault.KindOf(err) != fault.UserCode ||
				!strings.Contains(err.Error(), "no such part") {
				t.Errorf("a panic: %v", err)
			}
			if _, err := p.Missing.Build(ctx, s, beside+".not"); fault.KindOf(err) != fault.BadInput {
				t.Errorf("a file that is not there: %v", err)
			}
			again, err := p.Wrong.Build(ctx, s, 3)
			if err != nil {
				return "", err
			}
			if n, err := again.Run(ctx, s); n != 1500 || err != nil {
				t.Errorf("after mistakes: %d lines, %v", n, err)
			}
			_, err = p.Other.Build(ctx, s, 1)
			return "", err
		})
	if fault.KindOf(err) != fault.PlanMismatch {
		t.Errorf("a part that is another on each node: %v", err)
	}
}
