package rdd_test

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// trip is a row of a table with a column of every kind.
type trip struct {
	ID     int64     `col:"id"`
	City   string    `col:"city"`
	Fare   float64   `col:"fare"`
	Riders int32     `col:"riders"`
	Paid   bool      `col:"paid"`
	At     time.Time `col:"at"`
	Tip    *float64  `col:"tip"`
	Note   sql.Null[string]
	Left   int `col:"-"`
}

// tour has columns that text cannot have.
type tour struct {
	Name  string
	Stops []string
	From  place
	Legs  []place
}

type place struct {
	X, Y float64
}

func someTrips(n int, seed uint64) []trip {
	r := rand.New(rand.NewPCG(seed, 0))
	out := make([]trip, n)
	for i := range out {
		out[i] = trip{ID: int64(i), City: fmt.Sprintf("city, \"%d\"\n", r.IntN(5)), Fare: r.NormFloat64(),
			Riders: int32(r.IntN(9)), Paid: r.IntN(2) == 0,
			At: time.UnixMicro(r.Int64N(1 << 50)).UTC()}
		if r.IntN(3) > 0 {
			out[i].Tip = new(r.Float64())
		}
		if r.IntN(2) > 0 {
			out[i].Note = sql.Null[string]{V: fmt.Sprint("n", i), Valid: true}
		}
	}
	return out
}

func someTours(n int) []tour {
	out := make([]tour, n)
	for i := range out {
		out[i] = tour{Name: fmt.Sprint(i), Stops: slices.Repeat([]string{fmt.Sprint("s", i)}, i%4),
			From: place{float64(i), 2}, Legs: slices.Repeat([]place{{1, float64(i)}}, i%3)}
	}
	return out
}

// runPlan builds and runs a plan on an embedded cluster.
func runPlan[P any](t *testing.T, cfg volley.Config, build func(*rdd.Graph) P,
	run func(ctx context.Context, s *rdd.Session, p P)) {
	t.Helper()
	_, err := volley.Run(context.Background(), cfg, "plan", struct{}{},
		func(g *rdd.Graph, _ struct{}) P { return build(g) },
		func(ctx context.Context, s *rdd.Session, _ struct{}, p P) (string, error) {
			run(ctx, s, p)
			return "end", nil
		})
	if err != nil {
		t.Fatal(err)
	}
}

// must is what an action comes to.
func must[R any](ctx context.Context, t *testing.T, s *rdd.Session, what string, a rdd.Action[R]) R {
	t.Helper()
	r, err := a.Run(ctx, s)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return r
}

func text[T any](rows []T) []string {
	var out []string
	for _, r := range rows {
		switch r := any(r).(type) {
		case trip:
			tip := "null"
			if r.Tip != nil {
				tip = fmt.Sprint(*r.Tip)
			}
			out = append(out, fmt.Sprint(r.ID, r.City, r.Fare, r.Riders, r.Paid, r.At, tip, r.Note))
		default:
			out = append(out, fmt.Sprint(r))
		}
	}
	return out
}

