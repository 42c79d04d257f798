package rdd

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage"
)

// mostPartitions bounds what a shuffle may be asked to make.
const mostPartitions = 1 << 14

// keyed writes pairs for a shuffle by key: the key's hash, which scatters keys
// over partitions and orders them within, and the key itself.
type keyed[K comparable, V any] struct {
	key   codec[K]
	value codec[V]
}

func keyedOf[K comparable, V any](g *Graph, op string) keyed[K, V] {
	key, err := codecOf[K]()
	if err != nil {
		g.fail("%s: the key cannot be encoded: %v", op, err)
	}
	value, err := codecOf[V]()
	if err != nil {
		g.fail("%s: the value cannot be encoded: %v", op, err)
	}
	return keyed[K, V]{key, value}
}

// hashed writes the hash of a key and the key.
func (c keyed[K, V]) hashed(out []byte, key *K) (_ []byte, hash uint64) {
	at := len(out)
	out = append(out, 0, 0, 0, 0, 0, 0, 0, 0)
	out = c.key.append(out, key)
	hash = xxhash.Sum64(out[at+8:])
	binary.BigEndian.PutUint64(out[at:], hash)
	return out, hash
}

// partition gives each partition an equal range of hashes, so that within it
// the order of keys is that of their hashes.
func partition(hash uint64, n int) int { return int((hash >> 32 * uint64(n)) >> 32) }

func (c keyed[K, V]) parseKey(raw []byte) (key K, err error) {
	if len(raw) < 8 {
		return key, fault.Newf(fault.Corrupt, "read", "a shuffled key", "it is %d bytes", len(raw))
	}
	_, err = c.key.parse(raw[8:], &key)
	return key, err
}

// shuffledDataset is a dataset whose partitions are read from a shuffle.
func shuffledDataset[T any](g *Graph, id, partitions int, each func(ctx context.Context, part int, yield func(T) error) error) Dataset[T] {
	return Dataset[T]{g: g, id: id, parts: func() int { return partitions }, each: each}
}

// partitionsFor is the number of partitions of a shuffle's result.
func partitionsFor(asked int) int {
	if asked > 0 {
		return min(asked, mostPartitions)
	}
	return defaultPartitions
}

// defaultPartitions is how many partitions a shuffle makes unless told. It
// depends on nothing, so that every node has the same plan.
const defaultPartitions = 16

// Partitions sets the number of partitions of a shuffle's result; 16 without
// it.
func Partitions(n int) ShuffleOption { return func(o *shuffleOptions) { o.partitions = n } }

// ShuffleOption is an option of an operation that moves rows.
type ShuffleOption func(*shuffleOptions)

type shuffleOptions struct{ partitions int }

func shuffleOptionsOf(options []ShuffleOption) shuffleOptions {
	var o shuffleOptions
	for _, set := range options {
		set(&o)
	}
	o.partitions = partitionsFor(o.partitions)
	return o
}

// Combiner says how the values of a key become one: Create begins with the
// first value, Add takes another in, Merge joins what two partitions came to.
type Combiner[V, C any] struct {
	Create func(V) C
	Add    func(C, V) C
	Merge  func(a, b C) C
}

// combineBatch is how many keys are combined in memory before they are handed
// on: beyond, a map of them costs more than it saves.
const combineBatch = 1 << 17

// CombineByKey brings the values of each key together. They are combined where
// they are first, so that what moves is one value a key and partition, and
// again where they arrive. Keys come in no order of theirs, but always in the
// same one.
func CombineByKey[K comparable, V, C any](ds Dataset[Pair[K, V]], by Combiner[V, C], options ...ShuffleOption) Dataset[Pair[K, C]] {
	o, c := shuffleOptionsOf(options), keyedOf[K, C](ds.g, "combine by key")
	id := ds.g.shuffle("combine-by-key", typeName[Pair[K, C]](), fmt.Sprint(o.partitions), ds.id, &shuffleDecl{maps: ds.parts, partitions: o.partitions,
		write: func(ctx context.Context, part int, _ []byte, out *storage.Sorter) error {
			return writeCombined(ctx, ds, part, by, c, out, o.partitions)
		}})
	return shuffledDataset(ds.g, id, o.partitions, func(ctx context.Context, part int, yield func(Pair[K, C]) error) error {
		return readGroups(ctx, id, part, c, func(key K, g *groups[K, C]) error {
			var acc C
			n := 0
			err := g.each(func(v C) error {
				if n++; n == 1 {
					acc = v
				} else {
					acc = by.Merge(acc, v)
				}
				return nil
			})
			if err != nil {
				return err
			}
			return yield(Pair[K, C]{key, acc})
		})
	})
}

