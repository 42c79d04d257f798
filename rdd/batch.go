package rdd

import (
	"context"
	"unsafe"
)

// Rows move through a task in batches: one call for many rows instead of one
// for each. A batch is valid during the call it is handed to; what a row refers
// to (strings, slices) may be kept.

// batchBytes is how much memory a batch takes: what stays in a core's cache
// beside the batches before and after it.
const batchBytes = 16 << 10

// batchRows is how many rows of a type make a batch.
func batchRows[T any]() int {
	var row T
	return min(1024, max(16, batchBytes/max(1, int(unsafe.Sizeof(row)))))
}

// rows calls yield with the rows of a partition, one after the other.
func (ds Dataset[T]) rows(ctx context.Context, part int, yield func(T) error) error {
	p := pulseOf(ctx)
	return ds.each(ctx, part, func(rows []T) error {
		for i := range rows {
			if err := yield(rows[i]); err != nil {
				return err
			}
			if i%pulseRows == 0 {
				p.moved(1)
			}
		}
		return nil
	})
}

// advancing tells the watch of the task how many rows it has read.
func advancing[T any](each func(ctx context.Context, part int, yield func([]T) error) error) func(ctx context.Context,
	part int, yield func([]T) error) error {
	return func(ctx context.Context, part int, yield func([]T) error) error {
		env, err := envOf(ctx)
		if err != nil {
			return each(ctx, part, yield) // a pack is made
		}
		return each(ctx, part, func(rows []T) error {
			env.packs.Advance(len(rows))
			return yield(rows)
		})
	}
}

// batcher gathers rows that come one by one.
type batcher[T any] struct {
	rows  []T
	yield func([]T) error
}

func newBatcher[T any](yield func([]T) error) *batcher[T] {
	return &batcher[T]{rows: make([]T, 0, batchRows[T]()), yield: yield}
}

func (b *batcher[T]) add(row T) error {
	b.rows = append(b.rows, row)
	if len(b.rows) < cap(b.rows) {
		return nil
	}
	return b.flush()
}

func (b *batcher[T]) flush() error {
	if len(b.rows) == 0 {
		return nil
	}
	err := b.yield(b.rows)
	b.rows = b.rows[:0]
	return err
}

// oneByOne makes batches of what a function yields one by one.
func oneByOne[T any](each func(ctx context.Context, part int, yield func(T) error) error) func(ctx context.Context,
	part int, yield func([]T) error) error {
	return func(ctx context.Context, part int, yield func([]T) error) error {
		b := newBatcher(yield)
		if err := each(ctx, part, b.add); err != nil {
			return err
		}
		return b.flush()
	}
}

// inBatches hands out rows that lie in memory.
func inBatches[T any](rows []T, yield func([]T) error) error {
	for n := batchRows[T](); len(rows) > 0; rows = rows[min(n, len(rows)):] {
		if err := yield(rows[:min(n, len(rows))]); err != nil {
			return err
		}
	}
	return nil
}

// arena keeps the text and the numbers of many rows in few pieces of memory: so small
// that a row that is kept keeps little else.
type arena struct {
	room  []byte
	words []uint64 // what is left of a piece for numbers
	large bool     // all rows are kept, and read in no order
}

const arenaPiece = 4 << 10

func (a *arena) text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > cap(a.room)-len(a.room) {
		if len(b) > arenaPiece/4 {
			return string(b)
		}
		if a.large {
			a.room = makeHuge[byte](0, slabBytes)
		} else {
			a.room = make([]byte, 0, arenaPiece)
		}
	}
	at := len(a.room)
	a.room = append(a.room, b...)
	return unsafe.String(&a.room[at], len(b))
}

// numbers is memory for n bytes of numbers, aligned for any of them.
func (a *arena) numbers(bytes int) unsafe.Pointer {
	n := max(1, (bytes+7)/8)
	if n > len(a.words) {
		switch {
		case n > arenaPiece/8/4:
			return unsafe.Pointer(unsafe.SliceData(make([]uint64, n)))
		case a.large:
			a.words = makeHuge[uint64](slabBytes/8, slabBytes/8)
		default:
			a.words = make([]uint64, arenaPiece/8)
		}
	}
	p := unsafe.Pointer(&a.words[0])
	a.words = a.words[n:]
	return p
}
