package input

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/csv"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/parquet"
	"github.com/volley-engine/volley/storage/input/text"
)

// openTyped describes input whose rows are of a user's type: the type
// determines their columns, not the file.
func openTyped(ctx context.Context, o Options, inputs []files.File) (s *Source, err error) {
	s = &Source{Format: o.Format, Files: inputs, Typed: true}
	if o.Keep != nil {
		if s.Files, err = keptFiles(inputs, o.Keep); err != nil || len(s.Files) == 0 {
			return s, err
		}
		inputs = s.Files
	}
	if o.Typed != nil {
		if err := files.SameKeys(inputs); err != nil {
			return nil, err
		}
	}
	o.Typed = slices.DeleteFunc(slices.Clone(o.Typed), func(name string) bool { return isKey(inputs[0].Keys, name) })
	switch o.Format {
	case Parquet:
		s.Parts, s.Flat, err = parquet.PlanFlat(ctx, inputs, o.Typed)
	case Arrow, Whole:
		for _, f := range inputs {
			s.Parts = append(s.Parts, files.Range{File: f})
		}
	case CSV, TSV:
		s.Table, s.Parts, err = csv.Open(ctx, inputs, o.ofTable(o.Format),
			files.PartSize(files.TotalSize(inputs), textLeast, textBytes))
	default: // lines
		s.Parts, err = files.Ranges(inputs, files.PartSize(files.TotalSize(inputs), textLeast, textBytes))
	}
	return s, err
}

// keptFiles returns the files whose directories a function accepts: the others are not opened.
func keptFiles(inputs []files.File, keep func(files.File) (bool, error)) (kept []files.File, err error) {
	for _, f := range inputs {
		ok, err := keep(f)
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, f)
		}
	}
	return kept, nil
}

func isKey(keys []files.Key, name string) bool {
	return slices.ContainsFunc(keys, func(k files.Key) bool { return strings.EqualFold(k.Name, name) })
}

// How much text one part of a dataset of lines has, at the least and at the most.
const (
	textLeast = 2 << 20
	textBytes = 32 << 20
)

// FieldNames returns the names of a table's columns, and whether they are the
// file's own.
func (s *Source) FieldNames() (names []string, own bool) { return s.Table.Names, s.Table.Header }

// Where is a position in a file.
type Where struct {
	Path string
	Line int64 // from 1; 0 where it is counted from an offset
	At   int64 // the offset from which Line is counted, else 0
}

// String returns the place as messages have it.
func (w Where) String() string {
	if w.At > 0 {
		return fmt.Sprintf("%s line %d from byte %d", w.Path, w.Line, w.At)
	}
	return fmt.Sprintf("%s line %d", w.Path, w.Line)
}

// EachLine yields the lines of a part with their positions.
func (s *Source) EachLine(ctx context.Context, part int, yield func(where func() Where, line []byte) error) error {
	rng := s.Parts[part]
	for blk, err := range text.Lines(rng) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		n := blk.Line
		for line := range bytes.Lines(blk.Data) {
			where := func() Where { return Where{rng.File.Path, n, rng.Offset} }
			if err := yield(where, bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'})); err != nil {
				return err
			}
			n++
		}
	}
	return nil
}

// mostWhole is how large a file may be that is read as one row, unwrapped.
const mostWhole = 256 << 20

// Content returns the content of a part that is a file, unwrapped as its name says.
func (s *Source) Content(part int) (path string, content []byte, err error) {
	f := s.Parts[part].File
	if err := f.Unchanged(); err != nil {
		return f.Path, nil, err
	}
	in, err := files.Open(f.Path)
	if err != nil {
		return f.Path, nil, err
	}
	defer in.Close()
	content, err = io.ReadAll(io.LimitReader(in, mostWhole+1))
	if err == nil && len(content) > mostWhole {
		err = fault.Newf(fault.NoResources, "read", f.Path, "it has more than %d MiB", mostWhole>>20).
			WithHint("read it by its lines, or split it")
	}
	return f.Path, content, cmp.Or(err, f.Unchanged())
}

// MalformedPolicy returns the policy for malformed records.
func (s *Source) MalformedPolicy() csv.Malformed { return s.Table.Malformed }

// Records yields the records of a part of a table of text.
func (s *Source) Records(ctx context.Context, part int, yield func(*csv.Record) error) error {
	return s.Table.Records(ctx, s.part(part), yield)
}

// Bad returns an error about a record of a part.
func (s *Source) Bad(r *csv.Record, part int, hint string, why error) error {
	return s.Sure(part, r.Bad(hint, why))
}

// FlatColumns yields the rows of a part of a Parquet file where Flat is set: a
// few thousand at a time, valid during the call only.
func (s *Source) FlatColumns(ctx context.Context, part int, names []string,
	yield func(rows int, cols []*parquet.FlatColumn) error) error {
	return parquet.ReadFlat(ctx, s.Parts[part], names, yield)
}

// ArrowRecords yields the rows of a part of a Parquet or Arrow file as Arrow records, which
// are valid during the call only. Those of Parquet have no other columns than names, and of a column of structs only
// the fields that follow its name, each after parquet.Below.
func (s *Source) ArrowRecords(ctx context.Context, part int, names []string,
	yield func(path string, rec arrow.Record) error) error {
	rng := s.Parts[part]
	return parquet.ReadRecords(ctx, s.Format.kind(), rng, names,
		func(rec arrow.Record) error { return yield(rng.File.Path, rec) })
}
