package rdd

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/scheduler"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/storage/shuffle"
)

// frail is a cluster of executors in this process, of which one dies now and
// then and comes back empty.
type frail struct {
	Cluster // what shuffles do not need
	t       *testing.T
	g       *Graph
	stores  []*shuffle.Outputs
	rng     *rand.Rand
	deaths  int
	ran     map[string]int // tasks, by node and partition
	gone    map[int]int    // executors that cannot be reached, and for how many tries
	memory  int            // of a task
	rounds  int            // that deaths may still cost one task
}

func newFrail(t *testing.T, g *Graph, executors int, seed uint64) *frail {
	f := &frail{t: t, g: g, stores: make([]*shuffle.Outputs, executors), rng: rand.New(rand.NewPCG(seed, 0)),
		ran: map[string]int{}, gone: map[int]int{}, memory: 1 << 16, rounds: scheduler.MaxRounds - 1}
	for i := range f.stores {
		f.revive(i)
	}
	t.Cleanup(f.end)
	return f
}

// end lets go of what its executors keep.
func (f *frail) end() {
	for _, s := range f.stores {
		s.Close()
	}
}

// revive has an executor come back empty.
func (f *frail) revive(i int) {
	if old := f.stores[i]; old != nil {
		old.Close()
	}
	s, err := shuffle.NewOutputs(f.t.TempDir())
	if err != nil {
		f.t.Fatal(err)
	}
	f.stores[i] = s
}

// Shuffled notes nothing.
func (f *frail) Shuffled(plan.Shuffled) {}

// RunCall runs tasks one after the other; before each an executor may die.
func (f *frail) RunCall(ctx context.Context, c plan.CallRequest) ([][]byte, []error, error) {
	data, lost := make([][]byte, len(c.Args)), make([]error, len(c.Args))
	for i := range c.Args {
		if f.deaths > 0 && f.rng.IntN(8) == 0 {
			f.deaths--
			i := f.rng.IntN(len(f.stores))
			f.revive(i)
			// All deaths together may cost one task fewer rounds than a job gives up
			// after: one each, and what is left of them for being out of reach.
			more := min(int(f.rng.Uint64()%3), max(0, f.rounds-1-f.deaths))
			f.gone[i] = more + f.rng.IntN(2)
			f.rounds -= 1 + more
		}
		part := c.Partitions[i]
		f.ran[fmt.Sprint(c.Node, "/", part)]++
		on := frailPacks{f, f.rng.IntN(len(f.stores))}
		raw, err := f.g.Task(ctx, c.Node, part, c.Args[i], on)
		if fault.InputLost(err) {
			lost[i] = err
		} else if err != nil {
			return nil, nil, err
		}
		data[i] = raw
	}
	return data, lost, nil
}

// frailPacks is what a task on one executor reaches.
type frailPacks struct {
	f  *frail
	on int
}

func (p frailPacks) OpenSplit(int, int) (*pack.Split, error) { panic("no packs here") }
func (p frailPacks) MakePack(context.Context, int) (plan.ExecutorID, *pack.Meta, error) {
	panic("no packs here")
}

func (p frailPacks) Advance(int) {}

func (p frailPacks) Moved(int) {}

func (p frailPacks) Spilled(int64) {}

func (p frailPacks) Memory() int { return p.f.memory }

func (p frailPacks) Held() int { return 0 }

func (p frailPacks) NewMapOutput(partitions int) *shuffle.Writer {
	return p.f.stores[p.on].NewWriter(partitions, 1)
}

func (p frailPacks) KeepShuffle(key shuffle.Key, b *shuffle.Output) plan.ExecutorID {
	p.f.stores[p.on].Keep(key, b)
	return plan.ExecutorID(fmt.Sprint("e", p.on))
}

func (p frailPacks) DropShuffle(node int, through uint64) {
	p.f.stores[p.on].Drop(node, through)
}

func (p frailPacks) Shared(_, _ string, _ int64, make func() (any, error)) (any, error) {
	return make()
}

func (p frailPacks) OpenMapOutput(_ context.Context, holder plan.ExecutorID, key shuffle.Key,
	span shuffle.Span) (io.ReadCloser, error) {
	var i int
	if _, err := fmt.Sscanf(string(holder), "e%d", &i); err != nil {
		return nil, err
	}
	if p.f.gone[i] > 0 {
		p.f.gone[i]--
		return nil, fault.Newf(fault.HolderLost, "reach", string(holder), "it is gone")
	}
	return p.f.stores[i].Open(key, span)
}

func (f *frail) Now() time.Duration { return 0 }

