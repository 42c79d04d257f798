package volleytest_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/volleytest"
)

type count = rdd.Pair[string, int64]

func wordsOf(g *rdd.Graph, text string) rdd.Dataset[count] {
	words := rdd.FlatMap(rdd.Parallelize(g, 12, strings.Split(text, "\n")...), strings.Fields)
	ones := rdd.Map(words, func(w string) count { return count{Key: w, Value: 1} })
	return rdd.SortByKey(rdd.ReduceByKey(ones, func(a, b int64) int64 { return a + b }))
}

// TestShufflesAreTheSameEverywhere: whatever the cluster, and whichever of its executors are lost.
func TestShufflesAreTheSameEverywhere(t *testing.T) {
	text := strings.Repeat("to be or not to be\nthat is the question\n", 200)
	volleytest.Everywhere(t, func(t *testing.T, c volleytest.Cluster) {
		rows := volleytest.Rows(t, c, func(g *rdd.Graph) rdd.Dataset[count] { return wordsOf(g, text) })
		volleytest.GoldenRows(t, "testdata/words.txt", rows)
	})
}

type plan struct {
	sum rdd.Step[float64, float64]
}

// TestStepsAreTheSameEverywhere: sums of floats, in one order.
func TestStepsAreTheSameEverywhere(t *testing.T) {
	var numbers []float64
	for i := range 5000 {
		numbers = append(numbers, math.Sqrt(float64(i)))
	}
	build := func(g *rdd.Graph, _ int) plan {
		rows := rdd.Pack(rdd.Parallelize(g, 8, numbers...))
		return plan{rdd.Aggregate(rows, rdd.Aggregator[float64, float64, float64]{
			Zero:  func(float64) float64 { return 0 },
			Add:   func(a, w, row float64) float64 { return a + row*w },
			Merge: func(a, b float64) float64 { return a + b }})}
	}
	var first []float64
	volleytest.Everywhere(t, func(t *testing.T, c volleytest.Cluster) {
		var got []float64
		volleytest.Run(t, c, 0, build, func(ctx context.Context, s *rdd.Session, _ int, p plan) error {
			w := 1.0
			for range 10 {
				sum, err := p.sum.Run(ctx, s, w)
				if err != nil {
					return err
				}
				got, w = append(got, sum), sum/1e5
			}
			return nil
		})
		if first == nil {
			first = got
		}
		for i := range got {
			if got[i] != first[i] {
				t.Fatalf("step %d: %v, want %v", i, got[i], first[i])
			}
		}
	})
}

// TestExecutorsAreLost, or the seeds would prove nothing.
func TestExecutorsAreLost(t *testing.T) {
	text := strings.Repeat("a b c\n", 100)
	for seed := uint64(1); seed <= 4; seed++ {
		c := volleytest.Cluster{Executors: 4, Lose: seed}
		out := volleytest.Run(t, c, 0,
			func(g *rdd.Graph, _ int) rdd.Action[[]count] { return rdd.Collect(wordsOf(g, text)) },
			func(ctx context.Context, s *rdd.Session, _ int, a rdd.Action[[]count]) error {
				_, err := a.Run(ctx, s)
				return err
			})
		if out.Counters.ExecutorsLost == 0 {
			t.Errorf("%v: none was lost", c)
		}
	}
}

// fails is a test that notes whether it has failed.
type fails struct {
	testing.TB
	said []string
}

func (f *fails) Helper() {}

func (f *fails) Errorf(format string, args ...any) { f.said = append(f.said, format) }

// TestGoldenNoticesDifferences, and a program's error is returned.
func TestGoldenNoticesDifferences(t *testing.T) {
	path := filepath.Join(t.TempDir(), "golden")
	if err := os.WriteFile(path, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UPDATE", "")
	for text, same := range map[string]bool{"a\nb\n": true, "a\nc\n": false, "a\n": false, "a\nb\nc\n": false} {
		f := &fails{TB: t}
		if volleytest.Golden(f, path, []byte(text)); (len(f.said) == 0) != same {
			t.Errorf("%q: %q", text, f.said)
		}
	}
	_, err := volleytest.Try(t, volleytest.Cluster{}, 0, func(*rdd.Graph, int) int { return 0 },
		func(context.Context, *rdd.Session, int, int) error { return errors.New("no") })
	if cmp.Or(err, errors.New("")).Error() != "no" {
		t.Error(err)
	}
}
