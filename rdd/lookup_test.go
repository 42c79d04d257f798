package rdd

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRowsAreFoundByKey, all of a key in their order, however many workers have built
// the index, keys being single or many times there.
func TestRowsAreFoundByKey(t *testing.T) {
	key, err := codecOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	c := keyed[int64, int]{key: key, hash: hasherOf(key)}
	for _, keys := range []int{1, 40, 150_000, 3_000_000, 1 << 40} {
		for _, workers := range []int{1, 3} {
			rng := rand.New(rand.NewPCG(5, uint64(keys)))
			l, want := newLookup(c, 10), map[int64][]int{}
			const n = 4 * indexedLeast
			for at := 0; at < n; {
				rows := make([]Pair[int64, int], 1+rng.IntN(900))
				for i := range rows {
					rows[i] = Pair[int64, int]{Key: int64(rng.IntN(keys)), Value: at}
					want[rows[i].Key] = append(want[rows[i].Key], at)
					at++
				}
				if err := l.addAll(rows); err != nil {
					t.Fatal(err)
				}
			}
			l.build(workers)
			asked := []Pair[int64, bool]{{Key: -1}}
			for k := range want {
				asked = append(asked, Pair[int64, bool]{Key: k})
			}
			var sc scratch
			look(l.keys, &sc, asked, false)
			for i, q := range asked {
				var got []int
				m := l.matches(sc.places[i])
				for v := m.take(); v != nil; v = m.take() {
					got = append(got, *v)
				}
				if !slices.Equal(got, want[q.Key]) {
					t.Fatalf("%d keys, %d workers: key %d has %d rows, want %d, or in another order", keys, workers, q.Key, len(got), len(want[q.Key]))
				}
			}
		}
	}
}
