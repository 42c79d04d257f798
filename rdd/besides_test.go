package rdd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
)

// TestPacksThatAreGivenUp: whatever moment the session stops waiting for a pack, actions beside it go on, and steps are
// over the rows of their own packs.
func TestPacksThatAreGivenUp(t *testing.T) {
	const packs = 20
	type plan struct {
		count rdd.Action[int64]
		few   []rdd.Action[[]float64]
		steps []rdd.Step[float64, float64]
	}
	build := func(g *rdd.Graph, _ int) (p plan) {
		p.count = rdd.Count(rdd.Distinct(rdd.Range(g, 0, 3000, 5)))
		for k := range packs {
			pk := rdd.Pack(rdd.Map(rdd.Range(g, 0, int64(10+k), 2), func(x int64) float64 { return float64(x) }))
			p.few = append(p.few, rdd.Prefix(pk, 4))
			p.steps = append(p.steps, rdd.Aggregate(pk, rdd.Aggregator[float64, float64, float64]{
				Zero: func(float64) float64 { return 0 }, Add: func(sum, _, x float64) float64 { return sum + x },
				Merge: func(a, b float64) float64 { return a + b }}))
		}
		return p
	}
	_, err := volley.Run(context.Background(), volley.Config{Executors: 2, DataDir: t.TempDir()}, "given-up", 1, build,
		func(ctx context.Context, s *rdd.Session, _ int, p plan) (string, error) {
			for k := range packs {
				var g errgroup.Group
				g.Go(func() error {
					n, err := p.count.Run(ctx, s)
					if err == nil && n != 3000 {
						err = fmt.Errorf("%d rows", n)
					}
					return err
				})
				soon, cancel := context.WithTimeout(ctx, time.Duration(k)*200*time.Microsecond)
				_, err := p.few[k].Run(soon, s)
				if cancel(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
					return "", err
				}
				if err := g.Wait(); err != nil {
					return "", err
				}
			}
			for k, step := range p.steps {
				n := float64(10 + k)
				if sum, err := step.Run(ctx, s, 0); err != nil || sum != n*(n-1)/2 {
					return "", fmt.Errorf("the rows of pack %d come to %v: %w", k, sum, err)
				}
			}
			return "", nil
		})
	if err != nil {
		t.Error(err)
	}
}

// TestSavesSideBySide into one directory are in turn: each replaces what is there, or adds to it.
func TestSavesSideBySide(t *testing.T) {
	dir := t.TempDir()
	type plan struct{ over, add []rdd.Action[int64] }
	build := func(g *rdd.Graph, _ int) (p plan) {
		for range 4 {
			rows := rdd.Range(g, 0, 100, 3)
			p.over = append(p.over, rdd.SaveText(rows, filepath.Join(dir, "over"), rdd.Overwrite()))
			p.add = append(p.add, rdd.SaveText(rows, filepath.Join(dir, "add"), rdd.Append()))
		}
		return p
	}
	_, err := volley.Run(context.Background(), volley.Config{Executors: 2, DataDir: t.TempDir()}, "saves", 1, build,
		func(ctx context.Context, s *rdd.Session, _ int, p plan) (string, error) {
			var g errgroup.Group
			for _, a := range append(p.over, p.add...) {
				g.Go(func() error { _, err := a.Run(ctx, s); return err })
			}
			return "", g.Wait()
		})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"over": 100, "add": 400} {
		lines, parts := 0, 0
		files, _ := filepath.Glob(filepath.Join(dir, name, "part-*"))
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			lines, parts = lines+strings.Count(string(raw), "\n"), parts+1
		}
		if lines != want {
			t.Errorf("%s: %d lines in %d parts, want %d", name, lines, parts, want)
		}
	}
}

// TestADeadlineHoldsWhileOthersHaveTheSession, and what a part that was not built has left does not count.
func TestADeadlineHoldsWhileOthersHaveTheSession(t *testing.T) {
	released := make(chan struct{})
	type plan struct {
		slow, quick  rdd.Action[int64]
		by           rdd.Param[int64]
		count        rdd.Counter
		wrong, again rdd.LaterPart[int, rdd.Action[int64]]
	}
	build := func(g *rdd.Graph, _ int) plan {
		numbers := rdd.Range(g, 0, 100, 2)
		p := plan{by: rdd.NewParam[int64](g, "by"), count: rdd.NewCounter(), quick: rdd.Count(numbers)}
		other := rdd.NewCounter()
		one := func(int64) int64 { return 1 }
		p.slow = rdd.Count(rdd.Map(numbers, func(x int64) int64 { <-released; return x }))
		p.wrong = rdd.Later(g, func(g *rdd.Graph, n int) rdd.Action[int64] {
			return rdd.Count(rdd.Repartition(rdd.Tally(numbers, p.count, one), n))
		})
		p.again = rdd.Later(g, func(g *rdd.Graph, n int) rdd.Action[int64] {
			return rdd.Count(rdd.Tally(rdd.Map(numbers, func(x int64) int64 { return x }), other, one))
		})
		return p
	}
	_, err := volley.Run(context.Background(), volley.Config{Executors: 1, Slots: 4, DataDir: t.TempDir()}, "turns", 1,
		build, func(ctx context.Context, s *rdd.Session, _ int, p plan) (string, error) {
			bad, err := p.wrong.Build(ctx, s, -1)
			if err == nil {
				return "", errors.New("a wrong part is built")
			}
			if _, err := bad.Run(ctx, s); fault.KindOf(err) != fault.UserCode {
				return "", fmt.Errorf("an action of no part: %w", err)
			}
			again, err := p.again.Build(ctx, s, 1)
			if err != nil {
				return "", err
			}
			if n, err := again.Run(ctx, s); n != 100 || err != nil || p.count.Value(s) != 0 {
				return "", fmt.Errorf("%d rows, %d of which are counted: %w", n, p.count.Value(s), err)
			}
			var g errgroup.Group
			g.Go(func() error { _, err := p.slow.Run(ctx, s); return err })
			g.Go(func() error { return p.by.Set(s, 1) })
			s.Explained()
			soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			if _, err := again.Run(soon, s); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return "", err
			}
			close(released)
			return "", g.Wait()
		})
	if err != nil {
		t.Error(err)
	}
}
