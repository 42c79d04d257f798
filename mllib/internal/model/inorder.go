package model

import (
	"context"
	"errors"
	"runtime"

	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

// Reading is how the rows of a source become results of type R: one for each part, handed out in the parts'
// order.
type Reading[R any] struct {
	// Begin returns the result of a part before its first row, and Chunk adds the rows of a chunk to it, the
	// first of which is the n-th of its part, from 0. Parts are read side by side.
	Begin func() *R
	Chunk func(to *R, c *rows.Chunk, n int) error
	Take  func(*R) error
}

// readPart is what became of a part.
type readPart[R any] struct {
	result *R
	rows   int
	err    error
	more   bool // the part goes on
}

// pieceRows is how many rows of a whole file, which may be large, are one result.
const pieceRows = 1 << 16

// Each reads all parts of a source, as many at a time as there are cores. A part that turns out to be cut within
// quotes is read again, with those after it, as it should be cut.
func (r Reading[R]) Each(ctx context.Context, src *input.Source) error {
	if src.Len() == 1 {
		return r.stream(ctx, src)
	}
	next, before := 0, 0
	return src.CutAgain(ctx, func() error {
		ctx, end := context.WithCancel(ctx)
		defer end()
		for part := range r.sideBySide(ctx, src, next) {
			if part.err != nil {
				return numbered(part.err, before)
			}
			if err := r.Take(part.result); err != nil {
				return err
			}
			if part.more {
				continue
			}
			next, before = next+1, before+part.rows
		}
		return ctx.Err()
	})
}

// stream hands out what becomes of each chunk of a source's only part, which may be large: a compressed file.
func (r Reading[R]) stream(ctx context.Context, src *input.Source) error {
	n := 0
	err := src.Read(ctx, 0, func(c *rows.Chunk) error {
		to := r.Begin()
		err := r.Chunk(to, c, n)
		if n += c.Rows(); err == nil {
			err = r.Take(to)
		}
		return err
	})
	return numbered(err, 0)
}

// sideBySide yields what becomes of the parts from one on, in order. Those ahead of the one in hand are as many
// as there are cores.
func (r Reading[R]) sideBySide(ctx context.Context, src *input.Source, from int) func(func(readPart[R]) bool) {
	return func(yield func(readPart[R]) bool) {
		ahead := make(chan chan readPart[R], runtime.GOMAXPROCS(0)-1)
		go func() {
			defer close(ahead)
			for part := from; part < src.Len(); part++ {
				one := make(chan readPart[R], 1)
				select {
				case ahead <- one:
				case <-ctx.Done():
					return
				}
				go func() { one <- r.part(ctx, src, part, one) }()
			}
		}()
		for one := range ahead {
			for more := true; more; {
				p := <-one
				if more = p.more; !yield(p) {
					return
				}
			}
		}
	}
}

// part returns what became of a part. Of a whole file, which is sure to begin and end with a record, pieces are handed
// out before, each when the one before is taken.
func (r Reading[R]) part(ctx context.Context, src *input.Source, part int, pieces chan<- readPart[R]) readPart[R] {
	out, taken := readPart[R]{result: r.Begin()}, 0
	out.err = src.Read(ctx, part, func(c *rows.Chunk) error {
		err := r.Chunk(out.result, c, out.rows)
		out.rows += c.Rows()
		if err != nil || out.rows-taken < pieceRows || !src.Whole(part) {
			return err
		}
		select {
		case pieces <- readPart[R]{result: out.result, more: true}:
		case <-ctx.Done():
			return ctx.Err()
		}
		out.result, taken = r.Begin(), out.rows
		return nil
	})
	if out.err != nil {
		out.err = src.Sure(part, out.err)
	}
	return out
}

// BadRow is an error about a row that knows its number within its part, from 0.
type BadRow struct {
	Row int
	Say func(n int) error // the error about the n-th row of all, from 1
}

// Error returns the error, with the row's number in its part.
func (e *BadRow) Error() string { return e.Say(e.Row + 1).Error() }

// numbered makes the error about a row of a part one about a row of all, of which some come before the part.
func numbered(err error, before int) error {
	var bad *BadRow
	if errors.As(err, &bad) {
		return bad.Say(before + bad.Row + 1)
	}
	return err
}
