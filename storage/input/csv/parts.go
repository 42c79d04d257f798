package csv

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/text"
)

// Parts of a table are cut at newlines, as if none were within quotes. The end of
// a part shows whether that was right: if the record after its last one does not
// begin where the next part assumed, a newline within quotes was taken for a
// record's end, and the parts are cut again with knowledge of all text before
// them.

// errSpans is at the root of the error of parts that were cut within quotes.
var errSpans = errors.New("a quoted field holds a newline where the file was cut into parts")

func spans(path string) error {
	return fault.New(fault.BadInput, "read", path, errSpans).
		WithHint("set Quoted, or --quoted: parts are then cut by reading what is before them")
}

// CutWithinQuotes reports whether an error is that of parts that were cut within quotes.
func CutWithinQuotes(err error) bool { return errors.Is(err, errSpans) }

// law returns where records end, for readers of text.
func (d *dialect) law() text.Records {
	return text.Records{Newline: d.Newline, Quote: d.Quote, End: d.recordEnd}
}

// blocks reads a range in blocks of whole records.
func (d *dialect) blocks(rng files.Range) iter.Seq2[text.Block, error] {
	return func(yield func(text.Block, error) bool) {
		b, err := text.Open(rng, d.law())
		if err != nil {
			yield(text.Block{}, err)
			return
		}
		defer b.Close()
		if b.Run(func(blk text.Block, err error) bool { return yield(blk, d.Sure(rng, err)) }) {
			if err := d.endsWhereNextBegins(b, rng); err != nil {
				yield(text.Block{}, err)
			}
		}
	}
}

// endsWhereNextBegins checks that the next part begins with the record after the
// last one that was read of a range.
func (d *dialect) endsWhereNextBegins(b *text.Reader, rng files.Range) error {
	end := rng.Offset + rng.Length
	if !b.Quoted() || rng.Exact || end >= rng.File.Size {
		return nil
	}
	next, err := d.guess(rng, end)
	if err != nil || next == b.Next() {
		return err
	}
	return spans(rng.File.Path)
}

// guess returns where the first row of a part that begins at an offset of a range's
// file begins, if newlines end records.
func (d *dialect) guess(r files.Range, offset int64) (int64, error) {
	if offset <= r.Skip {
		return r.Skip, nil
	}
	f, err := r.File.Open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return text.NextLine(f, offset-1, d.Newline)
}

// Sure returns the error about a part's records, unless the part begins within
// quotes: then it is that.
func (d *dialect) Sure(rng files.Range, err error) error {
	if err == nil || d.Quote == 0 || rng.Exact || rng.Offset == 0 || CutWithinQuotes(err) ||
		fault.KindOf(err) != fault.BadInput {
		return err
	}
	from, failed := d.guess(rng, rng.Offset)
	if failed != nil {
		return err
	}
	begins, failed := d.nextRecord(context.Background(), rng, rng.Skip, rng.Offset)
	if failed != nil || begins == from {
		return err
	}
	return spans(rng.File.Path)
}

// nextRecord returns where the first record from to on begins, of those from the
// one that begins at from on.
func (d *dialect) nextRecord(ctx context.Context, r files.Range, from, to int64) (int64, error) {
	if from >= to {
		return from, nil
	}
	b, err := text.Open(files.Range{File: r.File, Skip: r.Skip, Offset: from, Length: to - from, Exact: true}, d.law())
	if err != nil {
		return 0, err
	}
	defer b.Close()
	b.Run(func(_ text.Block, failed error) bool {
		err = cmp.Or(failed, ctx.Err())
		return err == nil
	})
	return b.Next(), err
}

// Cut returns ranges with the same records as ranges of one file after the other
// have, and with their bounds: as many, some perhaps empty. They are read
// concurrently, each as if it were cut correctly, and once more where it was
// not.
func (d *dialect) Cut(ctx context.Context, ranges []files.Range) ([]files.Range, error) {
	begins, ends := make([]int64, len(ranges)), make([]int64, len(ranges))
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, r := range ranges {
		if r.Offset == 0 && r.Length >= r.File.Size {
			continue // whole: compressed ones are, too
		}
		g.Go(func() (err error) {
			if begins[i], err = d.guess(r, r.Offset); err == nil {
				ends[i], err = d.nextRecord(inner, r, begins[i], r.Offset+r.Length)
			}
			if fault.KindOf(err) == fault.BadInput {
				begins[i], err = -1, nil // it may have begun within quotes
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return d.join(ctx, ranges, begins, ends)
}

// join walks the ranges with what was found in each.
func (d *dialect) join(ctx context.Context, ranges []files.Range, begins, ends []int64) ([]files.Range, error) {
	out := make([]files.Range, len(ranges))
	at := int64(0)
	for i, r := range ranges {
		if r.Offset == 0 {
			at = r.Skip
		}
		if out[i] = r; r.Offset == 0 && r.Length >= r.File.Size {
			continue
		}
		end, err := ends[i], error(nil)
		if at != begins[i] {
			if end, err = d.nextRecord(ctx, r, at, r.Offset+r.Length); err != nil {
				return nil, err
			}
		}
		out[i].Offset, out[i].Length, out[i].Exact = at, end-at, true
		at = end
	}
	return out, nil
}
