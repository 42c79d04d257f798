package storage

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/volley-engine/volley/internal/fault"
)

// openTyped describes input whose rows are of a user's type: which columns
// they have is the type's affair, not the file's.
func openTyped(o ReadOptions, files []File) (s *Source, err error) {
	s = &Source{Format: o.Format, Files: files, Typed: true}
	switch o.Format {
	case Parquet:
		err = s.planFlat(o.Typed)
	case Arrow:
		for _, f := range files {
			s.Parts = append(s.Parts, Range{File: f})
		}
	case CSV, TSV:
		s.Table, s.Parts, err = openTable(files, o.ofTable(o.Format), partSize(totalSize(files), textLeast, textBytes))
	default: // lines
		s.Parts, err = Ranges(files, partSize(totalSize(files), textLeast, textBytes))
	}
	return s, err
}

// How much text one part of a dataset of lines has, at the least and at the most.
const (
	textLeast = 2 << 20
	textBytes = 32 << 20
)

// planFlat cuts Parquet files into parts of whole row groups, and reports whether
// the columns can be read by the low-level readers.
func (s *Source) planFlat(names []string) error {
	found, err := describeFiles(context.Background(), s.Files, Parquet, names)
	if err != nil {
		return err
	}
	var total int64
	s.Flat = true
	for _, d := range found {
		s.Flat = s.Flat && d.Flat
		for _, n := range d.Groups {
			total += n
		}
	}
	// Enough parts to share out, each large enough for a map task to combine much.
	most := partSize(total, groupLeast, groupBytes)
	for i, file := range s.Files {
		s.Parts = append(s.Parts, groupParts(file, found[i], most)...)
	}
	return nil
}

// describeFlat says what is in a Parquet file that must have certain columns.
func describeFlat(path string, columns []string) (*columnsInFile, error) {
	f, err := openFlat(path)
	if err != nil {
		return nil, err
	}
	defer f.close()
	for _, name := range columns {
		if f.column(name) < 0 && !f.hasGroup(name) {
			return nil, fault.Newf(fault.BadInput, "read", path, "it has no column %q; its columns are %s", name, strings.Join(f.names(), " "))
		}
	}
	return &columnsInFile{Names: f.names(), Groups: f.groups(), GroupRows: groupRows(f.r.MetaData()), Rows: f.r.NumRows(), Flat: f.flat(columns)}, nil
}

