package rdd_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type restPlan struct {
	folded, dealt, named rdd.Action[[]rdd.Pair[int64, int64]]
	sets                 rdd.Action[[]rdd.Pair[int64, []int64]]
	flat                 rdd.Action[[]rdd.Pair[int64, string]]
	sampled, again       rdd.Action[[]int64]
	looked               rdd.Action[[]int64]
	touched, durable     rdd.Action[int64]
	points               rdd.Action[[]rdd.Point]
	parts                rdd.Action[[][]rdd.Pair[int64, int64]]
}

func buildRest(g *rdd.Graph, dir string) restPlan {
	numbers := rdd.Range(g, 0, 3000, 7)
	pairs := rdd.Map(numbers, func(i int64) rdd.Pair[int64, int64] {
		return rdd.Pair[int64, int64]{Key: i % 10, Value: i}
	})
	add := func(a, b int64) int64 { return a + b }
	byThree := rdd.PartitionerFunc("by three", 3, func(k int64) int { return int(k % 3) })
	lists := rdd.AggregateByKey(pairs, func() []int64 { return nil },
		func(all []int64, v int64) []int64 { return append(all, v) },
		func(a, b []int64) []int64 { return append(a, b...) })
	return restPlan{
		folded: rdd.Collect(rdd.FoldByKey(pairs, 0, add)), sets: rdd.Collect(lists),
		dealt: rdd.Collect(rdd.PartitionBy(pairs, rdd.HashPartitioner[int64](5))),
		named: rdd.Collect(rdd.PartitionBy(pairs, byThree)),
		parts: rdd.Collect(rdd.Glom(rdd.PartitionBy(pairs, byThree))),
		flat: rdd.Collect(rdd.FlatMapValues(rdd.Filter(pairs,
			func(p rdd.Pair[int64, int64]) bool { return p.Value < 3 }), func(v int64) []string {
			return slices.Repeat([]string{fmt.Sprint(v)}, int(v))
		})),
		sampled: rdd.Collect(rdd.Sample(numbers, 0.3, 5)), again: rdd.Collect(rdd.Sample(numbers, 0.3, 5)),
		looked: rdd.Lookup(pairs, 7),
		touched: rdd.ForEach(numbers, func(i int64) error {
			if i%1000 > 0 {
				return nil
			}
			return os.WriteFile(filepath.Join(dir, fmt.Sprint("row", i)), nil, 0o600)
		}),
		durable: rdd.SaveText(numbers, filepath.Join(dir, "saved"), rdd.Durable()),
		points:  rdd.Collect(rdd.LIBSVM(g, filepath.Join(dir, "points"))),
	}
}

// TestTheRestOfTheOperations against what they must come to.
func TestTheRestOfTheOperations(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "points"), []byte("1 1:2 3:4\n-1 2:0.5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	byKey := map[int64][]int64{}
	for i := range int64(3000) {
		byKey[i%10] = append(byKey[i%10], i)
	}
	runPlan(t, testConfig(t), func(g *rdd.Graph) restPlan { return buildRest(g, dir) },
		func(ctx context.Context, s *rdd.Session, p restPlan) {
			for _, r := range must(ctx, t, s, "fold by key", p.folded) {
				if want := r.Key*300 + 10*299*300/2; r.Value != want {
					t.Errorf("fold by key: %v, want %d", r, want)
				}
			}
			lists := must(ctx, t, s, "aggregate by key", p.sets)
			for _, r := range lists {
				if !slices.Equal(r.Value, byKey[r.Key]) {
					t.Errorf("aggregate by key: %d values of %d, or in another order", len(r.Value), r.Key)
				}
			}
			if len(lists) != 10 {
				t.Errorf("aggregate by key: %d keys", len(lists))
			}
			for what, a := range map[string]rdd.Action[[]rdd.Pair[int64, int64]]{"hash": p.dealt, "named": p.named} {
				rows := must(ctx, t, s, what, a)
				sum := int64(0)
				for _, r := range rows {
					sum += r.Value
				}
				if len(rows) != 3000 || sum != 2999*1500 {
					t.Errorf("%s: %d rows that sum to %d", what, len(rows), sum)
				}
			}
			for part, rows := range must(ctx, t, s, "partitions", p.parts) {
				for _, r := range rows {
					if r.Key%3 != int64(part) {
						t.Fatalf("%v is in partition %d", r, part)
					}
				}
			}
			if got := fmt.Sprint(must(ctx, t, s, "flat map values", p.flat)); got != "[{1 1} {2 2} {2 2}]" {
				t.Errorf("flat map values: %s", got)
			}
			checkRest(ctx, t, s, p, dir, byKey)
		})
}

func checkRest(ctx context.Context, t *testing.T, s *rdd.Session, p restPlan, dir string, byKey map[int64][]int64) {
	sample := must(ctx, t, s, "sample", p.sampled)
	if n := float64(len(sample)); math.Abs(n-900) > 4*math.Sqrt(3000*0.3*0.7) || !slices.IsSorted(sample) ||
		!slices.Equal(sample, must(ctx, t, s, "sample again", p.again)) {
		t.Errorf("sample: %.0f rows, want about 900, in order and the same again", n)
	}
	if rows := must(ctx, t, s, "lookup", p.looked); !slices.Equal(rows, byKey[7]) {
		t.Errorf("lookup: %d rows", len(rows))
	}
	if n := must(ctx, t, s, "for each", p.touched); n != 3000 {
		t.Errorf("for each: %d rows", n)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "row*")); len(files) != 3 {
		t.Errorf("for each: %v", files)
	}
	if n := must(ctx, t, s, "save", p.durable); n != 3000 || len(savedLines(t, filepath.Join(dir, "saved"))) != 3000 {
		t.Errorf("save: %d rows", n)
	}
	points := fmt.Sprint(must(ctx, t, s, "points", p.points))
	if !strings.Contains(points, "{1 [1 3] [2 4] 0 }") || !strings.Contains(points, "{-1 [2] [0.5] 0 }") {
		t.Errorf("points: %s", points)
	}
}

// TestAPanicWhileAPackIsMadeIsAnError that says so, and the pack can be made later.
func TestAPanicWhileAPackIsMadeIsAnError(t *testing.T) {
	type plan struct {
		rows   rdd.Packed[int64]
		matrix rdd.Packed[rdd.Point]
	}
	build := func(g *rdd.Graph, bad int64) (p plan) {
		numbers := rdd.Map(rdd.Range(g, 0, 1000, 4), func(i int64) int64 {
			if i == bad {
				panic("the number is bad")
			}
			return i
		})
		p.rows = rdd.Pack(numbers)
		p.matrix, _ = rdd.PackEntries(rdd.Map(numbers,
			func(i int64) rdd.Entry { return rdd.Entry{Row: i % 10, Col: i, Value: 1} }))
		return p
	}
	cfg := volley.Config{Executors: 2, DataDir: t.TempDir()}
	for _, bad := range []int64{700, -1} {
		_, err := volley.Run(context.Background(), cfg, "panic", bad, build,
			func(ctx context.Context, s *rdd.Session, _ int64, p plan) (string, error) {
				_, rows := p.rows.Meta(ctx, s)
				_, matrix := p.matrix.Meta(ctx, s)
				for _, err := range []error{rows, matrix} {
					if (err != nil) != (bad == 700) || err != nil &&
						!strings.Contains(err.Error(), "the number is bad") {
						t.Errorf("bad %d: %v", bad, err)
					}
				}
				return "", nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
}
