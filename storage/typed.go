package storage

import (
	"bytes"
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
		err = s.planFields(o)
	default: // lines
		s.Parts, err = Ranges(files, textPart(files), nil)
	}
	return s, err
}

// How much text one part of a dataset of lines has: of little data less, so that
// there are about fewParts, but never less than textLeast.
const (
	textLeast = 2 << 20
	textBytes = 32 << 20
)

func textPart(files []File) int64 {
	var total int64
	for _, f := range files {
		total += f.Size
	}
	return min(textBytes, max(textLeast, total/fewParts))
}

// planFlat cuts Parquet files into parts of whole row groups, and says whether
// the columns can be read by the low-level readers.
func (s *Source) planFlat(names []string) error {
	s.Flat = true
	groups := make([][]int64, len(s.Files))
	var total int64
	for i, file := range s.Files {
		f, err := openFlat(file.Path)
		if err != nil {
			return err
		}
		for _, n := range f.groups() {
			groups[i], total = append(groups[i], n), total+n
		}
		for _, name := range names {
			if f.column(name) < 0 && !f.hasGroup(name) {
				err = fault.Newf(fault.BadInput, "read", file.Path, "it has no column %q; its columns are %s", name, strings.Join(f.names(), " "))
			}
		}
		s.Flat = s.Flat && f.flat(names)
		f.close()
		if err != nil {
			return err
		}
	}
	// Enough parts to share out, each large enough for a map task to combine much.
	most := groupPart(total)
	for i, file := range s.Files {
		s.Parts = append(s.Parts, groupParts(file, groups[i], most)...)
	}
	return nil
}

// hasGroup says whether a file has a column of columns.
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

// planFields finds out how the fields of a table are written.
func (s *Source) planFields(o ReadOptions) error {
	if s.Format == TSV && o.Separator == 0 {
		o.Separator = '\t'
	}
	for i, f := range s.Files {
		head, err := headOf(f.Path)
		if err != nil {
			return err
		}
		lines := headLines(head, 20)
		if len(lines) == 0 {
			return fault.Newf(fault.BadInput, "read", f.Path, "the file is empty")
		}
		spec := tableSpec{Separator: o.Separator, Null: o.Null, Quoted: o.Quoted || bytes.IndexByte(head, '"') >= 0}
		if spec.Separator == 0 {
			if spec.Separator = detectSeparator(lines); spec.Separator == blankRuns {
				spec.Separator = ',' // texts have blanks in them
			}
		}
		first, _ := splitRecord(stripHash(lines[0]), spec.Separator)
		spec.Columns = len(first)
		spec.Header = namesColumns(first, o.Typed)
		if o.Header != nil {
			spec.Header = *o.Header
		}
		spec.Names = columnNames(first, spec.Header)
		if i == 0 {
			s.Table = &spec
		} else if spec.Header != s.Table.Header {
			return fault.Newf(fault.BadInput, "read", f.Path+" line 1", "of this file and the first one, %s, only one has a header", s.Files[0].Path).
				WithHint("read them apart, or set Header")
		} else if spec.Header && strings.Join(spec.Names, "\n") != strings.Join(s.Table.Names, "\n") {
			return fault.Newf(fault.BadInput, "read", f.Path+" line 1", "its columns are %s, those of the first file %s",
				strings.Join(spec.Names, " "), strings.Join(s.Table.Names, " "))
		}
		s.Table.Quoted = s.Table.Quoted || spec.Quoted
	}
	var err error
	s.Parts, err = Ranges(s.Files, textPart(s.Files), func(File) bool { return s.Table.Quoted })
	return err
}

// namesColumns says whether a first line names a column of the type.
func namesColumns(first, names []string) bool {
	for _, f := range first {
		for _, n := range names {
			if strings.EqualFold(strings.TrimSpace(f), n) {
				return true
			}
		}
	}
	return false
}

// Null is the text of a field that is null, besides nothing.
func (s *Source) Null() string { return s.Table.Null }

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

// Records hands on the records of a table of text, cut into fields without their
// quotes; both are valid during the call only.
func (s *Source) Records(ctx context.Context, part int, yield func(where func() Where, fields [][]byte) error) error {
	rng := s.Parts[part]
	for blk, err := range s.blocks(part) {
		if err = firstOf(err, ctx.Err()); err != nil {
			return err
		}
		c := fieldCutter{data: blk.data, sep: s.Table.Separator, quoted: s.Table.Quoted}
		for line := blk.line; c.next(); line += c.lines {
			if s.Table.Header && blk.offset == 0 && line == 1 || c.blank {
				continue
			}
			where := func() Where { return Where{rng.File.Path, line, rng.Offset} }
			switch {
			case c.open:
				return fault.Newf(fault.BadInput, "read", where().String(), "a quote is not closed")
			case c.quote:
				return fault.Newf(fault.BadInput, "read", where().String(), "a field begins with a quote, but none did in the beginning of the files").
					WithHint("set Quoted")
			}
			if err := yield(where, c.fields); err != nil {
				return err
			}
		}
	}
	return nil
}