// hasGroup reports whether a file has a column of columns.
func (f *flatFile) hasGroup(name string) bool {
	for _, n := range f.names() {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

func (f *flatFile) names() (out []string) {
	root := f.r.MetaData().Schema.Root()
	for i := range root.NumFields() {
		out = append(out, root.Field(i).Name())
	}
	return out
}

// FieldNames are the names of a table's columns, and whether they are the file's
// own.
func (s *Source) FieldNames() (names []string, own bool) { return s.Table.Names, s.Table.Header }

// Where says where in a file something is.
type Where struct {
	Path string
	Line int64 // from 1; 0 where it is counted from an offset
	At   int64 // the offset from which Line is counted, else 0
}

// String is the place as messages have it.
func (w Where) String() string {
	if w.At > 0 {
		return fmt.Sprintf("%s line %d from byte %d", w.Path, w.Line, w.At)
	}
	return fmt.Sprintf("%s line %d", w.Path, w.Line)
}

// EachLine hands on the lines of a part with their places.
func (s *Source) EachLine(ctx context.Context, part int, yield func(where func() Where, line []byte) error) error {
	rng := s.Parts[part]
	for blk, err := range textLines(rng) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		n := blk.line
		for line := range bytes.Lines(blk.data) {
			where := func() Where { return Where{rng.File.Path, n, rng.Offset} }
			if err := yield(where, bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'})); err != nil {
				return err
			}
			n++
		}
	}
	return nil
}

// FlatColumns hands on the rows of a part of a Parquet file, where Flat says that
// it can be read so: a few thousand at a time, valid during the call only. A child
// process decodes them, or where nothing has to be decoded finds them.
func (s *Source) FlatColumns(ctx context.Context, part int, names []string, yield func(rows int, cols []*FlatColumn) error) error {
	rng := s.Parts[part]
	if err := rng.File.Unchanged(); err != nil {
		return err
	}
	cols := make([]*FlatColumn, len(names))
	for i, name := range names {
		cols[i] = &FlatColumn{Name: name}
	}
	each := func(rows int, cols []*FlatColumn) error { return cmp.Or(ctx.Err(), yield(rows, cols)) }
	raw := &rawFile{path: rng.File.Path}
	defer raw.close()
	order := decodeOrder{Path: rng.File.Path, Format: Parquet, Columns: names, Groups: rng.groups(), Memory: memoryFor(rng.File.Size)}
	err := decode(ctx, order, func(r *decodeReply) error {
		if r.Pages != nil {
			return raw.group(r.Pages, cols, each)
		}
		return r.columns(cols, each)
	})
	if err == nil && raw.file != nil { // else what was found in one file may have been read from another
		err = rng.File.Unchanged()
	}
	return err
}

// sendFlat is the child's side of FlatColumns.
func sendFlat(order decodeOrder, s *sender) error {
	f, err := openFlat(order.Path)
	if err != nil {
		return err
	}
	defer f.close()
	if !f.flat(order.Columns) {
		return fault.Newf(fault.BadInput, "read", order.Path, "its columns are not those it had")
	}
	for _, g := range order.Groups {
		if err := sendGroup(f, g, order.Columns, s); err != nil {
			return err
		}
	}
	return s.flush()
}

// sendGroup sends the rows of a row group, or where they lie.
func sendGroup(f *flatFile, group int, columns []string, s *sender) error {
	pages := f.groupPages(group, columns)
	if pages == nil {
		return f.read([]int{group}, columns, s.columns)
	}
	return cmp.Or(s.flush(), s.send(&decodeReply{Pages: pages}))
}

// groups are the row groups of a part.
func (r Range) groups() (out []int) {
	for g := range r.Length {
		out = append(out, int(r.Offset+g))
	}
	return out
}

// ArrowRecords hands on the rows of a part of a Parquet or Arrow file as Arrow
// records, which are valid during the call only. Those of Parquet have no other columns than
// names. A child process decodes them.
func (s *Source) ArrowRecords(ctx context.Context, part int, names []string, yield func(path string, rec arrow.Record) error) error {
	rng := s.Parts[part]
	if err := rng.File.Unchanged(); err != nil {
		return err
	}
	order := decodeOrder{Path: rng.File.Path, Format: s.Format, Records: true, Only: names, Groups: rng.groups(), Memory: memoryFor(rng.File.Size)}
	return decode(ctx, order, func(r *decodeReply) error {
		if r.Arrow <= 0 || r.Arrow > len(r.raw) {
			return nil
		}
		in, err := ipc.NewReader(bytes.NewReader(r.raw[:r.Arrow]))
		if err != nil {
			return fault.New(fault.BadInput, "read", rng.File.Path, err)
		}
		defer in.Release()
		for in.Next() {
			if err := yield(rng.File.Path, in.Record()); err != nil {
				return err
			}
		}
		if err := in.Err(); err != nil && err != io.EOF {
			return fault.New(fault.BadInput, "read", rng.File.Path, err)
		}
		return nil
	})
}

// MalformedPolicy returns what becomes of records that are malformed.
func (s *Source) MalformedPolicy() Malformed { return s.Table.Malformed }

// Records hands on the records of a part of a table of text.
func (s *Source) Records(ctx context.Context, part int, yield func(*Record) error) error {
	return s.Table.Records(ctx, s.part(part), yield)
}

// Bad makes an error of what is wrong with a record of a part.
func (s *Source) Bad(r *Record, part int, hint string, why error) error {
	err := fault.New(fault.BadInput, "read", r.Where(), why)
	if hint != "" {
		err = err.WithHint(hint)
	}
	return s.Sure(part, err)
}
