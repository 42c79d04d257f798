package storage

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// Parts of a table are cut at newlines, as if none were within quotes. Whether
// that was right is known where a part ends: if the record after its last one
// does not begin where the next part took it to, a newline within quotes was
// taken for a record's end, and the parts are cut anew, by all that comes before.

// errSpans is at the root of the error of parts that were cut within quotes.
var errSpans = errors.New("a quoted field holds a newline where the file was cut into parts")

func spans(path string) error {
	return fault.New(fault.BadInput, "read", path, errSpans).WithHint("set Quoted, or --quoted: parts are then cut by reading what is before them")
}

// endsWhereNextBegins checks that the next part begins with the record after the
// last one.
func (b *blocker) endsWhereNextBegins() error {
	end := b.rng.Offset + b.rng.Length
	if !b.quotes || b.rng.Exact || end >= b.rng.File.Size {
		return nil
	}
	next, err := b.rng.guess(end, b.newline)
	if err != nil || next == b.offset {
		return err
	}
	return spans(b.rng.File.Path)
}

// guess returns where the first row of a part that begins at an offset of a range's
// file begins, if newlines end records.
func (r Range) guess(offset int64, newline byte) (int64, error) {
	if offset <= r.Skip {
		return r.Skip, nil
	}
	f, err := os.Open(r.File.Path)
	if err != nil {
		return 0, disk.OpenError(r.File.Path, err)
	}
	defer f.Close()
	return nextLine(f, offset-1, newline)
}

// sure returns the error about a part's records, unless the part begins within
// quotes: then it is that.
func (d *dialect) sure(rng Range, err error) error {
	if err == nil || d.Quote == 0 || rng.Exact || rng.Offset == 0 || errors.Is(err, errSpans) || fault.KindOf(err) != fault.BadInput {
		return err
	}
	from, failed := rng.guess(rng.Offset, d.Newline)
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
func (d *dialect) nextRecord(ctx context.Context, r Range, from, to int64) (int64, error) {
	if from >= to {
		return from, nil
	}
	b, err := openBlocks(Range{File: r.File, Skip: r.Skip, Offset: from, Length: to - from, Exact: true}, d)
	if err != nil {
		return 0, err
	}
	defer b.r.Close()
	b.run(func(_ textBlock, failed error) bool {
		err = cmp.Or(failed, ctx.Err())
		return err == nil
	})
	return b.offset, err
}

// cut returns ranges with the same records as ranges of one file after the other
// have, and with their bounds: as many, some perhaps empty. They are read side
// by side, each as if it were cut rightly, and once more where it was not.
func (d *dialect) cut(ctx context.Context, ranges []Range) ([]Range, error) {
	begins, ends := make([]int64, len(ranges)), make([]int64, len(ranges))
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, r := range ranges {
		if r.Offset == 0 && r.Length >= r.File.Size {
			continue // whole: compressed ones are, too
		}
		g.Go(func() (err error) {
			if begins[i], err = r.guess(r.Offset, d.Newline); err == nil {
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

// join goes through ranges with what was found of each.
func (d *dialect) join(ctx context.Context, ranges []Range, begins, ends []int64) ([]Range, error) {
	out := make([]Range, len(ranges))
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

// cutAgain does something with all parts; where these turn out to be cut within
// quotes, once more with parts that are not.
func (s *Source) cutAgain(ctx context.Context, do func() error) error {
	err := do()
	if !errors.Is(err, errSpans) {
		return err
	}
	cuts, err := s.Table.cut(ctx, s.Parts)
	if err != nil {
		return err
	}
	s.cuts.Store(&cuts)
	return do()
}

// part returns the range of a part.
func (s *Source) part(i int) Range {
	if cuts := s.cuts.Load(); cuts != nil {
		return (*cuts)[i]
	}
	return s.Parts[i]
}

// headOf reads the beginning of a file, and whether that is all of it.
func headOf(path string, size int) (head []byte, all bool, err error) {
	r, err := openPlain(path)
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	head = make([]byte, size)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false, err
	}
	return head[:n], n < len(head), nil
}