// TestTablesComeBackAsTheyWere through every format, and in one plan after the
// other.
func TestTablesComeBackAsTheyWere(t *testing.T) {
	trips, tours := someTrips(3000, 1), someTours(500)
	for name, save := range map[string]func(rdd.Dataset[trip], string, ...rdd.SaveOption) rdd.Action[int64]{
		"csv": rdd.SaveCSV[trip], "parquet": rdd.SaveParquet[trip], "arrow": rdd.SaveArrow[trip],
	} {
		t.Run(name, func(t *testing.T) {
			backAgain(t, trips, filepath.Join(t.TempDir(), "out"), save,
				map[string]func(g *rdd.Graph, uri string) rdd.Dataset[trip]{
					"csv": func(g *rdd.Graph, uri string) rdd.Dataset[trip] {
						return rdd.CSV[trip](g, rdd.CSVOptions{},
							uri)
					},
					"parquet": func(g *rdd.Graph, uri string) rdd.Dataset[trip] { return rdd.Parquet[trip](g, uri) },
					"arrow":   func(g *rdd.Graph, uri string) rdd.Dataset[trip] { return rdd.Arrow[trip](g, uri) },
				}[name])
		})
	}
	t.Run("nested parquet", func(t *testing.T) {
		backAgain(t, tours, filepath.Join(t.TempDir(), "out"), rdd.SaveParquet[tour],
			func(g *rdd.Graph, uri string) rdd.Dataset[tour] { return rdd.Parquet[tour](g, uri) })
	})
	t.Run("nested arrow", func(t *testing.T) {
		backAgain(t, tours, filepath.Join(t.TempDir(), "out"), rdd.SaveArrow[tour],
			func(g *rdd.Graph, uri string) rdd.Dataset[tour] { return rdd.Arrow[tour](g, uri) })
	})
	t.Run("json lines", func(t *testing.T) {
		backAgain(t, tours, filepath.Join(t.TempDir(), "out"), rdd.SaveJSONLines[tour],
			func(g *rdd.Graph, uri string) rdd.Dataset[tour] { return rdd.JSONLines[tour](g, uri) })
	})
}

func backAgain[T any](t *testing.T, rows []T, dir string,
	save func(rdd.Dataset[T], string, ...rdd.SaveOption) rdd.Action[int64],
	read func(*rdd.Graph, string) rdd.Dataset[T]) {
	runPlan(t, testConfig(t), func(g *rdd.Graph) rdd.Action[int64] { return save(rdd.Parallelize(g, 4, rows...), dir) },
		func(ctx context.Context, s *rdd.Session, a rdd.Action[int64]) {
			if n := must(ctx, t, s, "save", a); n != int64(len(rows)) {
				t.Errorf("%d rows were saved of %d", n, len(rows))
			}
		})
	runPlan(t, testConfig(t), func(g *rdd.Graph) rdd.Action[[]T] {
		return rdd.Collect(read(g,
			filepath.Join(dir, "part-*")))
	},
		func(ctx context.Context, s *rdd.Session, a rdd.Action[[]T]) {
			got, want := text(must(ctx, t, s, "read", a)), text(rows)
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					t.Fatalf("row %d of %d is not what was saved: %s", i, len(got), want[i])
				}
			}
		})
}

// TestWhatCannotBeReadSaysWhere: file, line and column.
func TestWhatCannotBeReadSaysWhere(t *testing.T) {
	type row struct {
		A int32 `col:"a"`
		B *float64
	}
	dir := t.TempDir()
	file := func(name, content string) string { // written once: build runs on every node
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Error(err)
		}
		return path
	}
	for _, c := range []struct {
		read func(g *rdd.Graph) rdd.Action[[]row]
		want []string
	}{
		{func(g *rdd.Graph) rdd.Action[[]row] {
			return rdd.Collect(rdd.CSV[row](g, rdd.CSVOptions{}, file("a.csv", "a,b\n1,2\n99999999999,3\n")))
		}, []string{"a.csv line 3", `column "a"`, "out of range"}},
		{func(g *rdd.Graph) rdd.Action[[]row] {
			return rdd.Collect(rdd.CSV[row](g, rdd.CSVOptions{}, file("b.csv", "b,a\n1,\n")))
		}, []string{"b.csv line 2", `column "a"`, "empty"}},
		{func(g *rdd.Graph) rdd.Action[[]row] {
			return rdd.Collect(rdd.CSV[row](g, rdd.CSVOptions{}, file("c.csv", "x,a\n1,2\n")))
		}, []string{"c.csv", `no column "B"`, "x a"}},
		{func(g *rdd.Graph) rdd.Action[[]row] {
			return rdd.Collect(rdd.JSONLines[row](g, file("d.jsonl", "{\"A\":1}\n\n{\"A\":\"x\"}\n")))
		}, []string{"d.jsonl line 3", "field A"}},
		{func(g *rdd.Graph) rdd.Action[[]row] {
			return rdd.Collect(rdd.Parquet[row](g, file("e.parquet", "PAR1 and no more PAR1")))
		}, []string{"e.parquet"}},
	} {
		_, err := volley.Run(context.Background(), testConfig(t), "bad", struct{}{},
			func(g *rdd.Graph, _ struct{}) rdd.Action[[]row] { return c.read(g) },
			func(ctx context.Context, s *rdd.Session, _ struct{}, a rdd.Action[[]row]) (string, error) {
				_, err := a.Run(ctx, s)
				return "end", err
			})
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("the error does not say %q: %v", w, err)
			}
		}
	}
}

