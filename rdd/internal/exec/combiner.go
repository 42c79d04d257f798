package exec

import (
	"cmp"
	"context"
	"fmt"

	"github.com/volley-engine/volley/rdd/internal/row"
)

// Combiner defines how the values of a key are combined: Create makes an accumulator of the first value, Add
// adds a value, Merge merges the accumulators of two partitions. Add and Merge may change and return their first
// argument where Create has made it; a value that came from a dataset may be read by others and must not be changed.
type Combiner[V, C any] struct {
	Create func(V) C
	Add    func(C, V) C
	Merge  func(a, b C) C
}

// Keyed is how pairs are encoded, and their keys hashed.
type Keyed[K comparable, V any] struct {
	Row  row.Codec[row.Pair[K, V]]
	Key  row.Codec[K]
	Hash row.Hasher
}

// KeyedOf derives how pairs are encoded; what of them cannot be is an error.
func KeyedOf[K comparable, V any]() (k Keyed[K, V], err error) {
	if k.Key, err = row.KeyCodecOf[K](); err != nil {
		return k, fmt.Errorf("this cannot be a key: %w", err)
	}
	k.Hash = row.HasherOf(k.Key)
	if _, err = row.CodecOf[V](); err != nil {
		return k, fmt.Errorf("the value cannot be encoded: %w", err)
	}
	if k.Row, err = row.PairCodecOf[K, V](k.Key); err != nil {
		return k, fmt.Errorf("the rows cannot be encoded: %w", err)
	}
	return k, nil
}

// CombineSorted combines the rows of each key as a sorter yields them.
func CombineSorted[K comparable, C any](ctx context.Context, s *Sorter[row.Pair[K, C]], merge func(a, b C) C,
	yield func([]row.Pair[K, C]) error) error {
	out := row.NewBatcher(yield)
	var made []row.Pair[K, C] // of the key in hand, if there is one
	err := eachGroup(ctx, s, func(row *row.Pair[K, C], fresh bool) (err error) {
		switch {
		case !fresh:
			made[0].Value = merge(made[0].Value, row.Value)
			return nil
		case len(made) > 0:
			err = out.Add(made[0])
		}
		made = append(made[:0], *row)
		return err
	})
	if err == nil && len(made) > 0 {
		err = out.Add(made[0])
	}
	return cmp.Or(err, out.Flush())
}

// YieldByHash yields the entries of a table in the order of their hashes, equal ones in the order of their
// encodings; expect is called with all of them first.
func YieldByHash[K comparable, C any](t *Table[K, C], expect func([]Ranked), yield func([]row.Pair[K, C]) error) error {
	order := t.byHash()
	expect(order)
	out := row.NewBatcher(yield)
	for _, at := range order {
		if err := out.Add(t.Entries[at.row]); err != nil {
			return err
		}
	}
	return out.Flush()
}
