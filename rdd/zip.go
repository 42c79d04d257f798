package rdd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Zip pairs the rows of two datasets by their place. They must have the same
// number of partitions, and in each the same number of rows; what comes from a
// shuffle has a number of partitions to count on only where Partitions says it. Nothing moves;
// order is kept.
func Zip[T, U any](left Dataset[T], right Dataset[U]) Dataset[Joined[T, U]] {
	g := sameGraph("zip", left.g, right.g)
	id := g.add(node{kind: "zip", typ: row.TypeName[Joined[T, U]](), inputs: []int{left.id, right.id}, at: callSite()})
	return Dataset[Joined[T, U]]{g: g, id: id, parts: left.parts,
		produce: func(ctx context.Context, part int, yield func([]Joined[T, U]) error) error {
			if l, r := left.parts(), right.parts(); l != r {
				return fault.Newf(fault.BadInput, "zip", g.name(id), "the left has %d partitions, the right %d", l, r)
			}
			other, stop := iter.Pull2(pulledBatches(ctx, right, part))
			defer stop()
			b := row.NewBatcher(yield)
			var rest []U
			more := func() (err error) {
				for len(rest) == 0 {
					rows, err, ok := other()
					if err != nil || !ok {
						return err
					}
					rest = rows
				}
				return nil
			}
			uneven := fault.Newf(fault.BadInput, "zip", g.name(id),
				"partition %d has more rows on one side than on the other", part)
			err := left.rows(ctx, part, func(row T) error {
				if err := more(); err != nil {
					return err
				}
				if len(rest) == 0 {
					return uneven
				}
				u := rest[0]
				rest = rest[1:]
				return b.Add(Joined[T, U]{row, u})
			})
			if err == nil {
				if err = more(); err == nil && len(rest) > 0 {
					err = uneven
				}
			}
			return cmp.Or(err, b.Flush())
		}}
}

// ZipPartitions makes the rows of each partition of those that two datasets have in it. They must have as many
// partitions. Nothing moves.
func ZipPartitions[T, U, R any](left Dataset[T], right Dataset[U],
	f func(part int, left iter.Seq[T], right iter.Seq[U]) iter.Seq[R]) Dataset[R] {
	g := sameGraph("zip partitions", left.g, right.g)
	id := g.add(node{kind: "zip-partitions", typ: row.TypeName[R](), inputs: []int{left.id, right.id}, user: true,
		at: callSite()})
	return Dataset[R]{g: g, id: id, parts: left.parts,
		produce: func(ctx context.Context, part int, yield func([]R) error) error {
			if l, r := left.parts(), right.parts(); l != r {
				return fault.Newf(fault.BadInput, "zip partitions", g.name(id),
					"the left has %d partitions, the right %d", l, r)
			}
			var failed error
			b := row.NewBatcher(yield)
			for out := range f(part, rowsUntil(ctx, left, part, &failed), rowsUntil(ctx, right, part, &failed)) {
				if failed != nil {
					break
				}
				if err := b.Add(out); err != nil {
					return err
				}
			}
			return cmp.Or(failed, b.Flush())
		}}
}

// rowsUntil yields the rows of a partition; an error ends them, and is kept.
func rowsUntil[T any](ctx context.Context, ds Dataset[T], part int, failed *error) iter.Seq[T] {
	return func(yield func(T) bool) {
		err := ds.rows(ctx, part, func(r T) error {
			if !yield(r) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			*failed = err
		}
	}
}

// ZipWithUniqueID pairs every row with a number that no other row has: of the i-th row of partition p of n it is
// i·n + p. Nothing moves, and nothing is counted first.
func ZipWithUniqueID[T any](ds Dataset[T]) Dataset[Pair[int64, T]] {
	return derive(ds, "zip-with-unique-id", func(ctx context.Context, part int,
		yield func([]Pair[int64, T]) error) error {
		at, n, b := int64(part), int64(ds.parts()), row.NewBatcher(yield)
		err := ds.rows(ctx, part, func(r T) error {
			at += n
			return b.Add(Pair[int64, T]{Key: at - n, Value: r})
		})
		return cmp.Or(err, b.Flush())
	})
}

// pulledBatches returns the batches of a partition; an error is the last of them.
func pulledBatches[T any](ctx context.Context, ds Dataset[T], part int) iter.Seq2[[]T, error] {
	return pulled(func(yield func([]T) error) error { return ds.each(ctx, part, yield) })
}

// pulled returns batches of rows as an iterator; an error is the last of them.
func pulled[T any](each func(yield func([]T) error) error) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		err := each(func(rows []T) error {
			if !yield(rows, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// ZipWithIndex pairs every row with its number in the dataset, from 0. Nothing
// moves; order is kept. The rows are counted first, in another pass.
func ZipWithIndex[T any](ds Dataset[T]) Dataset[Pair[int64, T]] {
	count := ds.g.add(node{kind: "count-rows", typ: row.TypeName[T](), inputs: []int{ds.id}, user: true,
		task: countTask(ds)})
	id := ds.g.add(node{kind: "zip-with-index", typ: row.TypeName[T](), inputs: []int{ds.id}})
	ds.g.node(id).settle = func(ctx context.Context, s *Session) ([]int, error) {
		counts, err := countParts(ctx, s, count, ds.parts)
		first := []int{0}
		for _, n := range counts {
			first = append(first, first[len(first)-1]+int(n))
		}
		return first, err
	}
	return Dataset[Pair[int64, T]]{g: ds.g, id: id, parts: ds.parts,
		produce: func(ctx context.Context, part int, yield func([]Pair[int64, T]) error) error {
			first := ds.g.decisionOf(id)
			if part >= len(first) {
				return errNoShuffle()
			}
			n, b := int64(first[part]), row.NewBatcher(yield)
			err := ds.rows(ctx, part, func(row T) error {
				n++
				return b.Add(Pair[int64, T]{Key: n - 1, Value: row})
			})
			if err == nil && part+1 < len(first) && n != int64(first[part+1]) {
				err = fault.Newf(fault.UserCode, "number", fmt.Sprintf("the rows of partition %d", part),
					"they were %d when they were counted, and are %d now: the functions before are not deterministic",
					first[part+1]-first[part], n-int64(first[part])).
					WithHint("Cache or Checkpoint the rows before they are numbered")
			}
			return cmp.Or(err, b.Flush())
		}}
}

func countTask[T any](ds Dataset[T]) taskFunc {
	return func(ctx context.Context, part int, _ []byte, _ runner.TaskContext) ([]byte, error) {
		var n int64
		err := ds.each(ctx, part, func(rows []T) error { n += int64(len(rows)); return nil })
		if err != nil {
			return nil, err
		}
		return Encode(n)
	}
}

// countParts returns how many rows each partition has.
func countParts(ctx context.Context, s *Session, id int, parts func() int) ([]int64, error) {
	raws, err := callAll(ctx, s, id, parts)
	counts := make([]int64, len(raws))
	for i, raw := range raws {
		if err := Decode(raw, &counts[i]); err != nil {
			return nil, err
		}
	}
	return counts, err
}
