package exec

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/volley-engine/volley/rdd/internal/row"
)

// TestTablesFindIntegers, whichever they are, in whatever order they come: entries lie
// in the order in which keys came first.
func TestTablesFindIntegers(t *testing.T) {
	const n = 60_000
	integersAreFound(t, "ascending", func(i int, _ *rand.Rand) int64 { return int64(i) / 2 })
	integersAreFound(t, "descending", func(i int, _ *rand.Rand) int64 { return int64(-3 * i) })
	integersAreFound(t, "close", func(_ int, rng *rand.Rand) int32 { return rng.Int32N(n) - n/2 })
	integersAreFound(t, "close above the middle",
		func(_ int, rng *rand.Rand) uint64 { return 1<<63 - 50 + rng.Uint64N(n) })
	integersAreFound(t, "at both ends", func(i int, rng *rand.Rand) int64 {
		if i%1000 == 999 {
			return math.MinInt64 + rng.Int64N(9)
		}
		return math.MaxInt64 - rng.Int64N(n)
	})
	integersAreFound(t, "ever farther apart",
		func(i int, rng *rand.Rand) uint32 { return rng.Uint32N(uint32(i)*uint32(i)/1000 + 9) })
	integersAreFound(t, "far apart", func(_ int, rng *rand.Rand) uint { return uint(rng.Uint64N(n)) << 45 })
	integersAreFound(t, "close, then not, then close", func(i int, rng *rand.Rand) int {
		if i/20_000 == 1 {
			return rng.Int()
		}
		return rng.IntN(9000)
	})
}

func integersAreFound[K comparable](t *testing.T, name string, key func(i int, rng *rand.Rand) K) {
	codec, err := row.CodecOf[K]()
	if err != nil {
		t.Fatal(err)
	}
	table := newTable[K, int](codec, row.HasherOf(codec), 0)
	for round := range 2 { // the second time with the memory of the first, and other keys
		rng := rand.New(rand.NewPCG(3, uint64(round)))
		want, at, numbered := map[K]int{}, map[K]int{}, false
		for from := 0; from < 60_000; from += 300 {
			rows := make([]row.Pair[K, int], 300)
			for i := range rows {
				rows[i] = row.Pair[K, int]{Key: key(from+i, rng), Value: from + i}
				if _, there := at[rows[i].Key]; !there {
					at[rows[i].Key] = len(at)
				}
				want[rows[i].Key] = want[rows[i].Key]*7 + rows[i].Value
			}
			CombineInto(table, rows, func(v int) int { return v }, func(c, v int) int { return c*7 + v })
			numbered = numbered || table.places != nil
		}
		if len(table.Entries) != len(want) {
			t.Fatalf("%s: %d keys, want %d", name, len(table.Entries), len(want))
		}
		for i, e := range table.Entries {
			if at[e.Key] != i || e.Value != want[e.Key] {
				t.Fatalf("%s: entry %d is key %v with %d, want it at %d with %d", name, i, e.Key, e.Value, at[e.Key],
					want[e.Key])
			}
			if h := table.hashed()[i]; h != table.hashOne(&e.Key) {
				t.Fatalf("%s: the hash of %v is %x", name, e.Key, h)
			}
		}
		if sparse := name == "far apart" || name == "at both ends"; round == 0 && numbered == sparse {
			t.Errorf("%s: an index by number: %v", name, numbered)
		}
		table.Clear()
	}
}
