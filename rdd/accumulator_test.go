package rdd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/volleytest"
)

// TestAccumulators are exact, and merged in one order, whatever executors are lost and however often a partition is
// computed.
func TestAccumulators(t *testing.T) {
	var want []int
	sum := 0.0
	for i := range 300 {
		if i%7 == 0 {
			want = append(want, i)
		}
		sum += 1 / float64(i+1)
	}
	type plan struct {
		count rdd.Action[int64]
		odd   rdd.Accumulator[int, []int]
		total rdd.Accumulator[int, float64]
	}
	var first float64
	volleytest.Everywhere(t, func(t *testing.T, c volleytest.Cluster) {
		volleytest.Run(t, c, 300, func(g *rdd.Graph, n int) plan {
			sevens := rdd.NewAccumulator(func() []int { return nil },
				func(a []int, row int) []int {
					if row%7 == 0 {
						a = append(a, row)
					}
					return a
				}, func(a, b []int) []int { return append(a, b...) })
			total := rdd.NewAccumulator(func() float64 { return 0 },
				func(a float64, row int) float64 { return a + 1/float64(row+1) },
				func(a, b float64) float64 { return a + b })
			rows := rdd.Parallelize(g, 9, sequence(n)...)
			passed := rdd.Accumulate(rdd.Accumulate(rows, sevens), total)
			keyed := rdd.Map(passed, func(i int) rdd.Pair[int, int] { return rdd.Pair[int, int]{Key: i % 5, Value: i} })
			return plan{rdd.Count(rdd.GroupByKey(keyed)), sevens, total}
		}, func(ctx context.Context, s *rdd.Session, _ int, p plan) error {
			for range 2 { // what was counted is not counted again
				if _, err := p.count.Run(ctx, s); err != nil {
					return err
				}
			}
			odd, err := p.odd.Value(s)
			if err != nil || !slices.Equal(odd, want) {
				t.Errorf("accumulated were %v, %v", odd, err)
			}
			total, err := p.total.Value(s)
			if first == 0 {
				first = total
			}
			if err != nil || total != first || total < sum-1e-9 || total > sum+1e-9 {
				t.Errorf("the sum is %v, of the first cluster %v, of all rows in turn %v", total, first, sum)
			}
			return nil
		})
	})
}

func sequence(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// TestNamesAreShown, in plans and messages.
func TestNamesAreShown(t *testing.T) {
	g := rdd.NewGraph()
	rdd.Count(rdd.Named(rdd.Map(rdd.Parallelize(g, 1, 1), func(i int) int { return i }), "clean orders"))
	if !strings.Contains(g.Explain(), `map "clean orders"`) {
		t.Error(g.Explain())
	}
	type plan = rdd.Action[int64]
	_, err := volleytest.Try(t, volleytest.Cluster{}, 0, func(g *rdd.Graph, _ int) plan {
		bad := rdd.MapErr(rdd.Parallelize(g, 2, 1, 2, 3), func(i int) (int, error) {
			return i, errors.New("no order has this number")
		})
		return rdd.Count(rdd.Named(bad, "clean orders"))
	}, func(ctx context.Context, s *rdd.Session, _ int, a plan) error {
		n, err := a.Run(ctx, s)
		if err == nil {
			return fmt.Errorf("%d rows", n)
		}
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "no order has this number") {
		t.Error(err)
	}
}