// TestWhatIsLostIsMadeAgain: executors die in the middle of a plan of three
// shuffles, and the taskResult is that of a run in which none did.
func TestWhatIsLostIsMadeAgain(t *testing.T) {
	build := func() (*Graph, Action[[]Pair[int, int64]]) {
		g := NewGraph()
		rows := Map(Range(g, 0, 5000, 9), func(i int64) Pair[int64, int64] {
			return Pair[int64, int64]{Key: i * 7919 % 101, Value: i}
		})
		sums := ReduceByKey(rows, func(a, b int64) int64 { return a + b }, Partitions(6))
		counts := MapValues(GroupByKey(rows, Partitions(4)), func(v []int64) int { return len(v) })
		both := Map(Join(sums, counts, Partitions(5)), func(p Pair[int64, Joined[int64, int]]) Pair[int, int64] {
			return Pair[int, int64]{Key: p.Value.Right, Value: p.Value.Left}
		})
		return g, Collect(SortByKey(both, Partitions(3)))
	}
	g, action := build()
	want, err := action.Run(context.Background(), NewSession(g, newFrail(t, g, 4, 0), Config{}))
	if err != nil || len(want) != 101 {
		t.Fatal(len(want), err)
	}
	again, deaths := 0, 0
	for seed := range uint64(seeds.Of(40)) {
		g, action := build()
		if g.Err() != nil {
			t.Fatal(g.Err())
		}
		f := newFrail(t, g, 4, seed)
		f.deaths = 3
		got, err := action.Run(context.Background(), NewSession(g, f, Config{}))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: another result", seed)
		}
		f.end()
		deaths += 3 - f.deaths
		for _, n := range f.ran {
			again += n - 1
		}
	}
	if deaths == 0 || again == 0 {
		t.Errorf("%d deaths, %d tasks ran again: nothing was tried", deaths, again)
	}
}

