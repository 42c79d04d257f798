package rdd

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/storage"
)

// sampleKeys is how many keys of each partition of a sort's input are looked
// at to find where its result is to be cut.
const sampleKeys = 400

// SortBy sorts all rows by the key that f makes of them: the partitions of the
// result follow one another. Rows of equal keys keep the order of the input. All
// rows move, and the input is computed twice: first for a sample of its keys.
func SortBy[T any, K Ordered](ds Dataset[T], f func(T) K, options ...SortOption) Dataset[T] {
	o := sortOptionsOf(options)
	parts := partitionsFor(o.partitions)
	row, err := codecOf[T]()
	if err != nil {
		ds.g.fail("sort by: the rows cannot be encoded: %v", err)
	}
	key := keyWriter(f, o.descending)
	sample := sampleNode(ds, key)
	id := ds.g.shuffle("sort-by", typeName[T](), o.String(), ds.id, &shuffleDecl{maps: ds.parts, partitions: parts,
		plan: func(ctx context.Context, s *Session) ([]byte, error) {
			return planBounds(ctx, s, sample, ds.parts(), parts)
		},
		write: func(ctx context.Context, part int, args []byte, out *storage.Sorter) error {
			var bounds [][]byte
			if err := cborReading.Unmarshal(args, &bounds); err != nil {
				return fault.New(fault.Corrupt, "read", "the bounds of a sort", err)
			}
			var k, v []byte
			return ds.each(ctx, part, func(r T) error {
				k, v = key(k[:0], r), row.append(v[:0], &r)
				to := sort.Search(len(bounds), func(i int) bool { return bytes.Compare(bounds[i], k) > 0 })
				return out.Add(to, k, v)
			})
		}})
	return shuffledDataset(ds.g, id, parts, func(ctx context.Context, part int, yield func(T) error) error {
		return readRows(ctx, id, part, row, yield)
	})
}

// SortByKey sorts pairs by key.
func SortByKey[K interface {
	comparable
	Ordered
}, V any](ds Dataset[Pair[K, V]], options ...SortOption) Dataset[Pair[K, V]] {
	return SortBy(ds, func(p Pair[K, V]) K { return p.Key }, options...)
}

// readRows reads the rows of a partition of a shuffle.
func readRows[T any](ctx context.Context, id, part int, row codec[T], yield func(T) error) error {
	r, err := openShuffle(ctx, id, part)
	if err != nil {
		return err
	}
	defer r.Close()
	for n := 0; r.Next(); n++ {
		var v T
		if _, err := row.parse(r.Value(), &v); err != nil {
			return fault.New(fault.Corrupt, "read", "a shuffled row", err)
		}
		if err := yield(v); err != nil {
			return err
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return r.Err()
}

// sampleNode adds a task that looks at keys of a partition, evenly spread.
func sampleNode[T any](ds Dataset[T], key func([]byte, T) []byte) int {
	task := func(ctx context.Context, part int, _ []byte, _ runner.Packs) ([]byte, error) {
		keys, every, n := [][]byte{}, 1, 0
		err := ds.each(ctx, part, func(r T) error {
			if n%every == 0 {
				keys = append(keys, key(nil, r))
			}
			if n++; len(keys) == 2*sampleKeys { // every second one of them, and so on from here
				for i := range sampleKeys {
					keys[i] = keys[2*i]
				}
				keys, every = keys[:sampleKeys], 2*every
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return cborMode.Marshal(sampled{keys, n})
	}
	return ds.g.add(node{kind: "sample-keys", typ: typeName[T](), inputs: []int{ds.id}, user: true, task: task})
}

// sampled are keys of a partition, and how many rows it has.
type sampled struct {
	Keys [][]byte
	Rows int
}

// planBounds finds keys that cut a sort's result into partitions of about the
// same number of rows.
func planBounds(ctx context.Context, s *Session, sample, maps, parts int) ([]byte, error) {
	raws, err := callAll(ctx, s, sample, maps)
	if err != nil {
		return nil, err
	}
	type weighted struct {
		key    []byte
		weight float64
	}
	var all []weighted
	total := 0.0
	for _, raw := range raws {
		var p sampled
		if err := cborReading.Unmarshal(raw, &p); err != nil {
			return nil, fault.New(fault.Corrupt, "read", "a sample of keys", err)
		}
		for _, k := range p.Keys {
			all = append(all, weighted{k, float64(p.Rows) / float64(len(p.Keys))})
		}
		total += float64(p.Rows)
	}
	slices.SortStableFunc(all, func(a, b weighted) int { return bytes.Compare(a.key, b.key) })
	bounds := [][]byte{}
	seen := 0.0
	for _, w := range all {
		if seen += w.weight; seen >= total*float64(len(bounds)+1)/float64(parts) && len(bounds) < parts-1 {
			if n := len(bounds); n == 0 || !bytes.Equal(bounds[n-1], w.key) {
				bounds = append(bounds, w.key)
			}
		}
	}
	return cborMode.Marshal(bounds)
}

// Repartition deals the rows out to a number of partitions, which come to have
// as many rows each. All rows move; those of one partition keep their order.
func Repartition[T any](ds Dataset[T], n int) Dataset[T] {
	parts := partitionsFor(n)
	row, err := codecOf[T]()
	if err != nil {
		ds.g.fail("repartition: the rows cannot be encoded: %v", err)
	}
	id := ds.g.shuffle("repartition", typeName[T](), fmt.Sprint(parts), ds.id, &shuffleDecl{maps: ds.parts, partitions: parts,
		write: func(ctx context.Context, part int, _ []byte, out *storage.Sorter) error {
			var v []byte
			to := part % parts
			return ds.each(ctx, part, func(r T) error {
				v, to = row.append(v[:0], &r), (to+1)%parts
				return out.Add(to, nil, v)
			})
		}})
	return shuffledDataset(ds.g, id, parts, func(ctx context.Context, part int, yield func(T) error) error {
		return readRows(ctx, id, part, row, yield)
	})
}
