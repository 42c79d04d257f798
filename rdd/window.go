package rdd

import (
	"context"
	"reflect"
	"unsafe"

	"github.com/volley-engine/volley/internal/runner"
)

// windowBytes is after how many bytes of rows a map task looks whether it hands on what they
// have come to: it does so if they have many keys. That bounds what a table takes, and is the
// same whatever memory there is: where one window ends and the next begins shows in how sums
// of floating-point numbers are rounded, and in what order functions see values.
var windowBytes = 64 << 20 // a variable for tests, in which few rows fill many windows

// keysLeast is the part of windowBytes that the keys of a window take at the least when it ends.
const keysLeast = 4

// combining is the map side of a combination by key: window by window, each in a table,
// and where that does not fit into memory with the rows after that sorted by the
// hashes of their keys. Either way the values of a key in a window are combined one by
// one, in the order in which they came.
type combining[K comparable, V, C any] struct {
	by    Combiner[V, C]
	c     keyed[K, C]
	raw   keyed[K, V]
	fits  bool // rows can be sorted
	d     *partitionedAggregation[K, V, C]
	packs runner.TaskContext
	out   *spreader[Pair[K, C]]
	parts int
	left  int // bytes of rows until the next look
	looks int // in this window, the next one counted
	rows  int // of this window
	keys  keyCount
	size  int // of a row
	text  bool
	late  *sorter[Pair[K, V]] // rows for which there is no memory; nil while there is
	sums  []uint64
}

func (w *combining[K, V, C]) begin() {
	w.size = max(1, int(unsafe.Sizeof(Pair[K, V]{})))
	w.text = reflect.TypeFor[K]().Kind() == reflect.String
	w.fresh()
}

// fresh begins a window.
func (w *combining[K, V, C]) fresh() {
	w.left, w.looks, w.rows = windowBytes, 1, 0
	w.keys.clear()
}

// add takes a batch in, and ends the window where it is full.
func (w *combining[K, V, C]) add(ctx context.Context, rows []Pair[K, V]) error {
	for len(rows) > 0 {
		n := w.room(rows)
		if err := w.take(rows[:n]); err != nil {
			return err
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

// look ends the window if the keys that it has would be, as rows, as many bytes as they may:
// few keys go on to be combined, however many rows they have.
func (w *combining[K, V, C]) look(ctx context.Context) error {
	w.d.settle(w.by)
	w.d.each(func(t *table[K, C]) { w.keys.add(t.hashed()) })
	if keysLeast*w.keys.set*w.looks >= w.rows { // a row takes looks × windowBytes / rows
		return w.end(ctx)
	}
	w.left, w.looks = windowBytes, w.looks+1
	return nil
}

// room is how many of some rows belong to the window, at least one.
func (w *combining[K, V, C]) room(rows []Pair[K, V]) (n int) {
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

func (w *combining[K, V, C]) take(rows []Pair[K, V]) error {
	if w.late != nil {
		w.sums = hashOf(w.raw.hash, rows, w.sums)
		w.keys.add(w.sums)
		return w.late.addAll(rows)
	}
	if w.d.add(rows, w.by); w.d.full() && w.fits {
		w.late = newHashSorter(w.raw, w.packs)
	}
	return nil
}

// end hands on what the window has come to.
func (w *combining[K, V, C]) end(ctx context.Context) error {
	w.fresh()
	if w.late != nil {
		if err := w.addLate(ctx); err != nil {
			return err
		}
	}
	return w.d.drain(w.by, func(t *table[K, C]) error {
		hashes := t.hashed()
		for i := range t.entries {
			if err := w.out.add(partition(hashes[i], w.parts), &t.entries[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// addLate combines the rows that were sorted with what tables have of their keys; keys
// that these do not have are handed on.
func (w *combining[K, V, C]) addLate(ctx context.Context) error {
	defer func() { w.late.close(); w.late = nil }()
	w.d.settle(w.by)
	var e *Pair[K, C] // of the key in hand: a table's, or
	var made Pair[K, C]
	end := func() error {
		if e != &made {
			return nil
		}
		return w.out.add(partition(w.sums[0], w.parts), &made)
	}
	err := eachGroup(ctx, w.late, func(row *Pair[K, V], fresh bool) error {
		if !fresh {
			e.Value = w.by.Add(e.Value, row.Value)
			return nil
		}
		err := end()
		w.sums = hashOf(w.raw.hash, []Pair[K, V]{*row}, w.sums)
		if e = w.d.entry(&row.Key, w.sums[0]); e != nil {
			e.Value = w.by.Add(e.Value, row.Value)
		} else {
			made = Pair[K, C]{row.Key, w.by.Create(row.Value)}
			e = &made
		}
		return err
	})
	if err != nil {
		return err
	}
	return end()
}

// keyCount counts keys by the bits of a map that their hashes set: fewer than there are, where
// they are many, but as many for the same keys in whatever order, and however often, they come.
type keyCount struct {
	bits []uint64
	set  int
}

// keyBits is how many bits the map has: half a megabyte's.
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

func (w *combining[K, V, C]) close() {
	w.late.close()
	w.out.Close()
}
