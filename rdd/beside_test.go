package rdd_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type besidePlan struct {
	actions []rdd.Action[[]string]
	stream  rdd.Streamed[string]
	seen    rdd.Counter
}

// besidePlans are actions over shuffles that they share.
func besidePlans(g *rdd.Graph, n int64) besidePlan {
	type pair = rdd.Pair[string, int64]
	seen := rdd.NewCounter()
	numbers := rdd.Cache(rdd.Tally(rdd.Range(g, 0, n, 7), seen, func(int64) int64 { return 1 }))
	keyed := rdd.Map(numbers, func(x int64) pair { return pair{Key: fmt.Sprint(x % 97), Value: x} })
	sums := rdd.ReduceByKey(keyed, func(a, b int64) int64 { return a + b })
	sorted := rdd.SortByKey(keyed)
	text := func(p pair) string { return fmt.Sprint(p.Key, "=", p.Value) }
	joined := rdd.Map(rdd.Join(sums, sorted), func(p rdd.Pair[string, rdd.Joined[int64, int64]]) string {
		return fmt.Sprint(p.Key, p.Value.Left, p.Value.Right)
	})
	lines := rdd.Map(sums, text)
	return besidePlan{seen: seen, stream: rdd.ToSeq(lines), actions: []rdd.Action[[]string]{
		rdd.Collect(lines), rdd.Collect(rdd.Map(sorted, text)), rdd.Collect(joined),
		rdd.Take(rdd.Map(sorted, text), 30),
		rdd.Collect(rdd.Distinct(rdd.Keys(sorted))),
		rdd.Collect(rdd.Map(rdd.Repartition(rdd.SortBy(sums, func(p pair) int64 { return p.Value }), 3), text)),
		rdd.Then(rdd.Count(joined), func(n int64) []string { return []string{fmt.Sprint(n)} }),
		rdd.Collect(rdd.Map(rdd.ZipWithIndex(lines), func(p rdd.Pair[int64, string]) string { return fmt.Sprint(p) })),
	}}
}

// inTurn runs the actions one after the other.
func inTurn(ctx context.Context, s *rdd.Session, p besidePlan) (out [][]string, err error) {
	for _, a := range p.actions {
		rows, err := a.Run(ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, slices.Sorted(slices.Values(rows)))
	}
	return out, nil
}

