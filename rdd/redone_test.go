package rdd

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/volley-engine/volley/rdd/internal/row"
)

// killAfter kills an executor before the nth task of the nodes that a test counts.
func killAfter(executor, n int, counts func(node int) bool) func(u *uneven, node, part int) {
	return func(u *uneven, node, _ int) {
		if counts(node) {
			if n--; n == 0 {
				u.kill(executor)
			}
		}
	}
}

// exactlyOnce says what is wrong with rows that should be the numbers below n, each
// once, in any order.
func exactlyOnce(rows []int64, n int) error {
	seen := make([]int, n)
	for _, r := range rows {
		seen[r]++
	}
	lost, doubled := 0, 0
	for _, times := range seen {
		if times == 0 {
			lost++
		}
		doubled += max(0, times-1)
	}
	if lost+doubled > 0 {
		return fmt.Errorf("%d rows of %d are lost, %d are doubled", lost, n, doubled)
	}
	return nil
}

// TestNoRowIsLostWhereMemoriesDiffer: a join is dealt out by position; the executor
// with little memory is lost while the rows are read, and one with much makes again
// what it had made.
func TestNoRowIsLostWhereMemoriesDiffer(t *testing.T) {
	for _, join := range []struct {
		name string
		of   func(l, r Dataset[Pair[int64, int64]]) Dataset[int64]
	}{
		{"join", func(l, r Dataset[Pair[int64, int64]]) Dataset[int64] {
			return Map(Join(l, r, Partitions(6)), func(p Pair[int64,
				Joined[int64, int64]]) int64 {
				return p.Value.Left
			})
		}},
		{"left join", func(l, r Dataset[Pair[int64, int64]]) Dataset[int64] {
			return Map(LeftJoin(l, r, Partitions(6)),
				func(p Pair[int64, Joined[int64, *int64]]) int64 { return p.Value.Left })
		}},
		{"distinct", func(l, _ Dataset[Pair[int64, int64]]) Dataset[int64] {
			return Distinct(Values(l),
				Partitions(6))
		}},
	} {
		t.Run(join.name, func(t *testing.T) {
			const n = 6000
			g := NewGraph()
			l := Map(Range(g, 0, n, 6),
				func(i int64) Pair[int64, int64] { return Pair[int64, int64]{Key: i * 7919 % n, Value: i} })
			r := Map(Range(g, 0, n, 4),
				func(i int64) Pair[int64, int64] { return Pair[int64, int64]{Key: i, Value: 0} })
			action := Collect(Repartition(join.of(l, r), 5))
			u := newUneven(t, g, 1<<12, 1<<30)
			u.before = killAfter(0, 3, func(node int) bool { return node == action.id })
			rows, err := action.Run(context.Background(), NewSession(g, u, Config{}))
			if err != nil || !u.down[0] {
				t.Fatal(err, u.down)
			}
			if err := exactlyOnce(rows, n); err != nil {
				t.Error(err)
			}
		})
	}
}

// fickle gives every number below n a key that is another one each time that its
// partition is computed.
type fickle struct {
	sync.Mutex
	times map[int]int
}

func (f *fickle) keys(ds Dataset[int64]) Dataset[Pair[int64, int64]] {
	return MapSplits(ds, func(part int, rows iter.Seq[int64]) iter.Seq[Pair[int64, int64]] {
		return func(yield func(Pair[int64, int64]) bool) {
			f.Lock()
			f.times[part]++
			times := int64(f.times[part])
			f.Unlock()
			for i := range rows {
				if !yield(Pair[int64, int64]{Key: int64(row.Mix(uint64(i*1000+times)) >> 40), Value: i}) {
					return
				}
			}
		}
	})
}

// fickleRows is how many rows the plans below have.
const fickleRows = 2000

// ficklePlans have every number below fickleRows once, whatever the keys are, as
// long as all of a plan sees the same ones.
func ficklePlans() map[string]func(pairs Dataset[Pair[int64, int64]]) Dataset[int64] {
	type pairs = Dataset[Pair[int64, int64]]
	return map[string]func(pairs) Dataset[int64]{
		"partitioned": func(p pairs) Dataset[int64] { return Values(PartitionBy(p, HashPartitioner[int64](6))) },
		"grouped": func(p pairs) Dataset[int64] {
			return FlatMap(GroupByKey(p, Partitions(6)), func(g Pair[int64, []int64]) []int64 { return g.Value })
		},
		"reduced": func(p pairs) Dataset[int64] {
			lists := MapValues(p, func(v int64) []int64 { return []int64{v} })
			return FlatMap(ReduceByKey(lists, func(a, b []int64) []int64 { return slices.Concat(a, b) }, Partitions(6)),
				func(g Pair[int64, []int64]) []int64 { return g.Value })
		},
		"sorted": func(p pairs) Dataset[int64] { return Values(SortByKey(p, Partitions(6))) },
		"dealt out in another order": func(p pairs) Dataset[int64] {
			shuffled := MapSplits(p, func(_ int, rows iter.Seq[Pair[int64, int64]]) iter.Seq[Pair[int64, int64]] {
				all := slices.Collect(rows)
				slices.SortFunc(all, func(a, b Pair[int64, int64]) int { return int(a.Key - b.Key) })
				return slices.Values(all)
			})
			return Values(Repartition(shuffled, 6))
		},
		"partitioned twice": func(p pairs) Dataset[int64] {
			once := PartitionBy(p, HashPartitioner[int64](6))
			again := Map(once, func(r Pair[int64, int64]) Pair[int64, int64] {
				return Pair[int64, int64]{Key: r.Value, Value: r.Key}
			})
			return Keys(PartitionBy(again, HashPartitioner[int64](5)))
		},
		"kept and partitioned": func(p pairs) Dataset[int64] {
			return Values(PartitionBy(Cache(p), HashPartitioner[int64](6)))
		},
	}
}

