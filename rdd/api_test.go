package rdd_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"go.uber.org/goleak"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
)

type textArgs struct{ Path string }

type textPlan struct {
	Count  rdd.Action[int64]
	Lines  rdd.Action[[]string]
	Three  rdd.Action[[]int64]
	First  rdd.Action[string]
	Sum    rdd.Action[int64]
	Double rdd.Action[[]int64]
	Mean   rdd.Step[float64, sum]
}

// sum is an accumulator without a codec of its own.
type sum struct {
	N     int64
	Total float64
}

func buildText(g *rdd.Graph, a textArgs) textPlan {
	lines := rdd.TextFile(g, a.Path)
	words := rdd.FlatMap(lines, strings.Fields)
	numbers := rdd.MapErr(words, func(w string) (int64, error) { return strconv.ParseInt(w, 10, 64) })
	odd := rdd.Filter(numbers, func(n int64) bool { return n%2 == 1 })
	return textPlan{
		Count: rdd.Count(odd), Lines: rdd.Collect(lines), Three: rdd.Take(odd, 3), First: rdd.First(lines),
		Sum:    rdd.Reduce(numbers, func(a, b int64) int64 { return a + b }),
		Double: rdd.Take(rdd.MapBatches[int64, int64](odd, double), 2),
		Mean: rdd.Aggregate(rdd.Pack(rdd.Map(numbers, func(n int64) float64 { return float64(n) }), rdd.Splits(4)),
			rdd.Aggregator[float64, float64, sum]{
				Zero:  func(float64) sum { return sum{} },
				Add:   func(s sum, shift, x float64) sum { return sum{s.N + 1, s.Total + x + shift} },
				Merge: func(a, b sum) sum { return sum{a.N + b.N, a.Total + b.Total} },
			}),
	}
}

func double(in arrow.Record) (arrow.Record, error) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	col := in.Column(0).(*array.Int64)
	for i := range col.Len() {
		b.Append(2 * col.Value(i))
	}
	out := b.NewArray()
	defer out.Release()
	return array.NewRecord(in.Schema(), []arrow.Array{out}, int64(col.Len())), nil
}

func numbersFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "numbers.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func testConfig(t *testing.T) volley.Config {
	return volley.Config{Executors: 3, DataDir: t.TempDir(), OutDir: t.TempDir()}
}

func TestTheDatasetAPI(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	path := numbersFile(t, "1 2 3\n4 5\n\n6 7\n")
	_, err := volley.Run(context.Background(), testConfig(t), "text", textArgs{path}, buildText,
		func(ctx context.Context, s *rdd.Session, _ textArgs, p textPlan) (string, error) {
			expect(t, ctx, s, p.Count, 4)
			expect(t, ctx, s, p.First, "1 2 3")
			expect(t, ctx, s, p.Sum, 28)
			if lines, err := p.Lines.Run(ctx, s); err != nil || strings.Join(lines, "|") != "1 2 3|4 5||6 7" {
				t.Errorf("lines %q, %v", lines, err)
			}
			if three, err := p.Three.Run(ctx, s); err != nil || len(three) != 3 || three[2] != 5 {
				t.Errorf("three %v, %v", three, err)
			}
			if d, err := p.Double.Run(ctx, s); err != nil || len(d) != 2 || d[1] != 6 {
				t.Errorf("double %v, %v", d, err)
			}
			if err := rdd.Save(ctx, s, "three", []int{1, 2, 3}); err != nil {
				t.Error(err)
			}
			got, err := p.Mean.Run(ctx, s, 10)
			if err != nil || got.N != 7 || got.Total != 98 {
				t.Errorf("mean %v, %v", got, err)
			}
			return "done", nil
		})
	if err != nil {
		t.Fatal(err)
	}
}

func expect[R comparable](t *testing.T, ctx context.Context, s *rdd.Session, a rdd.Action[R], want R) {
	t.Helper()
	if got, err := a.Run(ctx, s); err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestUserErrorsAreErrors(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	path := numbersFile(t, "1\nx\n")
	_, err := volley.Run(context.Background(), testConfig(t), "text", textArgs{path}, buildText,
		func(ctx context.Context, s *rdd.Session, _ textArgs, p textPlan) (string, error) {
			_, err := p.Sum.Run(ctx, s)
			return "", err
		})
	if !fault.Is(err, fault.UserCode) || !strings.Contains(err.Error(), "row 1 of partition 0") {
		t.Errorf("%v", err)
	}
	_, err = volley.Run(context.Background(), testConfig(t), "panic", textArgs{path},
		func(g *rdd.Graph, a textArgs) rdd.Action[int64] {
			return rdd.Count(rdd.Map(rdd.TextFile(g, a.Path), func(string) int { panic("ouch") }))
		},
		func(ctx context.Context, s *rdd.Session, _ textArgs, p rdd.Action[int64]) (string, error) {
			_, err := p.Run(ctx, s)
			return "", err
		})
	if !fault.Is(err, fault.UserCode) || !strings.Contains(err.Error(), "ouch") {
		t.Errorf("%v", err)
	}
}

func TestAPlanThatDiffersBetweenNodesIsRefused(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	path, builds := numbersFile(t, "1\n"), 0
	_, err := volley.Run(context.Background(), testConfig(t), "fickle", textArgs{path},
		func(g *rdd.Graph, a textArgs) rdd.Action[int64] {
			builds++
			lines := rdd.TextFile(g, a.Path)
			if builds > 1 {
				lines = rdd.Filter(lines, func(string) bool { return true })
			}
			return rdd.Count(lines)
		},
		func(context.Context, *rdd.Session, textArgs, rdd.Action[int64]) (string, error) {
			return "", errors.New("it ran")
		})
	if !fault.Is(err, fault.PlanMismatch) {
		t.Errorf("%v", err)
	}
}

func TestMistakesInBuildNameTheUsersLine(t *testing.T) {
	_, err := volley.Run(context.Background(), testConfig(t), "bad", textArgs{"x"},
		func(g *rdd.Graph, a textArgs) rdd.Step[int, int] {
			return rdd.Aggregate(rdd.Pack(rdd.TextFile(g, a.Path)), rdd.Aggregator[int, string, int]{},
				rdd.Aggressive(2))
		}, func(context.Context, *rdd.Session, textArgs, rdd.Step[int, int]) (string, error) { return "", nil })
	if err == nil || !strings.Contains(err.Error(), "api_test.go:") || !strings.Contains(err.Error(), "Aggressive(2)") {
		t.Errorf("%v", err)
	}
}
