package rdd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/storage/shuffle"
)

// spreader writes rows to the partitions of a map task's output.
type spreader[T any] struct {
	*shuffle.Writer
	row codec[T]
}

func newSpreader[T any](packs runner.TaskContext, row codec[T], parts int) *spreader[T] {
	return &spreader[T]{packs.NewMapOutput(parts), row}
}

// unordered is a spreader of rows whose order means nothing.
func (s *spreader[T]) unordered() *spreader[T] {
	s.Sums = make([]uint64, len(s.Rows))
	return s
}

func (s *spreader[T]) add(part int, row *T) error {
	room := s.Room(part)
	before := len(*room)
	*room = s.row.append(*room, row)
	s.Rows[part]++
	if s.Sums != nil {
		s.Sums[part] += xxhash.Sum64((*room)[before:])
	}
	if len(*room) >= s.Block {
		return s.Flush(part)
	}
	return nil
}

// addAll adds rows to a part.
func (s *spreader[T]) addAll(part int, rows []T) error {
	for i := range rows {
		if err := s.add(part, &rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// again ends what was written to a file, and returns its one part, to be read as often as need be.
func (s *spreader[T]) again() (rows eachRows[T], done func(), err error) {
	b, err := s.Finish()
	if err != nil {
		return nil, nil, err
	}
	return func(yield func([]T) error) error { return readPart(b, 0, s.row, yield) }, b.Remove, nil
}

func (s *spreader[T]) finish() (*written, error) {
	b, err := s.Finish()
	if err != nil {
		return nil, err
	}
	return &written{output: b}, nil
}

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

// readBuckets reads the rows of a partition of a shuffle: those of one map task
// after those of another, each in their order.
func readBuckets[T any](ctx context.Context, id, part int, row codec[T], yield func([]T) error) error {
	return readInto(ctx, id, part, row, &arena{}, yield)
}

// readInto is readBuckets with a place for the rows' text.
func readInto[T any](ctx context.Context, id, part int, row codec[T], text *arena, yield func([]T) error) error {
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
				rows, err = row.parseAll(block, rows[:0], text)
				err = corruptRow(err)
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

func corruptRow(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Corrupt, "read", "a shuffled row", err)
}

// shuffledDataset is a dataset whose partitions are read from shuffles; family is
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

// mostPartitions bounds what a shuffle may be asked to make.
const mostPartitions = 1 << 14

// defaultPartitions is how many partitions a shuffle makes, unless told, of
// little data; of more it makes one for each partitionBytes. Neither depends on
// the cluster, so that every node has the same plan.
const (
	defaultPartitions = 16
	partitionBytes    = 64 << 20
)

// ShuffleOption is an option of an operation that moves rows.
type ShuffleOption func(*shuffleOptions)

type shuffleOptions struct {
	partitions int
	descending bool
}

// Partitions sets the number of partitions of a shuffle's result. Without it
// there are 16, or more where there is much data, and neighbouring ones are
// joined where they turn out to be small.
func Partitions(n int) ShuffleOption { return func(o *shuffleOptions) { o.partitions = n } }

func shuffleOptionsOf(options []ShuffleOption) shuffleOptions {
	var o shuffleOptions
	for _, set := range options {
		set(&o)
	}
	o.partitions = min(max(0, o.partitions), mostPartitions)
	return o
}

func (o shuffleOptions) String() string {
	text := "as many partitions as it takes"
	if o.partitions > 0 {
		text = fmt.Sprint(o.partitions, " partitions")
	}
	if o.descending {
		text = "descending, " + text
	}
	return text
}

// count is the number of partitions of a shuffle of some nodes.
func (o shuffleOptions) count(g *Graph, inputs ...int) func() int {
	return func() int {
		if o.partitions > 0 {
			return o.partitions
		}
		var bytes int64
		for _, in := range inputs {
			bytes += max(0, g.bytesOf(in))
		}
		return int(min(mostPartitions, max(defaultPartitions, bytes/partitionBytes)))
	}
}

// bytesOf is about how many bytes of rows a node has, judged by what it is
// computed from; -1 where that is not known.
func (g *Graph) bytesOf(id int) int64 { return g.bytesBelow(id, map[int]int64{}) }

func (g *Graph) bytesBelow(id int, known map[int]int64) int64 {
	if b, ok := known[id]; ok {
		return b
	}
	n := &g.nodes[id]
	if n.bytes != nil {
		return n.bytes()
	}
	inputs := n.inputs
	if n.choice != nil {
		inputs = n.choice.inputs[0] // each of the others has the same rows
	}
	total := int64(-1)
	for _, in := range inputs {
		b := g.bytesBelow(in, known)
		if b < 0 {
			total = -1
			break
		}
		total = max(0, total) + b
	}
	known[id] = total
	return total
}
