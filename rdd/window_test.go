package rdd

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
)

// TestWindowsEndWhereRowsSay: with many windows to a map task, memory changes no row of any
// operation, not by a bit; and what they come to is what one window comes to, where the
// function is associative.
func TestWindowsEndWhereRowsSay(t *testing.T) {
	before := windowBytes
	defer func() { windowBytes = before }()
	for _, p := range orderedPlans() {
		t.Run(p.name, func(t *testing.T) {
			windowBytes = before
			one, _ := orderedRows(t, p, 1<<30, 1<<10)
			windowBytes = 3000
			want, _ := orderedRows(t, p, 1<<30, 1<<10)
			if len(one) != len(want) {
				t.Errorf("%d rows with one window, %d with many", len(one), len(want))
			}
			for _, memory := range []int{1 << 10, 16 << 10, 256 << 10} {
				if got, _ := orderedRows(t, p, memory, 1<<10); !slices.Equal(got, want) {
					t.Errorf("with %d bytes of memory: %s", memory, difference(got, want))
				}
			}
		})
	}
}

// TestFewKeysAreOneWindow: however many rows a map task has, what it hands on of a few keys is
// one value each; of many keys it hands values on as their rows fill windows. Memory does not
// change when.
func TestFewKeysAreOneWindow(t *testing.T) {
	before := windowBytes
	defer func() { windowBytes = before }()
	windowBytes = 3000
	const rows = 20_000
	for _, c := range []struct{ keys, least, most int }{{7, 7, 7}, {50, 2000, rows / 2},
		{rows / 2, rows - 2000, rows}} {
		pairs := make([]kv, rows)
		for i := range pairs {
			pairs[i] = kv{Key: fmt.Sprint("key ", i%c.keys), Value: int64(i)}
		}
		var seen []int64
		for _, memory := range append([]int{1 << 9}, someMemories...) {
			n := handedOn(t, pairs, memory)
			if seen = append(seen, n); n < int64(c.least) || n > int64(c.most) {
				t.Errorf("%d values of %d keys of %d rows with %d bytes of memory, want %d to %d", n, c.keys, rows,
					memory, c.least, c.most)
			}
		}
		if slices.Max(seen) != slices.Min(seen) {
			t.Errorf("windows of %d keys end elsewhere with other memory: %d values", c.keys, seen)
		}
	}
}

// handedOn is how many values a map task begins, of which each is handed on.
func handedOn(t *testing.T, pairs []kv, memory int) int64 {
	g := NewGraph()
	var begun atomic.Int64
	sums := CombineByKey(Parallelize(g, 1, pairs...), Combiner[int64, int64]{
		Create: func(v int64) int64 { begun.Add(1); return v },
		Add:    func(a, b int64) int64 { return a + b },
		Merge:  func(a, b int64) int64 { return a + b },
	}, Partitions(2))
	total := Reduce(Values(sums), func(a, b int64) int64 { return a + b })
	got, err := total.Run(context.Background(), NewSession(g, newUneven(t, g, memory), Config{TaskMemory: 1 << 30}))
	if want := int64(len(pairs)) * int64(len(pairs)-1) / 2; err != nil || got != want {
		t.Fatalf("%d: %v, want %d", got, err, want)
	}
	return begun.Load()
}