type narrowPlan struct {
	Zipped   rdd.Action[[]rdd.Joined[int64, string]]
	Uneven   rdd.Action[int64]
	Indexed  rdd.Action[[]rdd.Pair[int64, int64]]
	Piped    rdd.Action[[]string]
	Broken   rdd.Action[int64]
	Sampled  rdd.Action[[]int64]
	Tree     rdd.Action[int64]
	Batched  rdd.Action[[]place]
	Stats    rdd.Action[rdd.Summary]
	Bins     rdd.Action[rdd.Bins]
	Even     rdd.Action[rdd.Bins]
	Quants   rdd.Action[[]float64]
	Approx   rdd.Action[int64]
	ByRange  rdd.Action[[][]rdd.Pair[int64, int64]]
	Sorted   rdd.Action[[][]rdd.Pair[int64, int64]]
	Scaled   rdd.Action[[]int64]
	By       rdd.Param[int64]
	Reduced  rdd.Action[[]rdd.Pair[int64, int64]]
	Streamed rdd.Streamed[int64]
	Tallied  rdd.Action[int64]
	Count    rdd.Counter
	Union    rdd.Action[int64]
}

func buildNarrow(g *rdd.Graph) narrowPlan {
	numbers := rdd.Range(g, 0, 10_000, 7)
	names := rdd.Map(rdd.Range(g, 0, 10_000, 7), func(i int64) string { return fmt.Sprint("n", i) })
	pairs := rdd.Map(numbers, func(i int64) rdd.Pair[int64, int64] {
		return rdd.Pair[int64, int64]{Key: i * 7919 % 1000, Value: i}
	})
	by := rdd.NewParam[int64](g, "factor")
	scaled := rdd.MapWith(numbers, by, func(i, f int64) int64 { return i * f })
	count := rdd.NewCounter()
	tallied := rdd.Tally(numbers, count, func(i int64) int64 { return i % 2 })
	parts := rdd.RangePartitioner[int64](100, 500)
	thirds := rdd.Filter(numbers, func(i int64) bool { return i%3 == 0 })
	return narrowPlan{
		Zipped: rdd.Collect(rdd.Zip(numbers, names)), Uneven: rdd.Count(rdd.Zip(numbers, thirds)),
		Indexed: rdd.Collect(rdd.ZipWithIndex(thirds)), Piped: rdd.Collect(rdd.Pipe(names, "tr", "n", "m")),
		Broken: rdd.Count(rdd.Pipe(names, "cat", "/no/such/file")), Sampled: rdd.TakeSample(numbers, 50, 4),
		Tree: rdd.TreeAggregate(numbers, func() int64 { return 0 }, func(a, x int64) int64 { return a + x },
			func(a, b int64) int64 { return a + b }),
		Batched: rdd.Collect(rdd.MapBatches[place,
			place](rdd.Map(numbers, func(i int64) place { return place{float64(i), 1} }),
			func(r arrow.Record) (arrow.Record, error) {
				return r, nil
			})),
		Stats: rdd.Stats(numbers), Bins: rdd.Histogram(numbers, 0, 10, 5000, 9999), Even: rdd.HistogramOf(numbers, 4),
		Quants:  rdd.Quantiles(numbers, 0, 0.25, 0.5, 1),
		Approx:  rdd.CountApproxDistinct(rdd.Map(numbers, func(i int64) string { return fmt.Sprint(i / 2) })),
		ByRange: rdd.Collect(rdd.Glom(rdd.PartitionBy(pairs, parts))),
		Sorted:  rdd.Collect(rdd.Glom(rdd.RepartitionAndSort(pairs, parts))),
		Scaled:  rdd.Collect(scaled), By: by, Streamed: rdd.ToSeq(thirds),
		Tallied: rdd.Count(rdd.ReduceByKey(rdd.KeyBy(tallied, func(i int64) int64 { return i % 5 }),
			func(a, _ int64) int64 { return a })), Count: count,
		Reduced: rdd.Collect(rdd.ReduceByKey(rdd.KeyBy(scaled, func(i int64) int64 { return i % 2 }),
			func(a, b int64) int64 { return a + b })),
		Union: rdd.Count(rdd.Union(rdd.Keys(rdd.ReduceByKey(pairs, func(a, b int64) int64 { return a + b })), numbers)),
	}
}

