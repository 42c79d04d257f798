package tables

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables/consistency"
)

// ends are the two ends of a connection: a job's process, and the only member.
func ends(m Model) (leader, member *run) {
	begin := func(self int) *run {
		p := tally(m)
		p.counts.Reshape(gangRows, gangColumns)
		p.sums.Reshape(gangRows, gangColumns)
		r, err := p.newRun(castOf(gangWorkers, 1, 2), self, 0, 9, 3)
		if err != nil {
			panic(err)
		}
		r.out = newOutside(r, func(int, []byte) error { return nil })
		for _, t := range r.tables {
			t.start()
		}
		return r
	}
	return begin(rdd.Leader), begin(0)
}

// TestMessagesAreReadAsTheyWereWritten writes messages of all kinds, and reads them from pieces.
func TestMessagesAreReadAsTheyWereWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	_, member := ends(BSP())
	of := member.tables[1].(*tableRun[float64])
	row := func() Row[float64] {
		switch rng.IntN(3) {
		case 0:
			return Row[float64]{}
		case 1:
			return Row[float64]{[]int32{0, 2, 5}, []float64{1, rng.NormFloat64(), -3}}
		}
		return Row[float64]{nil, []float64{1, 2, 3, rng.NormFloat64(), 5, 6}}
	}
	shared := []consistency.Applied{{Life: 1, Number: 4}, {Life: 2, Number: 0}}
	for range 200 {
		batch := consistency.Batch[Row[float64]]{Client: 0, Worker: 3, Life: 1, Clock: 7, Number: rng.IntN(9),
			Ends: rng.IntN(2) == 0, Updates: []consistency.Update[Row[float64]]{}}
		for r := range rng.IntN(4) {
			batch.Updates = append(batch.Updates,
				consistency.Update[Row[float64]]{Row: consistency.Row(r * 3), Delta: row()})
		}
		all := []any{
			batch,
			consistency.Read{Row: 4, Age: 3, Watch: 9},
			consistency.Drop{Row: 40, Watch: 1},
			consistency.Seen{Row: 1, Watch: 2, Version: 1 << 40},
			consistency.Value[Row[float64]]{Row: 5, Epoch: 1, Watch: 7, Version: 8, Age: 2, Value: row(),
				Applied: shared},
			consistency.Value[Row[float64]]{Row: 6, Epoch: 1, Watch: 7, Version: 8, Age: 2, Value: row(),
				Applied: shared},
			consistency.Taken{Epoch: 1, Worker: 5, Applied: shared[0]},
			consistency.Synced{Epoch: 1, Worker: 5, Applied: shared[1]},
			consistency.Have{Epoch: 1, Worker: 2, Life: 1, Clock: 9},
			consistency.Saved{Epoch: 1, Age: 6},
			consistency.Passed{Epoch: 1, Age: 7},
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		w := &writer{}
		for _, m := range all {
			of.write(w, 0, m)
		}
		var got []any
		r := &reader{}
		for raw := w.buf; len(raw) > 0; {
			n := 1 + rng.IntN(len(raw))
			if err := r.feed(raw[:n], func(k kind, _, _ int) {
				switch {
				case k <= completeForShard:
					got = append(got, of.forShard(r, k))
				case k <= completeForClient:
					got = append(got, of.forClient(r, k))
				default:
					got = append(got, of.forBookkeeper(r, k))
				}
			}); err != nil {
				t.Fatal(err)
			}
			raw = raw[n:]
		}
		if !reflect.DeepEqual(got, all) {
			t.Fatalf("%+v\nis read as\n%+v", all, got)
		}
	}
}

// FuzzMessages has both ends read anything: it is taken or refused, by an error.
func FuzzMessages(f *testing.F) {
	_, member := ends(BSP())
	of := member.tables[0].(*tableRun[int32])
	w := &writer{}
	of.write(w, 0, consistency.Batch[Row[int32]]{Worker: 1, Life: 1, Number: 1,
		Updates: []consistency.Update[Row[int32]]{{Row: 3, Delta: Row[int32]{[]int32{1}, []int32{5}}}}})
	of.write(w, 0, consistency.Read{Row: 4, Age: 3, Watch: 9})
	of.write(w, 0, consistency.Have{Epoch: 1, Worker: 2, Life: 1, Clock: 9})
	of.writeComplete(w, completeForClient, 0, consistency.Complete{Age: 1})
	of.writeSnapshot(w, aSnapshot, 0, of.snapshot(3))
	f.Add(w.buf)
	w = &writer{}
	w.begin(aState, 0, 2)
	w.ints(3, 4, 5)
	w.bytes([]byte("state"))
	w.end()
	f.Add(w.buf)
	f.Fuzz(func(t *testing.T, raw []byte) {
		leader, member := ends(BSP())
		_ = leader.out.take(0, raw)
		_ = member.out.take(rdd.Leader, raw)
	})
}
