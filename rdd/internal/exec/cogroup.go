package exec

import (
	"cmp"
	"context"

	"github.com/volley-engine/volley/rdd/internal/row"
)

// CoGrouped are the values that a key has in two datasets.
type CoGrouped[V, W any] struct {
	Left  []V
	Right []W
}

// Either is a row of one of two datasets.
type Either[V, W any] struct {
	IsRight bool
	Left    V
	Right   W
}

// EachCoGrouped yields the keys of two datasets whose rows a grouper has sorted together, each with its
// values of both.
func EachCoGrouped[K comparable, V, W any](ctx context.Context, g *Grouper[K, Either[V, W]],
	yield func(row.Pair[K, CoGrouped[V, W]]) error) error {
	var p row.Pair[K, CoGrouped[V, W]]
	end := func() error {
		if len(p.Value.Left)+len(p.Value.Right) == 0 {
			return nil
		}
		return yield(p)
	}
	sizes := newKeySize(g.op, g.Keyed, g.packs)
	err := eachGroup(ctx, g.Spilled, func(r *row.Pair[K, Either[V, W]], fresh bool) (err error) {
		if fresh {
			err = end()
			p = row.Pair[K, CoGrouped[V, W]]{Key: r.Key}
		}
		if r.Value.IsRight {
			p.Value.Right = append(p.Value.Right, r.Value.Right)
		} else {
			p.Value.Left = append(p.Value.Left, r.Value.Left)
		}
		return cmp.Or(err, sizes.take(r, fresh))
	})
	if err != nil {
		return err
	}
	return end()
}

// MergeTables yields the keys of two tables in the order of their hashes, each with its values of both;
// expect is called with all of them first.
func MergeTables[K comparable, V, W any](l *Table[K, []V], r *Table[K, []W], expect func([]Ranked),
	yield func(row.Pair[K, CoGrouped[V, W]]) error) error {
	all := newTable[K, CoGrouped[V, W]](l.codec, l.hash, len(l.Entries)+len(r.Entries))
	for i, h := range l.hashed() {
		at, _ := all.insert(&l.Entries[i].Key, h)
		all.Entries[at].Value.Left = l.Entries[i].Value
	}
	for i, h := range r.hashed() {
		at, _ := all.insert(&r.Entries[i].Key, h)
		all.Entries[at].Value.Right = r.Entries[i].Value
	}
	order := all.byHash()
	expect(order)
	for _, at := range order {
		if err := yield(all.Entries[at.row]); err != nil {
			return err
		}
	}
	return nil
}
