package exec

import (
	"context"
	"reflect"
	"unsafe"

	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/shuffle"
)

// keysLeast is which part of a window its keys take at least when it ends.
const keysLeast = 4

// MapCombine is the map side of a combination by key. It works window by window, each in hash tables; where
// these do not fit into memory, the later rows of the window are sorted by the hashes of their keys. Either
// way the values of a key in a window are combined one by one, in the order in which they came.
type MapCombine[K comparable, V, C any] struct {
	by    Combiner[V, C]
	c     Keyed[K, C]
	raw   Keyed[K, V]
	fits  bool // rows can be sorted
	agg   *PartitionedAggregation[K, V, C]
	packs runner.TaskContext
	out   *Writer[row.Pair[K, C]]
	parts int
	most  int // bytes of rows of a window, after which it is looked at
	left  int // bytes of rows until the next look
	looks int // in this window, the next one counted
	rows  int // of this window
	keys  keyCount
	size  int // of a row
	text  bool
	late  *Sorter[row.Pair[K, V]] // rows for which there is no memory; nil while there is
	sums  []uint64
}

// NewMapCombine returns the map side of a combination into parts partitions, with windows of window bytes of
// rows.
func NewMapCombine[K comparable, V, C any](by Combiner[V, C], c Keyed[K, C], d *PartitionedAggregation[K, V, C],
	packs runner.TaskContext, parts, window int) *MapCombine[K, V, C] {
	w := &MapCombine[K, V, C]{by: by, c: c, agg: d, packs: packs, out: NewWriter(packs, c.Row, parts).unordered(),
		parts: parts, most: window}
	w.raw, w.fits = d.raw()
	w.size = max(1, int(unsafe.Sizeof(row.Pair[K, V]{})))
	w.text = reflect.TypeFor[K]().Kind() == reflect.String
	w.fresh()
	return w
}

// Finish ends the last window, and returns the map output.
func (w *MapCombine[K, V, C]) Finish(ctx context.Context) (*shuffle.Output, error) {
	if err := w.end(ctx); err != nil {
		return nil, err
	}
	return w.out.Finish()
}

// fresh begins a window.
func (w *MapCombine[K, V, C]) fresh() {
	w.left, w.looks, w.rows = w.most, 1, 0
	w.keys.clear()
}

// Add takes in a batch, and ends the window where it is full.
func (w *MapCombine[K, V, C]) Add(ctx context.Context, rows []row.Pair[K, V]) error {
	for len(rows) > 0 {
		n := w.room(rows)
		if w.late != nil {
			if err := w.sortLate(rows[:n]); err != nil {
				return err
			}
		} else if w.agg.add(rows[:n], w.by); w.agg.full() && w.fits {
			w.late = NewHashSorter(w.raw, w.packs)
		}
		w.rows += n
		if rows = rows[n:]; w.left <= 0 {
			if err := w.look(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// look ends the window if its keys, as rows, would take a great part of it: few keys go on to be combined,
// however many rows they have.
func (w *MapCombine[K, V, C]) look(ctx context.Context) error {
	w.agg.flushAll(w.by)
	for _, t := range w.agg.inUse() {
		w.keys.add(t.hashed())
	}
	if keysLeast*w.keys.set*w.looks >= w.rows { // a row takes looks × most / rows
		return w.end(ctx)
	}
	w.left, w.looks = w.most, w.looks+1
	return nil
}

// room returns how many of the rows belong to the window, at least one.
func (w *MapCombine[K, V, C]) room(rows []row.Pair[K, V]) (n int) {
	if !w.text {
		n = min(len(rows), (w.left+w.size-1)/w.size)
		w.left -= n * w.size
		return n
	}
	for n < len(rows) && w.left > 0 {
		w.left -= w.size + len(*(*string)(unsafe.Pointer(&rows[n].Key)))
		n++
	}
	return n
}

// sortLate takes in rows for which the tables have no memory.
func (w *MapCombine[K, V, C]) sortLate(rows []row.Pair[K, V]) error {
	w.sums = row.Hashes(w.raw.Hash, rows, w.sums)
	w.keys.add(w.sums)
	return w.late.AddAll(rows)
}

// end writes the combined rows of the window.
func (w *MapCombine[K, V, C]) end(ctx context.Context) error {
	w.fresh()
	if w.late != nil {
		if err := w.addLate(ctx); err != nil {
			return err
		}
	}
	w.agg.flushAll(w.by)
	defer w.agg.empty()
	for _, t := range w.agg.inUse() {
		hashes := t.hashed()
		for i := range t.Entries {
			if err := w.out.Add(row.Partition(hashes[i], w.parts), &t.Entries[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// addLate combines the sorted rows with the entries of their keys in the tables; keys without an entry are
// written.
func (w *MapCombine[K, V, C]) addLate(ctx context.Context) error {
	defer func() { w.late.Close(); w.late = nil }()
	w.agg.flushAll(w.by)
	var e *row.Pair[K, C] // of the key in hand: a table's, or
	var made row.Pair[K, C]
	end := func() error {
		if e != &made {
			return nil
		}
		return w.out.Add(row.Partition(w.sums[0], w.parts), &made)
	}
	err := eachGroup(ctx, w.late, func(r *row.Pair[K, V], fresh bool) error {
		if !fresh {
			e.Value = w.by.Add(e.Value, r.Value)
			return nil
		}
		err := end()
		w.sums = row.Hashes(w.raw.Hash, []row.Pair[K, V]{*r}, w.sums)
		if e = w.agg.entry(&r.Key, w.sums[0]); e != nil {
			e.Value = w.by.Add(e.Value, r.Value)
		} else {
			made = row.Pair[K, C]{Key: r.Key, Value: w.by.Create(r.Value)}
			e = &made
		}
		return err
	})
	if err != nil {
		return err
	}
	return end()
}

// keyCount estimates the number of keys by a bitmap of their hashes: it counts fewer than there are where
// they are many, but the same for the same keys, in whatever order and however often they come.
type keyCount struct {
	bits []uint64
	set  int
}

// keyBits is the size of the bitmap: half a megabyte.
const keyBits = 1 << 22

func (k *keyCount) add(hashes []uint64) {
	if k.bits == nil {
		k.bits = make([]uint64, keyBits/64)
	}
	for _, h := range hashes {
		word, bit := &k.bits[h%keyBits/64], uint64(1)<<(h%64)
		if *word&bit == 0 {
			*word |= bit
			k.set++
		}
	}
}

func (k *keyCount) clear() {
	clear(k.bits)
	k.set = 0
}

// Close removes what was not finished.
func (w *MapCombine[K, V, C]) Close() {
	w.late.Close()
	w.out.Close()
}
