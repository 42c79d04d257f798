package rdd

import (
	"context"
	"errors"
	"io"

	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/shuffle"
)

// eachOutput calls read with the blocks of each output of a task's partition.
func (r *shuffleReader) eachOutput(ctx context.Context, read func(ref outputRef, b *shuffle.BlockReader) error) error {
	for _, ref := range r.refs {
		if err := ctx.Err(); err != nil {
			return err
		}
		in, err := r.open(ctx, ref)
		if err != nil {
			return err
		}
		err = read(ref, shuffle.NewBlockReader(in))
		in.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// readShuffle reads the rows of a partition of a shuffle: those of one map task
// after those of another, each in their order.
func readShuffle[T any](ctx context.Context, id, part int, codec row.Codec[T], yield func([]T) error) error {
	return readShuffleInto(ctx, id, part, codec, &row.Arena{}, yield)
}

// readShuffleInto reads a partition of a shuffle, with the rows' text in the given arena.
func readShuffleInto[T any](ctx context.Context, id, part int, codec row.Codec[T], text *row.Arena,
	yield func([]T) error) error {
	r, err := openShuffle(ctx, id, part)
	if err != nil {
		return err
	}
	var rows []T
	return r.eachOutput(ctx, func(ref outputRef, b *shuffle.BlockReader) error {
		for {
			block, err := b.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				rows, err = codec.ParseAll(block, rows[:0], text)
				err = row.Corrupt(err)
			}
			if err != nil {
				return lostFrom(ref, err)
			}
			r.env.packs.Advance(len(rows))
			if err := yield(rows); err != nil {
				return err
			}
		}
	})
}

// shuffledDataset returns a dataset whose partitions are read from shuffles; family is
// the node under which their partitions are joined where they are small.
func shuffledDataset[T any](g *Graph, id, family int, o shuffleOptions, n func() int,
	each func(ctx context.Context, part int, yield func([]T) error) error) Dataset[T] {
	return Dataset[T]{g: g, id: id, parts: func() int {
		if d := g.decisionOf(family); len(d) > 1 {
			return len(d) - 1
		}
		return n()
	}, produce: each, spread: o.partitions}
}
