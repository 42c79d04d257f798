package csv

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/text"
)

// Record is one record of a table of text. It is valid until the next one is
// read.
type Record struct {
	Fields [][]byte // without quotes; nil is an empty field, or the null text
	Wrong  string   // why it is malformed; empty where it is not
	Hint   string   // what to do about that
	First  bool     // it is a file's first, and none was a header
	Open   bool     // a quote of it is not closed: it may be any number of records
	cut    *cursor
	blk    *text.Block
	at     int
	before int64                        // lines before the part; −1: not counted
	known  struct{ offset, line int64 } // a position of the part of which the line is known
}

// Place returns the file and the line at which the record begins. It continues
// the count of its last call.
func (r *Record) Place() (path string, line int64) {
	k, at := &r.known, r.blk.Offset+int64(r.at)
	if r.before < 0 {
		r.before = r.blk.Before()
	}
	if k.line == 0 || k.offset < r.blk.Offset {
		k.offset, k.line = r.blk.Offset, r.before+r.blk.Line
	}
	k.line += int64(bytes.Count(r.blk.Data[k.offset-r.blk.Offset:r.at], []byte{r.blk.Newline}))
	k.offset = at
	return r.blk.Range.File.Path, k.line
}

// Where returns the file and line at which the record begins, as text.
func (r *Record) Where() string {
	path, line := r.Place()
	return fmt.Sprintf("%s line %d", path, line)
}

// Text returns the record as it is written, without the line's end.
func (r *Record) Text() string {
	end, _ := r.cut.recordEnd(r.blk.Data, r.at)
	for end > r.at && (r.blk.Data[end-1] == '\n' || r.blk.Data[end-1] == '\r') {
		end--
	}
	return string(r.blk.Data[r.at:end])
}

// Records yields the records of a range.
func (s *Table) Records(ctx context.Context, rng files.Range, yield func(*Record) error) error {
	r := &Record{before: -1}
	for blk, err := range s.blocks(rng) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		if err := s.recordsOf(&blk, r, yield); err != nil {
			return err
		}
	}
	return nil
}

func (s *Table) recordsOf(blk *text.Block, r *Record, yield func(*Record) error) error {
	c := cursor{dialect: &s.dialect, b: blk.Data}
	first := blk.Offset == blk.Range.Skip
	r.cut, r.blk = &c, blk
	for c.i < len(c.b) {
		if c.skipEmpty() {
			continue
		}
		r.First, r.at = first && !s.Header, c.i
		s.recordAt(&c, r)
		if err := yield(r); err != nil {
			return err
		}
		first = false
	}
	return nil
}

// recordAt cuts the record at the cursor.
func (s *Table) recordAt(c *cursor, r *Record) {
	c.begin()
	r.Fields, r.Wrong, r.Hint = r.Fields[:0], "", ""
	bad := -1
	defer func() { r.Open = c.wrong == notClosed }()
	for done := false; !done; done = c.endField() {
		field, quoted := c.text()
		if c.wrong != "" && bad < 0 {
			bad = len(r.Fields)
		}
		if !quoted && (len(field) == 0 || s.Null != "" && string(field) == s.Null) {
			field = nil
		}
		r.Fields = append(r.Fields, field)
	}
	switch r.Wrong = c.wrong; {
	case r.Wrong != "":
		r.Hint, r.Wrong = c.hint(r.Wrong), fmt.Sprintf("%s: %s", s.field(bad), r.Wrong)
	case len(r.Fields) != s.Columns:
		r.Wrong = wrongWidth(len(r.Fields), s.Columns)
	}
}

// field names a field of a record, by its number from 1 and its column.
func (s *Table) field(i int) string {
	if s.Header && i < len(s.Names) {
		return fmt.Sprintf("field %d (%q)", i+1, s.Names[i])
	}
	return fmt.Sprintf("field %d", i+1)
}

func wrongWidth(n, want int) string {
	return fmt.Sprintf("it has %d fields, the first record %d", n, want)
}

// Bad returns an error about the record.
func (r *Record) Bad(hint string, why error) error {
	err := fault.New(fault.BadInput, "read", r.Where(), why)
	if hint != "" {
		err = err.WithHint(hint)
	}
	return err
}
