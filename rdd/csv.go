package rdd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/csv"
)

// What becomes of records of tables that are malformed, in Input.Malformed: they
// fail the action, are left out, or come with their text in a field of type
// Malformed.
const (
	FailFast      = csv.FailFast
	DropMalformed = csv.DropMalformed
	KeepMalformed = csv.KeepMalformed
)

// Malformed, as the type of a field of CSV's rows, is the text of a record that
// is malformed, and empty in all others.
type Malformed string

// CSV is a dataset of the records of CSV files: each field of T is read from the
// column of its name, or of its tag col. Where the files have no header, fields
// are read in their order. The zero Input finds out separator and header; a
// field of nothing is a null, or the zero value of a string.
//
// Fields may be quoted by ", and hold newlines and doubled quotes then; Input says
// where that is otherwise. A record is malformed if it has more or fewer fields
// than the first one, text after a closing quote, or a field that is no value of
// its type: Input.Malformed says what becomes of it. What [CSVMalformed] has is
// what DropMalformed leaves out.
func CSV[T any](g *Graph, in Input, uris ...string) Dataset[T] {
	c := csvColumns[T](g, &in)
	return typedSource(g, "csv", in, uris,
		func(s *input.Source, ctx context.Context, part int, yield func([]T) error) error {
			b := newBatcher(yield)
			err := c.read(s, ctx, part, func(row *T, _ *csv.Record, _ error) error {
				if row == nil {
					return nil
				}
				return b.add(*row)
			})
			return firstError(err, b.flush())
		})
}

// MalformedRecord is a record that is no T.
type MalformedRecord struct {
	Path string // of its file
	Line int64  // at which it begins, from 1
	Why  string
	Text string // as it is written
}

// CSVMalformed is a dataset of the records that CSV leaves out, where its Input has
// DropMalformed: to count them, or to save them.
func CSVMalformed[T any](g *Graph, in Input, uris ...string) Dataset[MalformedRecord] {
	in.Malformed = DropMalformed
	c := csvColumns[T](g, &in)
	return typedSource(g, "csv-malformed", in, uris,
		func(s *input.Source, ctx context.Context, part int, yield func([]MalformedRecord) error) error {
			b := newBatcher(yield)
			err := c.read(s, ctx, part, func(row *T, r *csv.Record, why error) error {
				if row != nil {
					return nil
				}
				path, line := r.Place()
				return b.add(MalformedRecord{Path: path, Line: line, Why: why.Error(), Text: r.Text()})
			})
			return firstError(err, b.flush())
		})
}

// csvRows reads rows of a type from records.
type csvRows[T any] struct {
	*columns[T]
	malformed int // field of the type Malformed; −1 without one
}

// csvColumns derives the columns of T, and tells the input of them.
func csvColumns[T any](g *Graph, in *Input) csvRows[T] {
	all := columnsFor[T](g, "csv")
	c := csvRows[T]{&columns[T]{schema: all.schema}, -1}
	for _, f := range all.fields {
		switch {
		case f.malformed:
			c.malformed = int(f.offset)
			continue
		case f.parse == nil:
			g.fail("csv: column %q cannot be a field of text", f.name)
		}
		c.fields = append(c.fields, f)
	}
	if in.Malformed == KeepMalformed && c.malformed < 0 {
		g.fail("csv: malformed records are to be kept: give %v a field of type rdd.Malformed for their text",
			reflect.TypeFor[T]())
	}
	if in.Format == input.Auto {
		in.Format = input.CSV
	}
	if in.Typed = c.names(); in.Typed == nil {
		in.Typed = []string{}
	}
	return c
}

// read turns records into rows. A record that is left out comes without a row, with
// why. A file's first one never is: it may be a header.
func (c csvRows[T]) read(s *input.Source, ctx context.Context, part int,
	yield func(row *T, r *csv.Record, why error) error) error {
	at, err := c.places(s)
	if err != nil {
		return err
	}
	var text arena
	var row T
	policy := s.MalformedPolicy()
	return s.Records(ctx, part, func(r *csv.Record) error {
		row = *new(T)
		why := c.row(r, at, &row, &text)
		switch {
		case why == nil:
		case policy == FailFast || r.First || policy == DropMalformed && r.Open:
			return s.Bad(r, part, c.hintOf(r), why)
		case policy == DropMalformed:
			return yield(nil, r, why)
		default:
			*(*Malformed)(unsafe.Add(unsafe.Pointer(&row), c.malformed)) = Malformed(r.Text())
		}
		return yield(&row, r, why)
	})
}

// hintOf says what to do about a malformed record: a file's first one may be a header
// whose names are none of the type's.
func (c csvRows[T]) hintOf(r *csv.Record) string {
	if r.Hint == "" && r.First {
		return fmt.Sprintf("if the first line is a header, none of its names, %s, is one of the columns %s: the tag "+
			"col names others, and Header decides whether it is one",
			clipped(bytes.Join(r.Fields, []byte(" "))), strings.Join(c.names(), " "))
	}
	return r.Hint
}

// row reads what can be read of a record, and returns what is wrong with it.
func (c csvRows[T]) row(r *csv.Record, at []int, row *T, text *arena) (why error) {
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

func (f column) parseField(field []byte, p unsafe.Pointer, text *arena) error {
	if len(field) == 0 && !f.null && !isText(f.arrow) {
		return fmt.Errorf("it is empty: make the field a pointer or an sql.Null")
	}
	return f.parse(field, p, text)
}

// clipped is the beginning of a field, for a message.
func clipped(field []byte) string { return string(field[:min(len(field), 60)]) }

// places are the numbers of the columns' fields in a record.
func (c csvRows[T]) places(s *input.Source) ([]int, error) {
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

// placeOf is where a name is among names, without regard to case if need be; −1
// nowhere.
func placeOf(name string, names []string) int {
	at := -1
	for k, n := range names {
		if n == name || at < 0 && strings.EqualFold(n, name) {
			at = k
		}
	}
	return at
}
