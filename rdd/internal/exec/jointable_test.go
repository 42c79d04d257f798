package exec

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/volley-engine/volley/rdd/internal/row"
)

// TestRowsAreFoundByKey, all of a key in their order, however many workers have built
// the index, keys being single or many times there.
func TestRowsAreFoundByKey(t *testing.T) {
	key, err := row.CodecOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	c := Keyed[int64, int]{Key: key, Hash: row.HasherOf(key)}
	for _, keys := range []int{1, 40, 150_000, 3_000_000, 1 << 40} {
		for _, workers := range []int{1, 3} {
			rng := rand.New(rand.NewPCG(5, uint64(keys)))
			l, want := NewJoinTable(c, 10), map[int64][]int{}
			const n = 4 * indexedLeast
			for at := 0; at < n; {
				rows := make([]row.Pair[int64, int], 1+rng.IntN(900))
				for i := range rows {
					rows[i] = row.Pair[int64, int]{Key: int64(rng.IntN(keys)), Value: at}
					want[rows[i].Key] = append(want[rows[i].Key], at)
					at++
				}
				if err := l.AddAll(rows); err != nil {
					t.Fatal(err)
				}
			}
			l.Build(workers)
			asked := []row.Pair[int64, bool]{{Key: -1}}
			for k := range want {
				asked = append(asked, row.Pair[int64, bool]{Key: k})
			}
			var sc scratch
			look(l.keys, &sc, asked, false)
			for i, q := range asked {
				var got []int
				m := l.matches(sc.places[i])
				for v := m.Next(); v != nil; v = m.Next() {
					got = append(got, *v)
				}
				if !slices.Equal(got, want[q.Key]) {
					t.Fatalf("%d keys, %d workers: key %d has %d rows, want %d, or in another order", keys, workers,
						q.Key, len(got), len(want[q.Key]))
				}
			}
		}
	}
}

// TestRowsInTheOrderOfHashesAreMerged: those of the right are found without an index as
// long as the left's come in that order, too, whatever either lacks, and found all the
// same where they do not.
func TestRowsInTheOrderOfHashesAreMerged(t *testing.T) {
	key, err := row.CodecOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	coarse := func(first unsafe.Pointer, stride uintptr, out []uint64) { // some keys have the same hash
		for i := range out {
			out[i] = row.Mix(*(*uint64)(unsafe.Add(first, uintptr(i)*stride))/3) >> 8
		}
	}
	rowsAreMerged(t, Keyed[int64, int]{Key: key, Hash: row.HasherOf(key)}, true)
	rowsAreMerged(t, Keyed[int64, int]{Key: key, Hash: coarse}, false)
}

func rowsAreMerged(t *testing.T, c Keyed[int64, int], merged bool) {
	for name, left := range map[string]func(rng *rand.Rand, keys []int64) ([]int64, bool){
		"the same":   func(_ *rand.Rand, keys []int64) ([]int64, bool) { return keys, true },
		"some":       func(rng *rand.Rand, keys []int64) ([]int64, bool) { return someOf(rng, keys), true },
		"each twice": func(_ *rand.Rand, keys []int64) ([]int64, bool) { return twice(keys), true },
		"in another turn": func(rng *rand.Rand, keys []int64) ([]int64, bool) {
			rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			return keys, false
		},
		"backwards": func(_ *rand.Rand, keys []int64) ([]int64, bool) { slices.Reverse(keys); return keys, false },
		"some, then all": func(rng *rand.Rand, keys []int64) ([]int64,
			bool) {
			return append(someOf(rng, keys), keys...), false
		},
	} {
		for seed := range uint64(5) {
			rng := rand.New(rand.NewPCG(9, seed))
			keys := inOrderOf(c.Hash, 3000)
			right, want := someOf(rng, keys), map[int64]int{}
			l := NewJoinTable(c, 10)
			for i, k := range right {
				want[k] = i
				if err := l.AddAll([]row.Pair[int64, int]{{Key: k, Value: i}}); err != nil {
					t.Fatal(err)
				}
			}
			l.Prepare()
			asked, ordered := left(rng, slices.Clone(keys))
			var sc scratch
			for batch := range slices.Chunk(asked, 70) {
				rows := make([]row.Pair[int64, bool], len(batch))
				for i, k := range batch {
					rows[i].Key = k
				}
				find(l, &sc, rows)
				for i, k := range batch {
					m := l.matches(sc.places[i])
					if v, has := want[k]; has != (m.first != nil) || has && *m.first != v {
						t.Fatalf("%s, seed %d: key %d is at %d, want it there: %v, at %d", name, seed, k, sc.places[i],
							has, v)
					}
				}
			}
			if l.merged != (ordered && merged) {
				t.Errorf("%s, seed %d: merged %v", name, seed, l.merged)
			}
		}
	}
}

// inOrderOf are the numbers up to n in the order of their hashes.
func inOrderOf(hash row.Hasher, n int) []int64 {
	rows := make([]row.Pair[int64, bool], n)
	for i := range rows {
		rows[i].Key = int64(i)
	}
	hashes := row.Hashes(hash, rows, nil)
	keys := make([]int64, n)
	for i := range keys {
		keys[i] = int64(i)
	}
	slices.SortStableFunc(keys, func(a, b int64) int { return cmp.Compare(hashes[a], hashes[b]) })
	return keys
}

func someOf(rng *rand.Rand, keys []int64) (out []int64) {
	for _, k := range keys {
		if rng.IntN(4) > 0 {
			out = append(out, k)
		}
	}
	return out
}

func twice(keys []int64) (out []int64) {
	for _, k := range keys {
		out = append(out, k, k)
	}
	return out
}

// TestHeldByIsWhatATableTakes: of small rows several times their encoding, of long texts little more.
func TestHeldByIsWhatATableTakes(t *testing.T) {
	const n = 40_000
	k, err := KeyedOf[string, bool]()
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []int{6, 300} {
		table, encoded, texts := NewJoinTable[string, bool](k, n), 0, 0
		for i := range n {
			key := fmt.Sprintf("%0*d", length, i/2)
			rows := []row.Pair[string, bool]{{Key: key, Value: true}}
			encoded, texts = encoded+len(k.Row.Append(nil, &rows[0])), texts+len(key)
			if err := table.AddAll(rows); err != nil {
				t.Fatal(err)
			}
		}
		table.Build(1)
		in := table.keys
		takes := texts + cap(in.Entries)*int(unsafe.Sizeof(in.Entries[0])) + 8*(cap(in.hashes)+cap(in.index)) +
			4*cap(table.next)
		held := HeldBy[string, bool](n, int64(encoded))
		if f := float64(held) / float64(takes); f < 0.7 || f > 1.5 {
			t.Errorf("texts of %d bytes: %d bytes are held, it says %d", length, takes, held)
		}
	}
}