// TestActionsSideBySide have the rows that they have in turn, whatever they share, whichever executors are lost
// meanwhile, and each counted row once.
func TestActionsSideBySide(t *testing.T) {
	var want [][]string
	run := func(seed uint64, beside bool) func(context.Context, *rdd.Session, int64, besidePlan) (string, error) {
		return func(ctx context.Context, s *rdd.Session, _ int64, p besidePlan) (_ string, err error) {
			if !beside {
				want, err = inTurn(ctx, s, p)
				return "", err
			}
			r := rand.New(rand.NewPCG(seed, 1))
			g, ctx := errgroup.WithContext(ctx)
			for range 12 {
				at := r.IntN(len(p.actions))
				g.Go(func() error {
					rows, err := p.actions[at].Run(ctx, s)
					if err != nil {
						return err
					}
					if slices.Sort(rows); !slices.Equal(rows, want[at]) {
						return fmt.Errorf("action %d has %d rows, not %d, or others", at, len(rows), len(want[at]))
					}
					return nil
				})
			}
			g.Go(func() error {
				n := 0
				for _, err := range p.stream.Rows(ctx, s) {
					if n++; err != nil {
						return err
					}
				}
				if n != len(want[0]) {
					return fmt.Errorf("%d rows came in turn, of %d", n, len(want[0]))
				}
				return nil
			})
			if err := g.Wait(); err != nil {
				return "", err
			}
			if n := p.seen.Value(s); n != 5000 {
				return "", fmt.Errorf("%d rows were counted", n)
			}
			return "", nil
		}
	}
	for seed := range uint64(12) {
		cfg := volley.Config{Executors: 3, Slots: 2, DataDir: t.TempDir()}
		if seed%3 > 0 {
			r := rand.New(rand.NewPCG(seed, 2))
			cfg.Losses = []volley.Loss{{Executor: 0, After: r.IntN(40)}, {Executor: 2, After: 20 + r.IntN(60)}}
		}
		_, err := volley.Run(context.Background(), cfg, "beside", 5000, besidePlans, run(seed, seed > 0))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestAnActionOfSeveralIsGivenUp: the others go on, and so does the session.
func TestAnActionOfSeveralIsGivenUp(t *testing.T) {
	type plan struct{ slow, quick rdd.Action[int64] }
	released := make(chan struct{})
	build := func(g *rdd.Graph, n int) plan {
		numbers := rdd.Range(g, 0, 8, 8)
		slow := rdd.Map(numbers, func(x int64) int64 {
			<-released
			return x
		})
		return plan{rdd.Count(slow), rdd.Count(numbers)}
	}
	cfg := volley.Config{Executors: 1, Slots: 2, DataDir: t.TempDir()}
	_, err := volley.Run(context.Background(), cfg, "given-up", 1,
		build, func(ctx context.Context, s *rdd.Session, _ int, p plan) (string, error) {
			one, giveUp := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() {
				_, err := p.slow.Run(one, s)
				ended <- err
			}()
			giveUp()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				return "", fmt.Errorf("what was given up: %w", err)
			}
			close(released)
			n, err := p.quick.Run(ctx, s)
			if n != 8 || err != nil {
				return "", fmt.Errorf("%d rows: %w", n, err)
			}
			return "", nil
		})
	if err != nil {
		t.Error(err)
	}
}

// TestAnErrorOfOneAction ends the job: those beside it end too, with an error.
func TestAnErrorOfOneAction(t *testing.T) {
	type plan struct{ wrong, right rdd.Action[int64] }
	_, err := volley.Run(context.Background(), volley.Config{Executors: 2, DataDir: t.TempDir()}, "wrong", 1,
		func(g *rdd.Graph, _ int) plan {
			numbers := rdd.Range(g, 0, 1000, 50)
			wrong := rdd.MapErr(numbers, func(x int64) (int64, error) { return x, errors.New("no number is right") })
			return plan{rdd.Count(wrong), rdd.Count(rdd.Distinct(numbers))}
		}, func(ctx context.Context, s *rdd.Session, _ int, p plan) (string, error) {
			var g errgroup.Group
			g.Go(func() error { _, err := p.wrong.Run(ctx, s); return err })
			for range 3 {
				g.Go(func() error { _, err := p.right.Run(ctx, s); return err })
			}
			return "", g.Wait()
		})
	if err == nil || !strings.Contains(err.Error(), "no number is right") {
		t.Error(err)
	}
}

// TestActionsMeet: two run at the same time, and what both read is made once.
func TestActionsMeet(t *testing.T) {
	type plan struct{ actions []rdd.Action[int64] }
	met, rows := make(chan struct{}), atomic.Int64{}
	build := func(g *rdd.Graph, _ int) plan {
		keyed := rdd.Map(rdd.Range(g, 0, 1000, 4), func(x int64) rdd.Pair[int64, int64] {
			rows.Add(1)
			return rdd.Pair[int64, int64]{Key: x % 10, Value: x}
		})
		sums := rdd.ReduceByKey(keyed, func(a, b int64) int64 { return a + b })
		waits := rdd.Map(rdd.Coalesce(rdd.Keys(sums), 1), func(k int64) int64 {
			select {
			case <-met:
			case <-time.After(time.Minute):
				panic("the other action has not begun")
			}
			return k
		})
		meets := rdd.Map(rdd.Coalesce(rdd.Values(sums), 1), func(v int64) int64 {
			if v == 100*99*10/2 { // the sum of those that end in 0
				close(met)
			}
			return v
		})
		return plan{[]rdd.Action[int64]{rdd.Count(waits), rdd.Count(meets), rdd.Count(rdd.Distinct(sums))}}
	}
	_, err := volley.Run(context.Background(), volley.Config{Executors: 2, DataDir: t.TempDir()}, "meet", 1, build,
		func(ctx context.Context, s *rdd.Session, _ int, p plan) (string, error) {
			var g errgroup.Group
			for _, a := range p.actions {
				g.Go(func() error {
					n, err := a.Run(ctx, s)
					if err == nil && n != 10 {
						err = fmt.Errorf("%d rows", n)
					}
					return err
				})
			}
			return "", g.Wait()
		})
	if err != nil || rows.Load() != 1000 {
		t.Errorf("%d rows were mapped: %v", rows.Load(), err)
	}
}
