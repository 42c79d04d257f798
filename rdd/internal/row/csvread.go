package row

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/csv"
	"github.com/volley-engine/volley/storage/input/files"
)

// Malformed, as the type of a field of CSV's rows, is the text of a record that
// is malformed, and empty in all others.
type Malformed string

// CSVRows reads rows of type T from the records of CSV files.
type CSVRows[T any] struct {
	*Columns[T]
	malformed int // field of the type Malformed; −1 without one
}

// CSVRowsOf returns a reader of rows with the given columns, and the names of those that cannot be read from
// text.
func CSVRowsOf[T any](all *Columns[T]) (c CSVRows[T], notText []string) {
	c = CSVRows[T]{&Columns[T]{schema: all.schema}, -1}
	for _, f := range all.fields {
		switch {
		case f.malformed:
			c.malformed = int(f.offset)
			continue
		case f.parse == nil:
			notText = append(notText, f.name)
		}
		c.fields = append(c.fields, f)
	}
	return c, notText
}

// Keyed returns a reader of the columns that are in a file, and what sets the others, as Columns.Keyed does.
func (c CSVRows[T]) Keyed(f files.File) (inFile CSVRows[T], set func(rows []T), err error) {
	columns, set, err := c.Columns.Keyed(f)
	return CSVRows[T]{columns, c.malformed}, set, err
}

// KeepsMalformed reports whether T has a field for the text of malformed records.
func (c CSVRows[T]) KeepsMalformed() bool { return c.malformed >= 0 }

// Read yields the rows of a part. A record that is left out is yielded without a row, with the reason; the
// first record of a file never is, since it may be a header.
func (c CSVRows[T]) Read(s *input.Source, ctx context.Context, part int,
	yield func(row *T, r *csv.Record, why error) error) error {
	at, err := c.places(s)
	if err != nil {
		return err
	}
	var text Arena
	var row T
	policy := s.MalformedPolicy()
	return s.Records(ctx, part, func(r *csv.Record) error {
		row = *new(T)
		why := c.row(r, at, &row, &text)
		switch {
		case why == nil:
		case policy == csv.FailFast || r.First || policy == csv.DropMalformed && r.Open:
			return s.Bad(r, part, c.hintOf(r), why)
		case policy == csv.DropMalformed:
			return yield(nil, r, why)
		default:
			*(*Malformed)(unsafe.Add(unsafe.Pointer(&row), c.malformed)) = Malformed(r.Text())
		}
		return yield(&row, r, why)
	})
}

// hintOf returns what to do about a malformed record: a file's first one may be a header
// whose names are none of the type's.
func (c CSVRows[T]) hintOf(r *csv.Record) string {
	if r.Hint == "" && r.First {
		return fmt.Sprintf("if the first line is a header, none of its names, %s, is one of the columns %s: the tag "+
			"col names others, and Header decides whether it is one",
			clipped(bytes.Join(r.Fields, []byte(" "))), strings.Join(c.Names(), " "))
	}
	return r.Hint
}

// row reads what can be read of a record, and returns what is wrong with it.
func (c CSVRows[T]) row(r *csv.Record, at []int, row *T, text *Arena) (why error) {
	if r.Wrong != "" {
		return errors.New(r.Wrong)
	}
	for i, f := range c.fields {
		field := r.Fields[at[i]]
		err := f.parseField(field, unsafe.Add(unsafe.Pointer(row), f.offset), text)
		if err == nil {
			continue
		}
		if why == nil {
			why = fmt.Errorf("column %q: %q: %w", f.name, clipped(field), err)
		}
	}
	return why
}

func (f column) parseField(field []byte, p unsafe.Pointer, text *Arena) error {
	if len(field) == 0 && !f.null && !f.text {
		return fmt.Errorf("it is empty: make the field a pointer or an sql.Null")
	}
	return f.parse(field, p, text)
}

// clipped returns the beginning of a field, for a message.
func clipped(field []byte) string { return string(field[:min(len(field), 60)]) }

// places returns the numbers of the columns' fields in a record.
func (c CSVRows[T]) places(s *input.Source) ([]int, error) {
	names, own := s.FieldNames()
	at := make([]int, len(c.fields))
	for i, f := range c.fields {
		if at[i] = i; own {
			at[i] = placeOf(f.name, names)
		}
		switch {
		case at[i] < 0:
			return nil, fault.Newf(fault.BadInput, "read", s.Files[0].Path, "it has no column %q; its columns are %s",
				f.name, strings.Join(names, " "))
		case at[i] >= len(names):
			return nil, fault.Newf(fault.BadInput, "read", s.Files[0].Path,
				"its records have %d fields, column %q would be number %d", len(names), f.name, i+1)
		}
	}
	return at, nil
}

// placeOf returns the index of a name, without regard to case if need be; -1 where there is none.
func placeOf(name string, names []string) int {
	at := -1
	for k, n := range names {
		if n == name || at < 0 && strings.EqualFold(n, name) {
			at = k
		}
	}
	return at
}