// writeCombined is the map side: it combines in a map, and hands that on when
// it is full, in the order in which its keys came.
func writeCombined[K comparable, V, C any](ctx context.Context, ds Dataset[Pair[K, V]], part int, by Combiner[V, C], c keyed[K, C], out *storage.Sorter, parts int) error {
	at := make(map[K]int, 1024)
	var list []Pair[K, C]
	var key, value []byte
	flush := func() error {
		for i := range list {
			var hash uint64
			key, hash = c.hashed(key[:0], &list[i].Key)
			value = c.value.append(value[:0], &list[i].Value)
			if err := out.Add(partition(hash, parts), key, value); err != nil {
				return err
			}
		}
		clear(at)
		list = list[:0]
		return nil
	}
	err := ds.each(ctx, part, func(p Pair[K, V]) error {
		if i, ok := at[p.Key]; ok {
			list[i].Value = by.Add(list[i].Value, p.Value)
			return nil
		}
		if len(list) >= combineBatch {
			if err := flush(); err != nil {
				return err
			}
		}
		at[p.Key] = len(list)
		list = append(list, Pair[K, C]{p.Key, by.Create(p.Value)})
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// groups reads a partition of a shuffle key by key.
type groups[K comparable, V any] struct {
	r    *shuffleReader
	c    keyed[K, V]
	raw  []byte // the present key
	more bool   // records of the present key are left
	any  bool   // the reader stands on a record
}

func openGroups[K comparable, V any](ctx context.Context, id, part int, c keyed[K, V]) (*groups[K, V], error) {
	r, err := openShuffle(ctx, id, part)
	if err != nil {
		return nil, err
	}
	return &groups[K, V]{r: r, c: c, any: r.Next()}, nil
}

// next moves to the next key; false at the end, or at an error.
func (g *groups[K, V]) next() bool {
	for g.more {
		g.advance()
	}
	if !g.any {
		return false
	}
	g.raw, g.more = append(g.raw[:0], g.r.Key()...), true
	return true
}

func (g *groups[K, V]) advance() {
	g.any = g.r.Next()
	g.more = g.any && string(g.r.Key()) == string(g.raw)
}

func (g *groups[K, V]) key() (K, error) { return g.c.parseKey(g.raw) }

// each calls yield with the values of the present key.
func (g *groups[K, V]) each(yield func(V) error) error {
	for ; g.more; g.advance() {
		var v V
		if _, err := g.c.value.parse(g.r.Value(), &v); err != nil {
			return fault.New(fault.Corrupt, "read", "a shuffled value", err)
		}
		if err := yield(v); err != nil {
			return err
		}
	}
	return g.r.Err()
}

// all are the values of the present key.
func (g *groups[K, V]) all() (out []V, err error) {
	err = g.each(func(v V) error { out = append(out, v); return nil })
	return out, err
}

// readGroups calls group for each key of a partition.
func readGroups[K comparable, V any](ctx context.Context, id, part int, c keyed[K, V], group func(key K, g *groups[K, V]) error) error {
	g, err := openGroups(ctx, id, part, c)
	if err != nil {
		return err
	}
	defer g.r.Close()
	for n := 0; g.next(); n++ {
		k, err := g.key()
		if err == nil {
			err = group(k, g)
		}
		if err == nil && n%1024 == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	return g.r.Err()
}
