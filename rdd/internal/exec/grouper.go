package exec

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"unsafe"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Grouper brings the values of each key of a partition together: in a hash table while they fit into memory,
// and else by sorting.
type Grouper[K comparable, V any] struct {
	op      string
	Keyed   Keyed[K, V]
	packs   runner.TaskContext
	Table   *Table[K, []V]
	Most    int
	values  int // bytes of values in the table, about
	Spilled *Sorter[row.Pair[K, V]]
}

// NewGrouper returns a grouper that may use a share-th of the task's memory; op is for errors.
func NewGrouper[K comparable, V any](op string, c Keyed[K, V], packs runner.TaskContext, share int) *Grouper[K, V] {
	return &Grouper[K, V]{op: op, Keyed: c, packs: packs, Table: newTable[K, []V](c.Key, c.Hash, 0),
		Most: packs.Memory() / share}
}

// SortIfLarge begins with sorting where the given bytes of rows would not fit into memory.
func (g *Grouper[K, V]) SortIfLarge(bytes int64) {
	var v V
	if heavy := bytes * int64(1+unsafe.Sizeof(v)/8); heavy/2 > int64(g.Most) {
		g.Spill()
	}
}

// AddAll takes in rows.
func (g *Grouper[K, V]) AddAll(rows []row.Pair[K, V]) error {
	if g.Spilled != nil {
		return g.Spilled.AddAll(rows)
	}
	CombineInto(g.Table, rows, func(v V) []V { return []V{v} }, func(all []V, v V) []V { return append(all, v) })
	var v V
	if g.values += len(rows) * int(unsafe.Sizeof(v)+16); g.Table.Content()+g.values > g.Most {
		return g.toSorter()
	}
	return nil
}

// toSorter moves the entries of the table to a sorter, and goes on with that.
func (g *Grouper[K, V]) toSorter() error {
	entries := g.Table.Entries
	g.Spill()
	for _, e := range entries {
		for _, v := range e.Value {
			if err := g.Spilled.Add(&row.Pair[K, V]{Key: e.Key, Value: v}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Spill goes on with a sorter, without the table.
func (g *Grouper[K, V]) Spill() {
	g.Spilled, g.Table = NewHashSorter(g.Keyed, g.packs), nil
}

// Close removes what was spilled.
func (g *Grouper[K, V]) Close() { g.Spilled.Close() }

// Each yields the keys in the order of their hashes, each with its values in the order in which they came. If
// they are in memory, expect is called with all of them first.
func (g *Grouper[K, V]) Each(ctx context.Context, expect func([]Ranked), yield func(key K, values []V) error) error {
	if g.Spilled != nil {
		return g.eachSorted(ctx, yield)
	}
	order := g.Table.byHash()
	expect(order)
	for _, at := range order {
		e := &g.Table.Entries[at.row]
		if err := yield(e.Key, e.Value); err != nil {
			return err
		}
		e.Value = nil
	}
	return nil
}

// eachSorted does what Each does, from the sorter.
func (g *Grouper[K, V]) eachSorted(ctx context.Context, yield func(key K, values []V) error) error {
	var key K
	var values []V
	end := func() error {
		if len(values) == 0 {
			return nil
		}
		list := values
		if len(values) <= clonedMost {
			list = slices.Clone(values)
			clear(values)
			values = values[:0]
		} else {
			values = nil
		}
		return yield(key, list)
	}
	sizes := newKeySize(g.op, g.Keyed, g.packs)
	err := eachGroup(ctx, g.Spilled, func(row *row.Pair[K, V], fresh bool) (err error) {
		if fresh {
			err = end()
			key = row.Key
		}
		values = append(values, row.Value)
		return cmp.Or(err, sizes.take(row, fresh))
	})
	if err != nil {
		return err
	}
	return end()
}

// clonedMost is up to how many values a list is yielded as a copy, so that the memory it was gathered in
// serves the next one.
const clonedMost = 1 << 12

// keySize counts the bytes that the values of a key take: more than a task may hold are an error.
type keySize[K comparable, V any] struct {
	op    string
	row   row.Codec[row.Pair[K, V]]
	most  int // 0 is no limit
	bytes int // of the key in hand
	raw   []byte
}

func newKeySize[K comparable, V any](op string, c Keyed[K, V], packs runner.TaskContext) *keySize[K, V] {
	return &keySize[K, V]{op: op, row: c.Row, most: packs.Held()}
}

// take counts one value more.
func (w *keySize[K, V]) take(row *row.Pair[K, V], fresh bool) error {
	if w.most == 0 {
		return nil
	}
	if fresh {
		w.bytes = 0
	}
	w.bytes += int(unsafe.Sizeof(row.Value))
	if w.row.Flat == 0 {
		w.raw = w.row.Append(w.raw[:0], row)
		w.bytes += len(w.raw)
	}
	if w.bytes <= w.most {
		return nil
	}
	return fault.Newf(fault.NoResources, w.op, "key "+shortKey(row.Key),
		"its values alone take more than the %d MiB that a task may hold", w.most>>20).
		WithHint("raise --memory, or combine them: ReduceByKey and AggregateByKey hold no lists of values")
}

// shortKey returns a key as it is shown in an error.
func shortKey(key any) string {
	const most = 60
	text := []rune(fmt.Sprintf("%v", key))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
