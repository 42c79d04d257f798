package tables

import (
	"testing"
	"time"

	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables/consistency"
)

// only returns the access of the only worker to a table.
func only(b *testing.B, t *Table[float64]) *Access[float64] {
	b.Helper()
	r := newRun(castOf(1, 1, 1), everyone, 0, 1<<30, 1<<30)
	r.workers[0].pacing = &pacing{}
	of := newTableRun(r, 0, t)
	of.start()
	return of.access(r.workers[0]).(*Access[float64])
}

func benchTable(m Model) *Table[float64] {
	return New[float64](&rdd.Graph{}, "w", Dense(4096, 16), m)
}

// TestTheBenchmarksRun: each has a worker that reads, and adds.
func TestTheBenchmarksRun(t *testing.T) {
	t.Parallel()
	for name, bench := range map[string]func(*testing.B){"row": BenchmarkRow, "inc": BenchmarkInc,
		"fresh": BenchmarkFresh} {
		if r := testing.Benchmark(bench); r.N == 0 {
			t.Errorf("%s does not run", name)
		}
	}
}

// BenchmarkRow reads rows that are in the worker's cache.
func BenchmarkRow(b *testing.B) {
	s := only(b, benchTable(SSP(2)))
	for row := range 4096 {
		s.Row(row)
	}
	sum := 0.0
	for i := 0; b.Loop(); i++ {
		sum += s.Row(i & 4095).Values[0]
	}
}

// BenchmarkInc adds to cells of rows that are in the worker's cache.
func BenchmarkInc(b *testing.B) {
	s := only(b, benchTable(SSP(2)))
	for row := range 4096 {
		s.Row(row)
	}
	for i := 0; b.Loop(); i++ {
		s.Inc(i&4095, i&15, 1)
	}
}

// BenchmarkFresh is the consistency check alone.
func BenchmarkFresh(b *testing.B) {
	s := only(b, benchTable(SSP(2)))
	s.Row(7)
	n := 0
	for b.Loop() {
		if s.seat.Fresh(7) != nil {
			n++
		}
	}
}

// BenchmarkShardApplies has a shard take and fold dense updates of 8 workers to 512 rows of 512 cells.
func BenchmarkShardApplies(b *testing.B) {
	const workers, rows, columns = 8, 512, 512
	o := consistency.Options{Model: SSP(1), Workers: workers, Shards: 1, Again: time.Second, Patience: patience}
	s := consistency.NewShard(consistency.Beginning{Epoch: 1}, o, newSums[float64](columns, false), nil)
	var updates []consistency.Update[Row[float64]]
	for row := range rows {
		updates = append(updates, consistency.Update[Row[float64]]{Row: consistency.Row(row),
			Delta: Row[float64]{Values: make([]float64, columns)}})
	}
	b.SetBytes(workers * rows * columns * 8)
	for clock := consistency.Clock(0); b.Loop(); clock++ {
		for w := range consistency.Worker(workers) {
			s.Step(consistency.Batch[Row[float64]]{Worker: w, Life: 1, Clock: clock, Number: int(clock) + 1, Ends: true,
				Updates: updates}, 0)
		}
		s.Step(consistency.Complete{Age: clock + 1}, 0)
	}
}
