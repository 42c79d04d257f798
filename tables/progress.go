package tables

import (
	"maps"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables/consistency"
)

// progress is what a checkpoint has: tables and workers as they are after a number of clocks. Tables are encoded only
// where it is kept.
type progress struct {
	Clock  int
	Tables [][]byte
	States [][]byte
	tables []tableOf
	of     *moment
	kept   keeping
}

// encoded is a progress as a checkpoint has it.
type encoded struct {
	Clock          int
	Tables, States [][]byte
	Kept           []byte // the program's
}

// MarshalBinary returns it as a checkpoint has it: the same, however many executors there are.
func (p progress) MarshalBinary() ([]byte, error) {
	e := encoded{Clock: p.Clock, Tables: p.Tables, States: p.States}
	if p.kept.encode != nil {
		var err error
		if e.Kept, err = p.kept.encode(); err != nil {
			return nil, err
		}
	}
	for i, t := range p.tables {
		raw, err := t.encode(p.of.snapshots[i])
		if err != nil {
			return nil, err
		}
		e.Tables = append(e.Tables, raw)
	}
	return rdd.Encode(e)
}

// UnmarshalBinary reads what MarshalBinary has written.
func (p *progress) UnmarshalBinary(raw []byte) error {
	var e encoded
	err := rdd.Decode(raw, &e)
	*p = progress{Clock: e.Clock, Tables: e.Tables, States: e.States, kept: p.kept}
	if err == nil && p.kept.decode != nil && len(e.Kept) > 0 { // an earlier program may have kept nothing
		err = p.kept.decode(e.Kept)
	}
	return err
}

// Parameters returns the cells of all tables: what a tick's digest is of.
func (p progress) Parameters() (all [][]float64) {
	for i, t := range p.tables {
		all = append(all, t.cells(p.of.snapshots[i])...)
	}
	return all
}

// restore gives tables what a checkpoint has of them.
func (r *run) restore(at *progress) error {
	if len(at.Tables) != len(r.tables) || len(at.States) != len(r.workers) {
		return fault.Newf(fault.Corrupt, "restore", "parameter tables", "%d tables and %d workers, of %d and %d",
			len(at.Tables), len(at.States), len(r.tables), len(r.workers))
	}
	for i, t := range r.tables {
		if err := t.restore(at.Tables[i]); err != nil {
			return err
		}
	}
	return nil
}

// kept is a table's rows, in their order, as a checkpoint has them.
type kept[T Number] struct {
	Rows []int64
	Of   []Row[T]
}

func keptOf[T Number](snapshots []any) (k kept[T]) {
	values := map[consistency.Row]Row[T]{}
	for _, s := range snapshots {
		maps.Copy(values, s.(*consistency.Snapshot[Row[T]]).Values)
	}
	for _, row := range slices.Sorted(maps.Keys(values)) {
		if v := values[row]; v.Values != nil {
			k.Rows, k.Of = append(k.Rows, int64(row)), append(k.Of, v)
		}
	}
	return k
}

func (of *tableRun[T]) encode(snapshots []any) ([]byte, error) {
	return rdd.Encode(keptOf[T](snapshots))
}

// cells returns the numbers of rows, columns and values.
func (of *tableRun[T]) cells(snapshots []any) (all [][]float64) {
	k := keptOf[T](snapshots)
	rows := make([]float64, len(k.Rows))
	for i, row := range k.Rows {
		rows[i] = float64(row)
		var columns []float64
		for _, c := range k.Of[i].Columns {
			columns = append(columns, float64(c))
		}
		all = append(all, columns, float64s(k.Of[i].Values))
	}
	return append(all, rows)
}

func float64s[T Number](x []T) []float64 {
	if same, ok := any(x).([]float64); ok {
		return same
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// restored returns what a checkpoint has of the table, by shard.
func (of *tableRun[T]) restored() (all []any) {
	for _, s := range of.from {
		all = append(all, s)
	}
	return all
}

// restore takes rows, which may be spread over other shards than before.
func (of *tableRun[T]) restore(raw []byte) error {
	var k kept[T]
	if err := rdd.Decode(raw, &k); err != nil {
		return fault.New(fault.Corrupt, "restore", "the table "+of.table.name, err)
	}
	for s := range of.from {
		of.from[s] = of.snapshot(consistency.Clock(of.run.first))
	}
	for i, row := range k.Rows {
		r := consistency.Row(row)
		of.from[of.o.Shard(r)].Values[r] = k.Of[i]
	}
	return nil
}

// snapshot returns an empty one, of an age, from which workers go on in a first life.
func (of *tableRun[T]) snapshot(age consistency.Clock) *consistency.Snapshot[Row[T]] {
	next := map[consistency.Worker]consistency.Applied{}
	for w := range of.run.workers {
		next[consistency.Worker(w)] = consistency.Applied{Life: 1}
	}
	return &consistency.Snapshot[Row[T]]{Age: age, Next: next, Values: map[consistency.Row]Row[T]{}}
}
