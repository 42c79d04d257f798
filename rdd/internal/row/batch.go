package row

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

// BatchSize returns how many rows of a type make a batch.
func BatchSize[T any]() int {
	var row T
	return min(1024, max(16, batchBytes/max(1, int(unsafe.Sizeof(row)))))
}

// Batcher gathers rows that come one by one, and yields them in batches.
type Batcher[T any] struct {
	Count func(rows int) // is called with the size of each batch, if it is set
	rows  []T
	yield func([]T) error
}

// NewBatcher returns a Batcher that calls yield with each full batch, and at Flush with the rest.
func NewBatcher[T any](yield func([]T) error) *Batcher[T] {
	return &Batcher[T]{rows: make([]T, 0, BatchSize[T]()), yield: yield}
}

// Add adds a row.
func (b *Batcher[T]) Add(row T) error {
	b.rows = append(b.rows, row)
	if len(b.rows) < cap(b.rows) {
		return nil
	}
	if b.Count != nil {
		b.Count(len(b.rows))
	}
	err := b.yield(b.rows)
	b.rows = b.rows[:0]
	return err
}

// Flush yields the rows gathered so far, if there are any.
func (b *Batcher[T]) Flush() error {
	if len(b.rows) == 0 {
		return nil
	}
	if b.Count != nil {
		b.Count(len(b.rows))
	}
	err := b.yield(b.rows)
	b.rows = b.rows[:0]
	return err
}

// OneByOne turns a function that yields rows one by one into one that yields batches.
func OneByOne[T any](each func(ctx context.Context, part int, yield func(T) error) error) func(ctx context.Context,
	part int, yield func([]T) error) error {
	return func(ctx context.Context, part int, yield func([]T) error) error {
		b := NewBatcher(yield)
		if err := each(ctx, part, b.Add); err != nil {
			return err
		}
		return b.Flush()
	}
}

// InBatches yields rows that are in memory, a batch at a time.
func InBatches[T any](rows []T, yield func([]T) error) error {
	for n := BatchSize[T](); len(rows) > 0; rows = rows[min(n, len(rows)):] {
		if err := yield(rows[:min(n, len(rows))]); err != nil {
			return err
		}
	}
	return nil
}
