package exec

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volley-engine/volley/rdd/internal/row"
)

// drained adds what an aggregation hands on to rows that it has handed on before.
func drained(t *testing.T, d *PartitionedAggregation[int64, int32, uint64],
	c Combiner[int32, uint64], got map[int64]uint64) {
	t.Helper()
	d.flushAll(c)
	for _, table := range d.inUse() {
		for _, e := range table.Entries {
			if _, twice := got[e.Key]; twice {
				t.Fatalf("key %d is there twice", e.Key)
			}
			got[e.Key] = e.Value
		}
	}
	d.empty()
}

// TestRowsThatAreDealtOutAreCombinedInTurn: the values of a key come in their order,
// whether rows are dealt out or not, and tables are handed on once they are full.
func TestRowsThatAreDealtOutAreCombinedInTurn(t *testing.T) {
	key, err := row.CodecOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	k := Keyed[int64, uint64]{Key: key, Hash: row.HasherOf(key)}
	inTurn := Combiner[int32, uint64]{
		Create: func(v int32) uint64 { return uint64(v) },
		Add:    func(c uint64, v int32) uint64 { return c*31 + uint64(v) }, // goes by the order
		Merge:  func(a, b uint64) uint64 { return a*31 + b },
	}
	for _, c := range []struct {
		keys, rows, most int
		apart            int64 // a key from the next one
		fixed, dealt     bool
	}{{400_000, 800_000, 64 << 20, 1e9, true, true}, {400_000, 800_000, 64 << 20, 1e9, false, false},
		{1000, 300_000, 64 << 20, 1, true, false},
		{500_000, 2_000_000, 16 << 20, 1e9, true, true}, {300_000, 400_000, 1 << 20, 1e9, true, false},
		{400_000, 800_000, 64 << 20, 3, true, false}, {500_000, 2_000_000, 16 << 20, 1, true, false}} {
		d := newPartitionedAggregation[int64, int32](k)
		var flushedAt [2][]int
		for round := range 2 { // the second time with the memory of the first
			d.begin(c.most, 64<<20, c.fixed)
			rng := rand.New(rand.NewPCG(7, 1))
			want, got, flushes, dealt := map[int64]uint64{}, map[int64]uint64{}, 0, false
			take := func() {
				flushes++
				dealt = dealt || d.sharded
				clear(want)
				clear(got)
			}
			check := func() {
				drained(t, d, inTurn, got)
				if !maps.Equal(got, want) {
					t.Fatalf("%d keys, want %d, or others", len(got), len(want))
				}
				take()
			}
			for at := 0; at < c.rows; at += 700 {
				rows := make([]row.Pair[int64, int32], min(700, c.rows-at))
				for i := range rows {
					rows[i] = row.Pair[int64, int32]{Key: c.apart * int64(rng.IntN(c.keys)-c.keys/2),
						Value: int32(rng.IntN(1000))}
					if c, there := want[rows[i].Key]; there {
						want[rows[i].Key] = inTurn.Add(c, rows[i].Value)
					} else {
						want[rows[i].Key] = inTurn.Create(rows[i].Value)
					}
				}
				if d.add(rows, inTurn); d.full() {
					flushedAt[round] = append(flushedAt[round], at)
					check()
				}
			}
			check()
			if dealt != c.dealt || c.most < 32<<20 && flushes < 2 {
				t.Errorf("%+v: dealt out %v, tables were handed on %d times", c, dealt, flushes)
			}
			d.clear()
		}
		if !slices.Equal(flushedAt[0], flushedAt[1]) {
			t.Errorf("%+v: tables were handed on after rows %v, the second time after %v", c, flushedAt[0],
				flushedAt[1])
		}
	}
}
