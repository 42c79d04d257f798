package rdd

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/storage"
)

// frail is a cluster of executors in this process, of which one dies now and
// then and comes back empty.
type frail struct {
	Cluster // what shuffles do not need
	t       *testing.T
	g       *Graph
	stores  []*storage.Store
	rng     *rand.Rand
	deaths  int
	ran     map[string]int // tasks, by node and partition
	gone    map[int]int    // executors that cannot be reached, for so many tries
}

func newFrail(t *testing.T, g *Graph, executors int, seed uint64) *frail {
	f := &frail{t: t, g: g, stores: make([]*storage.Store, executors), rng: rand.New(rand.NewPCG(seed, 0)), ran: map[string]int{}, gone: map[int]int{}}
	for i := range f.stores {
		f.revive(i)
	}
	return f
}

func (f *frail) revive(i int) {
	s, err := storage.NewStore(f.t.TempDir())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { s.Close() })
	f.stores[i] = s
}

// RunCall runs tasks one after the other; before each an executor may die.
func (f *frail) RunCall(ctx context.Context, c CallRequest) ([][]byte, []error, error) {
	data, lost := make([][]byte, len(c.Args)), make([]error, len(c.Args))
	for i := range c.Args {
		if f.deaths > 0 && f.rng.IntN(8) == 0 {
			f.deaths--
			i := f.rng.IntN(len(f.stores))
			f.revive(i)
			f.gone[i] = f.rng.IntN(4)
		}
		part := c.Partitions[i]
		f.ran[fmt.Sprint(c.Node, "/", part)]++
		on := frailPacks{f, f.rng.IntN(len(f.stores))}
		raw, err := f.g.Task(ctx, c.Node, part, c.Args[i], on)
		if fault.KindOf(err) == fault.LostInput {
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

func (p frailPacks) OpenSplit(int, int) (*storage.Split, error) { panic("no packs here") }
func (p frailPacks) MakePack(context.Context, int) (plan.ExecutorID, *storage.PackMeta, error) {
	panic("no packs here")
}

func (p frailPacks) NewSorter(partitions int) *storage.Sorter {
	return p.f.stores[p.on].NewSorter(partitions, 1)
}

func (p frailPacks) KeepShuffle(key storage.ShuffleKey, s *storage.Sorter) (plan.ExecutorID, *storage.Buckets, error) {
	b, err := p.f.stores[p.on].KeepShuffle(key, s)
	return plan.ExecutorID(fmt.Sprint("e", p.on)), b, err
}

func (p frailPacks) OpenBucket(_ context.Context, holder plan.ExecutorID, key storage.ShuffleKey, partition int) (io.ReadCloser, error) {
	var i int
	if _, err := fmt.Sscanf(string(holder), "e%d", &i); err != nil {
		return nil, err
	}
	if p.f.gone[i] > 0 {
		p.f.gone[i]--
		return nil, fault.Newf(fault.LostInput, "reach", string(holder), "it is gone")
	}
	return p.f.stores[i].OpenBucket(key, partition)
}

func (f *frail) Now() time.Duration { return 0 }

// TestWhatIsLostIsMadeAgain: executors die in the middle of a plan of three
// shuffles, and the answer is that of a run in which none did.
func TestWhatIsLostIsMadeAgain(t *testing.T) {
	build := func() (*Graph, Action[[]Pair[int, int64]]) {
		g := NewGraph()
		rows := Map(Range(g, 0, 5000, 9), func(i int64) Pair[int64, int64] { return Pair[int64, int64]{i * 7919 % 101, i} })
		sums := ReduceByKey(rows, func(a, b int64) int64 { return a + b }, Partitions(6))
		counts := MapValues(GroupByKey(rows, Partitions(4)), func(v []int64) int { return len(v) })
		both := Map(Join(sums, counts, Partitions(5)), func(p Pair[int64, Joined[int64, int]]) Pair[int, int64] {
			return Pair[int, int64]{p.Value.Right, p.Value.Left}
		})
		return g, Collect(SortByKey(both, SortPartitions(3)))
	}
	g, action := build()
	want, err := action.Run(context.Background(), NewSession(g, newFrail(t, g, 4, 0), Config{}))
	if err != nil || len(want) != 101 {
		t.Fatal(len(want), err)
	}
	again, deaths := 0, 0
	for seed := range uint64(40) {
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
	rows := Map(Range(g, 0, 100, 8), func(i int64) Pair[int64, int64] { return Pair[int64, int64]{i % 10, 1} })
	action := Collect(ReduceByKey(rows, func(a, b int64) int64 { return a + b }, Partitions(2)))
	f := newFrail(t, g, 2, 1)
	s := NewSession(g, f, Config{})
	if _, err := action.Run(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	var lost int
	for id, outputs := range s.shuffled {
		for m, o := range outputs {
			if o.Holder == "e0" {
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
	if fault.KindOf(err) != fault.LostInput || !strings.Contains(err.Error(), "e0") {
		t.Errorf("%v", err)
	}
}

// always is a source of zeros: whatever can happen does.
type always struct{}

func (always) Uint64() uint64 { return 0 }