// TestEveryOtherOperation against what it must come to.
func TestEveryOtherOperation(t *testing.T) {
	for _, memory := range []int64{0, 1} {
		cfg := testConfig(t)
		cfg.Executors, cfg.TaskMemory = 3, memory
		runPlan(t, cfg, buildNarrow, func(ctx context.Context, s *rdd.Session,
			p narrowPlan) {
			checkNarrow(ctx, t, s, p)
		})
	}
}

func checkNarrow(ctx context.Context, t *testing.T, s *rdd.Session, p narrowPlan) {
	for i, z := range must(ctx, t, s, "zip", p.Zipped) {
		if z.Left != int64(i) || z.Right != fmt.Sprint("n", i) {
			t.Fatalf("zip: row %d is %v", i, z)
		}
	}
	for i, z := range must(ctx, t, s, "zip with index", p.Indexed) {
		if z.Key != int64(i) || z.Value != 3*z.Key {
			t.Fatalf("zip with index: row %d is %v", i, z)
		}
	}
	if lines := must(ctx, t, s, "pipe", p.Piped); len(lines) != 10_000 || lines[9999] != "m9999" {
		t.Errorf("pipe: %d lines", len(lines))
	}
	drawn := must(ctx, t, s, "take sample", p.Sampled)
	if len(slices.Compact(slices.Sorted(slices.Values(drawn)))) != 50 || slices.Max(drawn) < 5000 {
		t.Errorf("take sample: %v", drawn)
	}
	if sum := must(ctx, t, s, "tree aggregate", p.Tree); sum != 9999*5000 {
		t.Errorf("tree aggregate: %d", sum)
	}
	if rows := must(ctx, t, s, "map batches", p.Batched); len(rows) != 10_000 || rows[77] != (place{77, 1}) {
		t.Errorf("map batches: %d rows", len(rows))
	}
	if st := must(ctx, t, s, "stats", p.Stats); st.Count != 10_000 || st.Mean != 4999.5 || st.Min != 0 ||
		st.Max != 9999 || math.Abs(st.Variance-(1e8-1)/12) > 1e-3 {
		t.Errorf("stats: %+v", st)
	}
	if b := must(ctx, t, s, "histogram", p.Bins); !slices.Equal(b.Counts, []int64{10, 4990, 5000}) {
		t.Errorf("histogram: %v", b)
	}
	if b := must(ctx, t, s, "histogram of", p.Even); !slices.Equal(b.Counts, []int64{2500, 2500, 2500, 2500}) {
		t.Errorf("histogram of: %v", b)
	}
	q := must(ctx, t, s, "quantiles", p.Quants)
	for i, want := range []float64{0, 2500, 5000, 9999} {
		if math.Abs(q[i]-want) > 10 {
			t.Errorf("quantiles: %v", q)
		}
	}
	if n := must(ctx, t, s, "count approx distinct", p.Approx); math.Abs(float64(n)-5000) > 50 {
		t.Errorf("count approx distinct: %d, want about 5000", n)
	}
	checkPartitions(ctx, t, s, p)
	checkParams(ctx, t, s, p)
	next := int64(0)
	for row, err := range p.Streamed.Rows(ctx, s) {
		if err != nil || row != next {
			t.Fatalf("stream: %d, want %d: %v", row, next, err)
		}
		next += 3
	}
	for range 2 {
		if n := must(ctx, t, s, "tally", p.Tallied); n != 5 || p.Count.Value(s) != 5000 {
			t.Errorf("tally: %d groups, counted %d, want 5000", n, p.Count.Value(s))
		}
	}
	if n := must(ctx, t, s, "union", p.Union); n != 11_000 {
		t.Errorf("union: %d rows", n)
	}
}