// fieldCutter cuts text into records and fields.
type fieldCutter struct {
	data   []byte
	sep    byte
	quoted bool
	fields [][]byte
	lines  int64 // that the record takes
	open   bool  // it ends within quotes
	blank  bool  // it is an empty line
	quote  bool  // a field begins with a quote where none was expected
}

func (c *fieldCutter) next() bool {
	if len(c.data) == 0 {
		return false
	}
	c.fields, c.lines = c.fields[:0], 1
	c.blank = c.data[0] == '\n' || len(c.data) > 1 && c.data[0] == '\r' && c.data[1] == '\n'
	if !c.quoted {
		line, rest, _ := bytes.Cut(c.data, []byte{'\n'})
		c.data = rest
		c.cutLine(bytes.TrimSuffix(line, []byte{'\r'}))
		return true
	}
	for {
		if len(c.data) == 0 { // the data end with a separator
			c.fields = append(c.fields, nil)
			return true
		}
		field, end := c.field()
		c.fields = append(c.fields, field)
		c.data = c.data[end:]
		if len(c.data) == 0 {
			return true
		}
		last := c.data[0]
		c.data = c.data[1:]
		if last == '\n' {
			return true
		}
	}
}

func (c *fieldCutter) cutLine(line []byte) {
	for {
		c.quote = c.quote || len(line) > 0 && line[0] == '"'
		i := bytes.IndexByte(line, c.sep)
		if i < 0 {
			c.fields = append(c.fields, line)
			return
		}
		c.fields, line = append(c.fields, line[:i]), line[i+1:]
	}
}

// field is the field that the data begin with, and where it ends: at a separator,
// a newline or the end.
func (c *fieldCutter) field() (field []byte, end int) {
	if c.data[0] == '"' {
		field, end = unquote(c.data, 0)
		c.lines += int64(bytes.Count(c.data[:end], []byte{'\n'}))
		c.open = end == len(c.data) && (end < 2 || c.data[end-1] != '"')
		for end < len(c.data) && c.data[end] != c.sep && c.data[end] != '\n' {
			end++ // what stands between a closing quote and the separator
		}
		return field, end
	}
	for end < len(c.data) && c.data[end] != c.sep && c.data[end] != '\n' {
		end++
	}
	return bytes.TrimSuffix(c.data[:end], []byte{'\r'}), end
}

// EachLine hands on the lines of a part with their places.
func (s *Source) EachLine(ctx context.Context, part int, yield func(where func() Where, line []byte) error) error {
	rng := s.Parts[part]
	for blk, err := range textBlocks(rng) {
		if err = firstOf(err, ctx.Err()); err != nil {
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
// it can be read so: a few thousand at a time, valid during the call only.
func (s *Source) FlatColumns(ctx context.Context, part int, names []string, yield func(rows int, cols []*FlatColumn) error) error {
	rng := s.Parts[part]
	if err := rng.File.Unchanged(); err != nil {
		return err
	}
	f, err := openFlat(rng.File.Path)
	if err != nil {
		return err
	}
	defer f.close()
	if !f.flat(names) {
		return fault.Newf(fault.BadInput, "read", rng.File.Path, "its columns are not those it had")
	}
	return f.read(ctx, rng.groups(), names, yield)
}

// groups are the row groups of a part.
func (r Range) groups() (out []int) {
	for g := range r.Length {
		out = append(out, int(r.Offset+g))
	}
	return out
}

// ArrowRecords hands on the rows of a part of a Parquet or Arrow file as Arrow
// records, which are valid during the call only. A child process decodes them.
func (s *Source) ArrowRecords(ctx context.Context, part int, yield func(path string, rec arrow.Record) error) error {
	rng := s.Parts[part]
	if err := rng.File.Unchanged(); err != nil {
		return err
	}
	order := decodeOrder{Path: rng.File.Path, Format: s.Format, Records: true, Groups: rng.groups(), Memory: memoryFor(rng.File.Size)}
	var own error // of whom the records are handed to
	err := decode(ctx, order, func(r *decodeReply, _ *Chunk) error {
		if r.raw == nil {
			return nil
		}
		in, err := ipc.NewReader(bytes.NewReader(r.raw))
		if err != nil {
			return fault.New(fault.BadInput, "read", rng.File.Path, err)
		}
		defer in.Release()
		for in.Next() {
			if own = yield(rng.File.Path, in.Record()); own != nil {
				return own
			}
		}
		if err := in.Err(); err != nil && err != io.EOF {
			return fault.New(fault.BadInput, "read", rng.File.Path, err)
		}
		return nil
	})
	return firstOf(own, err)
}