// TestFunctionsThatAreNotDeterministic: where what was lost is made again and comes to
// something else, everything that has seen the old rows is made again, too, or the
// action fails: it never has rows of both.
func TestFunctionsThatAreNotDeterministic(t *testing.T) {
	for name, build := range ficklePlans() {
		t.Run(name, func(t *testing.T) {
			undisturbed := fickleRun(t, build, 1<<30)
			if undisturbed.err != nil || undisturbed.wrong != nil {
				t.Fatal("without a loss: ", undisturbed.err, undisturbed.wrong)
			}
			for n := 1; n <= undisturbed.tasks; n++ {
				if r := fickleRun(t, build, n); r.err == nil && r.wrong != nil {
					t.Fatalf("an executor is lost before task %d: no error, and %v", n, r.wrong)
				}
			}
		})
	}
}

// fickleResult is what became of a run: an error, or rows of which some may be wrong.
type fickleResult struct {
	err, wrong error
	tasks      int
}

// fickleRun loses one of two executors before the nth task.
func fickleRun(t *testing.T, build func(Dataset[Pair[int64, int64]]) Dataset[int64], n int) fickleResult {
	g := NewGraph()
	f := &fickle{times: map[int]int{}}
	action := Collect(build(f.keys(Range(g, 0, fickleRows, 6))))
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	u := newUneven(t, g, 1<<30, 1<<30)
	var out fickleResult
	kill := killAfter(0, n, func(int) bool { return true })
	u.before = func(u *uneven, node, part int) {
		out.tasks++
		kill(u, node, part)
	}
	rows, err := action.Run(context.Background(), NewSession(g, u, Config{}))
	if out.err = err; err == nil {
		out.wrong = exactlyOnce(rows, fickleRows)
	}
	return out
}

// TestDeterministicPlansPayNothing: rows that come out alike when they are made again
// are taken for what they are, and nothing else is made again.
func TestDeterministicPlansPayNothing(t *testing.T) {
	const maps, parts = 6, 5
	g := NewGraph()
	pairs := Map(Range(g, 0, 3000, maps),
		func(i int64) Pair[int64, int64] { return Pair[int64, int64]{Key: i % 701, Value: i} })
	action := Collect(Repartition(Values(PartitionBy(pairs, HashPartitioner[int64](maps))), parts))
	u := newUneven(t, g, 1<<14, 1<<30)
	u.before = killAfter(0, 3, func(node int) bool { return node == action.id })
	ran := map[string]int{}
	kill := u.before
	u.before = func(u *uneven, node, part int) {
		ran[fmt.Sprint(node, "/", part)]++
		kill(u, node, part)
	}
	rows, err := action.Run(context.Background(), NewSession(g, u, Config{}))
	if err != nil || exactlyOnce(rows, 3000) != nil {
		t.Fatal(err, exactlyOnce(rows, 3000))
	}
	for part := range 2 { // they had ended when the executor was lost
		if n := ran[fmt.Sprint(action.id, "/", part)]; n != 1 {
			t.Errorf("partition %d was computed %d times", part, n)
		}
	}
}

// TestRowsThatWereHandedOutCannotBeTakenBack: a stream whose lost partitions come out
// differently ends with an error.
func TestRowsThatWereHandedOutCannotBeTakenBack(t *testing.T) {
	g := NewGraph()
	f := &fickle{times: map[int]int{}}
	stream := ToSeq(Values(PartitionBy(f.keys(Range(g, 0, fickleRows, 6)), HashPartitioner[int64](6))))
	u := newUneven(t, g, 1<<30, 1<<30)
	s := NewSession(g, u, Config{})
	var rows []int64
	var failed error
	for row, err := range stream.Rows(context.Background(), s) {
		if failed = err; err != nil {
			break
		}
		if rows = append(rows, row); len(rows) == 1 {
			u.kill(0)
		}
	}
	if err := exactlyOnce(rows, fickleRows); failed == nil && err != nil {
		t.Errorf("no error, and %v", err)
	}
}

// TestNumbersOfRowsThatChange: rows are numbered in a pass after the one that has
// counted them; where there are others by then, numbers are not given twice.
func TestNumbersOfRowsThatChange(t *testing.T) {
	g := NewGraph()
	var mu sync.Mutex
	times := map[int]int{}
	rows := MapSplits(Range(g, 0, 100, 4), func(part int, rows iter.Seq[int64]) iter.Seq[int64] {
		return func(yield func(int64) bool) {
			mu.Lock()
			times[part]++
			n := times[part]
			mu.Unlock()
			for i := range rows {
				for range n {
					yield(i)
				}
			}
		}
	})
	action := Collect(Keys(ZipWithIndex(rows)))
	numbers, err := action.Run(context.Background(), NewSession(g, newUneven(t, g, 1<<30), Config{}))
	if err != nil {
		return // it was noticed
	}
	slices.Sort(numbers)
	if len(slices.Compact(slices.Clone(numbers))) != len(numbers) {
		t.Errorf("%d rows have %d numbers", len(numbers), len(slices.Compact(numbers)))
	}
}