// TestActionsThatFailSayWhy.
func TestActionsThatFailSayWhy(t *testing.T) {
	for want, action := range map[string]func(ctx context.Context, s *rdd.Session, p narrowPlan) error{
		"more rows": func(ctx context.Context, s *rdd.Session, p narrowPlan) error {
			_, err := p.Uneven.Run(ctx, s)
			return err
		},
		"No such file": func(ctx context.Context, s *rdd.Session, p narrowPlan) error {
			_, err := p.Broken.Run(ctx, s)
			return err
		},
		"factor": func(ctx context.Context, s *rdd.Session, p narrowPlan) error {
			_, err := p.Scaled.Run(ctx, s)
			return err
		},
		"it has not been set": func(ctx context.Context, s *rdd.Session, p narrowPlan) error {
			_, err := p.Reduced.Run(ctx, s)
			return err
		},
	} {
		_, err := volley.Run(context.Background(), testConfig(t), "fails", struct{}{},
			func(g *rdd.Graph, _ struct{}) narrowPlan { return buildNarrow(g) },
			func(ctx context.Context, s *rdd.Session, _ struct{}, p narrowPlan) (string, error) {
				return "end", action(ctx, s, p)
			})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

func checkPartitions(ctx context.Context, t *testing.T, s *rdd.Session, p narrowPlan) {
	for what, a := range map[string]rdd.Action[[][]rdd.Pair[int64, int64]]{"partition by": p.ByRange,
		"repartition and sort": p.Sorted} {
		parts := must(ctx, t, s, what, a)
		if len(parts) != 3 || len(parts[0])+len(parts[1])+len(parts[2]) != 10_000 {
			t.Fatalf("%s: %d partitions", what, len(parts))
		}
		for i, limits := range [][2]int64{{0, 100}, {100, 500}, {500, 1000}} {
			for _, r := range parts[i] {
				if r.Key < limits[0] || r.Key >= limits[1] || r.Value*7919%1000 != r.Key {
					t.Fatalf("%s: %v in partition %d", what, r, i)
				}
			}
		}
		if sorted := slices.IsSortedFunc(parts[2],
			func(a, b rdd.Pair[int64, int64]) int { return int(a.Key - b.Key) }); what != "partition by" && !sorted {
			t.Errorf("%s: not sorted", what)
		}
	}
}

func checkParams(ctx context.Context, t *testing.T, s *rdd.Session, p narrowPlan) {
	for f := int64(2); f < 4; f++ {
		if err := p.By.Set(s, f); err != nil {
			t.Fatal(err)
		}
		if rows := must(ctx, t, s, "map with", p.Scaled); rows[5] != 5*f {
			t.Errorf("map with: %d, want %d", rows[5], 5*f)
		}
		sums := map[int64]int64{}
		for _, r := range must(ctx, t, s, "reduce of map with", p.Reduced) {
			sums[r.Key] += r.Value
		}
		want := map[int64]int64{0: 9999 * 5000 * 2}
		if f == 3 {
			want = map[int64]int64{0: 3 * 4999 * 5000, 1: 3 * 5000 * 5000}
		}
		if !maps.Equal(sums, want) {
			t.Errorf("reduce of map with %d: %v, want %v", f, sums, want)
		}
	}
}

// TestLoopsGoRoundByRound, their rows replaced at each.
func TestLoopsGoRoundByRound(t *testing.T) {
	type plan struct {
		loop *rdd.Loop[rdd.Pair[int64, int64]]
		all  rdd.Action[[]rdd.Pair[int64, int64]]
	}
	build := func(g *rdd.Graph) plan {
		first := rdd.Map(rdd.Range(g, 0, 100, 5),
			func(i int64) rdd.Pair[int64, int64] { return rdd.Pair[int64, int64]{Key: i, Value: 1} })
		loop := rdd.NewLoop(first, func(now rdd.Dataset[rdd.Pair[int64, int64]]) rdd.Dataset[rdd.Pair[int64, int64]] {
			halved := rdd.Map(now, func(p rdd.Pair[int64, int64]) rdd.Pair[int64, int64] {
				return rdd.Pair[int64, int64]{Key: p.Key / 2, Value: p.Value}
			})
			return rdd.ReduceByKey(halved, func(a, b int64) int64 { return a + b })
		})
		return plan{loop, rdd.Collect(loop.Now())}
	}
	runPlan(t, testConfig(t), build, func(ctx context.Context, s *rdd.Session, p plan) {
		for round, keys := 0, 100; round < 9; round, keys = round+1, (keys+1)/2 {
			rows, sum := must(ctx, t, s, "collect", p.all), int64(0)
			for _, r := range rows {
				sum += r.Value
			}
			if len(rows) != keys || sum != 100 {
				t.Fatalf("after round %d there are %d rows that sum to %d, want %d and 100", round, len(rows), sum,
					keys)
			}
			if err := p.loop.Step(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		if p.loop.Rounds(s) != 9 {
			t.Errorf("%d rounds", p.loop.Rounds(s))
		}
	})
}

// TestWhatIsKeptIsComputedOnce, until it is given up.
func TestWhatIsKeptIsComputedOnce(t *testing.T) {
	type plan struct {
		kept    rdd.Dataset[int64]
		counts  []rdd.Action[int64]
		counter rdd.Counter
	}
	dir := filepath.Join(t.TempDir(), "cp")
	for name, keep := range map[string]func(rdd.Dataset[int64]) rdd.Dataset[int64]{
		"cache":      rdd.Cache[int64],
		"disk":       func(ds rdd.Dataset[int64]) rdd.Dataset[int64] { return rdd.Persist(ds, rdd.Disk, 2) },
		"checkpoint": func(ds rdd.Dataset[int64]) rdd.Dataset[int64] { return rdd.Checkpoint(ds, dir) },
	} {
		t.Run(name, func(t *testing.T) {
			ran := filepath.Join(t.TempDir(), "ran")
			build := func(g *rdd.Graph) plan {
				c := rdd.NewCounter()
				slow := rdd.MapSplits(rdd.Tally(rdd.Range(g, 0, 1000, 4), c, func(int64) int64 { return 1 }),
					func(part int, rows iter.Seq[int64]) iter.Seq[int64] {
						f, err := os.OpenFile(ran, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
						if err == nil {
							fmt.Fprintln(f, part)
							f.Close()
						}
						return rows
					})
				kept := keep(slow)
				return plan{kept, []rdd.Action[int64]{rdd.Count(kept),
					rdd.Reduce(kept, func(a, b int64) int64 { return a + b })}, c}
			}
			runPlan(t, testConfig(t), build, func(ctx context.Context, s *rdd.Session, p plan) {
				for range 2 {
					if n, sum := must(ctx, t, s, "count", p.counts[0]),
						must(ctx, t, s, "sum", p.counts[1]); n != 1000 || sum != 999*500 {
						t.Errorf("%d rows that sum to %d", n, sum)
					}
				}
				times := func() int { raw, _ := os.ReadFile(ran); return strings.Count(string(raw), "\n") }
				if n := times(); n != 4 || p.counter.Value(s) != 1000 {
					t.Errorf("%d partitions were computed, want 4; %d rows counted", n, p.counter.Value(s))
				}
				if name == "checkpoint" {
					return
				}
				if err := rdd.Unpersist(s, p.kept); err != nil {
					t.Error(err)
				}
				if must(ctx, t, s, "count", p.counts[0]); times() != 8 {
					t.Errorf("%d partitions were computed, want 8", times())
				}
			})
		})
	}
}