// TestOnlyWhatIsLostIsMadeAgain: one executor's outputs are lost once.
func TestOnlyWhatIsLostIsMadeAgain(t *testing.T) {
	g := NewGraph()
	rows := Map(Range(g, 0, 100, 8),
		func(i int64) Pair[int64, int64] { return Pair[int64, int64]{Key: i % 10, Value: 1} })
	action := Collect(ReduceByKey(rows, func(a, b int64) int64 { return a + b }, Partitions(2)))
	f := newFrail(t, g, 2, 1)
	s := NewSession(g, f, Config{})
	if _, err := action.Run(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	var lost int
	for id, outputs := range s.shuffled {
		for m := range outputs {
			if holders, _ := s.stages.Holders(id, m); holders[0] == "e0" {
				lost++
				f.ran[fmt.Sprint(id, "/", m)] = 0 // once more, not more
			}
		}
	}
	f.revive(0)
	if _, err := action.Run(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	if lost == 0 || lost == 8 {
		t.Fatalf("%d of 8 outputs were on one executor", lost)
	}
	for task, n := range f.ran {
		if strings.HasPrefix(task, fmt.Sprint(g.shufflesOf(action.id)[0], "/")) && n != 1 {
			t.Errorf("map task %s ran %d times more than it had to", task, n-1)
		}
	}
}

// TestLosingTheSameAgainAndAgainEnds with an error that says what was lost.
func TestLosingTheSameAgainAndAgainEnds(t *testing.T) {
	g := NewGraph()
	action := Count(Distinct(Range(g, 0, 100, 4)))
	f := newFrail(t, g, 1, 1)
	f.deaths = 1 << 30
	f.rng = rand.New(always{})
	_, err := action.Run(context.Background(), NewSession(g, f, Config{}))
	if !fault.InputLost(err) || !strings.Contains(err.Error(), "e0") {
		t.Errorf("%v", err)
	}
}

// always is a source of zeros: whatever can happen does.
type always struct{}

func (always) Uint64() uint64 { return 0 }

// TestCountersAreExactWhileTasksAreLost: a partition counts once, however often it
// is computed.
func TestCountersAreExactWhileTasksAreLost(t *testing.T) {
	g := NewGraph()
	odd, all := NewCounter(), NewCounter()
	rows := Tally(Tally(Range(g, 0, 5000, 20), odd, func(i int64) int64 { return i % 2 }), all,
		func(int64) int64 { return 1 })
	groups := Count(GroupByKey(KeyBy(rows, func(i int64) int64 { return i % 10 }), Partitions(5)))
	for seed := range uint64(seeds.Of(20)) {
		f := newFrail(t, g, 4, seed)
		f.deaths = 4
		s := NewSession(g, f, Config{})
		if n, err := groups.Run(context.Background(), s); err != nil || n != 10 {
			t.Fatalf("seed %d: %d groups, %v", seed, n, err)
		}
		if odd.Value(s) != 2500 || all.Value(s) != 5000 {
			t.Fatalf("seed %d: counted %d odd ones of %d, want 2500 of 5000", seed, odd.Value(s), all.Value(s))
		}
	}
}

// TestAHotKeyIsNamed, with its share of the rows.
func TestAHotKeyIsNamed(t *testing.T) {
	g := NewGraph()
	rows := Map(Range(g, 0, 40_000, 8), func(i int64) Pair[string, int64] {
		if i%2 == 0 {
			return Pair[string, int64]{Key: "the usual one", Value: i}
		}
		return Pair[string, int64]{Key: fmt.Sprint("key ", i), Value: i}
	})
	var said []string
	s := NewSession(g, newFrail(t, g, 2, 1), Config{Warn: func(text string) { said = append(said, text) }})
	n, err := Count(GroupByKey(rows)).Run(context.Background(), s)
	if err != nil || n != 20_001 {
		t.Fatalf("%d groups, %v", n, err)
	}
	if len(said) != 1 || !strings.Contains(said[0], `"the usual one"`) || !strings.Contains(said[0], "% of the rows") ||
		!strings.Contains(said[0], "stages_test.go") {
		t.Errorf("it was said: %q", said)
	}
}

// TestLoopsGoOnWhenTheirRowsAreLost: from the beginning, to the same end.
func TestLoopsGoOnWhenTheirRowsAreLost(t *testing.T) {
	g := NewGraph()
	first := Map(Range(g, 0, 300, 6), func(i int64) Pair[int64, int64] { return Pair[int64, int64]{Key: i, Value: i} })
	loop := NewLoop(first, func(now Dataset[Pair[int64, int64]]) Dataset[Pair[int64, int64]] {
		next := Map(now, func(p Pair[int64, int64]) Pair[int64, int64] {
			return Pair[int64, int64]{Key: p.Key * 7 % 301, Value: p.Value + 1}
		})
		return ReduceByKey(next, func(a, b int64) int64 { return a + b })
	})
	all := Collect(SortByKey(loop.Now()))
	run := func(f *frail) []Pair[int64, int64] {
		s := NewSession(g, f, Config{})
		for range 6 {
			if err := loop.Step(context.Background(), s); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := all.Run(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		g.decided.Clear()
		return rows
	}
	want := run(newFrail(t, g, 3, 0))
	for seed := range uint64(seeds.Of(20)) {
		f := newFrail(t, g, 3, seed)
		f.deaths = 3
		if got := run(f); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d rows, want %d, or others", seed, len(got), len(want))
		}
	}
}

// TestLostRoundsAreMadeAgainForPlansThatAreStillOpen: what is lost between a round
// and the first action that has to look at its rows.
func TestLostRoundsAreMadeAgainForPlansThatAreStillOpen(t *testing.T) {
	g := NewGraph()
	first := KeyBy(Range(g, 0, 100, 4), func(i int64) int64 { return i % 10 })
	loop := NewLoop(first, func(now Dataset[Pair[int64, int64]]) Dataset[Pair[int64, int64]] {
		return MapValues(now, func(v int64) int64 { return v + 1 })
	})
	sums := Collect(SortByKey(ReduceByKey(loop.Now(), func(a, b int64) int64 { return a + b })))
	f := newFrail(t, g, 2, 1)
	s := NewSession(g, f, Config{})
	if err := loop.Step(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	for i := range f.stores {
		f.revive(i)
	}
	rows, err := sums.Run(context.Background(), s)
	if err != nil || len(rows) != 10 || rows[0].Value != 450+10 {
		t.Errorf("%v, %v", rows, err)
	}
}

// TestASaveRunsAgain in the same job; one that is started again goes on.
func TestASaveRunsAgain(t *testing.T) {
	g := NewGraph()
	dir := t.TempDir()
	times := NewParam[int64](g, "times")
	save := SaveText(MapWith(Range(g, 0, 3, 1), times, func(i, n int64) int64 { return i * n }), dir, Overwrite())
	session := func() *Session { return NewSession(g, newFrail(t, g, 1, 1), Config{Owner: "job"}) }
	run := func(s *Session, n int64, want string) {
		t.Helper()
		if err := times.Set(s, n); err != nil {
			t.Fatal(err)
		}
		if _, err := save.Run(context.Background(), s); err != nil {
			t.Fatal(err)
		}
		if raw, err := os.ReadFile(dir + "/part-00000"); string(raw) != want {
			t.Errorf("%q, want %q: %v", raw, want, err)
		}
	}
	s := session()
	run(s, 1, "0\n1\n2\n")
	run(s, 2, "0\n2\n4\n")
	again := session()
	run(again, 1, "0\n1\n2\n") // the first of this life is not the last of the one before
	run(again, 2, "0\n2\n4\n")
}
