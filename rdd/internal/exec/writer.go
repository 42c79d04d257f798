package exec

import (
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/shuffle"
)

// Writer writes rows to the partitions of a map output.
type Writer[T any] struct {
	*shuffle.Writer
	row row.Codec[T]
}

// NewWriter returns a writer of a task's map output.
func NewWriter[T any](packs runner.TaskContext, row row.Codec[T], parts int) *Writer[T] {
	return &Writer[T]{packs.NewMapOutput(parts), row}
}

// WriterTo returns a writer to the given output.
func WriterTo[T any](to *shuffle.Writer, codec row.Codec[T]) *Writer[T] { return &Writer[T]{to, codec} }

// unordered makes the digest of the output independent of the order of rows.
func (s *Writer[T]) unordered() *Writer[T] {
	s.Sums = make([]uint64, len(s.Rows))
	return s
}

// Add writes a row to a partition.
func (s *Writer[T]) Add(part int, row *T) error {
	room := s.Room(part)
	before := len(*room)
	*room = s.row.Append(*room, row)
	s.Rows[part]++
	if s.Sums != nil {
		s.Sums[part] += xxhash.Sum64((*room)[before:])
	}
	if len(*room) >= s.Block {
		return s.Flush(part)
	}
	return nil
}

// AddAll writes rows to a partition.
func (s *Writer[T]) AddAll(part int, rows []T) error {
	for i := range rows {
		if err := s.Add(part, &rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// Reread ends an output of one partition, and returns its rows, to be read as often as need be.
func (s *Writer[T]) Reread() (rows Rows[T], done func(), err error) {
	b, err := s.Finish()
	if err != nil {
		return nil, nil, err
	}
	return func(yield func([]T) error) error { return readPart(b, 0, s.row, yield) }, b.Remove, nil
}

// Rows yields rows, the same ones in the same order each time.
type Rows[T any] func(yield func([]T) error) error

// spooled writes rows that can be yielded only once to a file.
func spooled[T any](packs runner.TaskContext, row row.Codec[T], rows Rows[T]) (again Rows[T], done func(),
	err error) {
	out := NewWriter(packs, row, 1)
	out.ToFile()
	defer out.Close()
	err = rows(func(rows []T) error { return out.AddAll(0, rows) })
	if err != nil {
		return nil, nil, err
	}
	return out.Reread()
}

// readPart yields the rows of a partition of an output.
func readPart[T any](b *shuffle.Output, part int, codec row.Codec[T], yield func([]T) error) error {
	in, err := b.Open(shuffle.Span{From: part, Through: part + 1})
	if err != nil {
		return err
	}
	defer in.Close()
	var text row.Arena
	var rows []T
	blocks := shuffle.NewBlockReader(in)
	for {
		block, err := blocks.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			rows, err = codec.ParseAll(block, rows[:0], &text)
			err = row.Corrupt(err)
		}
		if err != nil {
			return err
		}
		if err := yield(rows); err != nil {
			return err
		}
	}
}
