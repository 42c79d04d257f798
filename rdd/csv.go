package rdd

import (
	"cmp"
	"context"
	"reflect"

	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/csv"
)

// What becomes of records of tables that are malformed, in CSVOptions.Malformed: they
// fail the action, are left out, or come with their text in a field of type
// Malformed.
const (
	FailFast      = csv.FailFast
	DropMalformed = csv.DropMalformed
	KeepMalformed = csv.KeepMalformed
)

// CSVOptions says how CSV files are written. The zero value of an option detects, or is what RFC 4180 has.
type CSVOptions struct {
	Separator byte            // between fields; 0 detects
	Quote     byte            // around fields; 0 is "
	NoQuotes  bool            // quotes are text
	Escape    byte            // before a quote within quotes; 0: quotes are doubled
	Comment   byte            // lines that begin with it are no records; 0 is none
	Null      string          // text of a field without quotes that is null, besides nothing
	Header    *bool           // the first record has the names of the columns; nil detects
	Malformed MalformedPolicy // what becomes of malformed records
	Quoted    bool            // quoted fields hold newlines, although none is in the beginning
}

// MalformedPolicy is what becomes of malformed records: FailFast, DropMalformed or KeepMalformed.
type MalformedPolicy = csv.Malformed

func (o CSVOptions) input() Input {
	return Input{Format: input.CSV, Separator: o.Separator, Quote: o.Quote, NoQuotes: o.NoQuotes, Escape: o.Escape,
		Comment: o.Comment, Null: o.Null, Header: o.Header, Malformed: o.Malformed, Quoted: o.Quoted}
}

// CSV returns a dataset of the records of CSV files: each field of T is read from the
// column of its name, or of its tag col. Where the files have no header, fields
// are read in their order. The zero CSVOptions find out separator and header; a
// field of nothing is a null, or the zero value of a string.
//
// Fields may be quoted by ", and hold newlines and doubled quotes then; the options say
// where that is otherwise. A record is malformed if it has more or fewer fields
// than the first one, text after a closing quote, or a field that is no value of
// its type: Malformed says what becomes of it. What [CSVMalformed] has is
// what DropMalformed leaves out.
func CSV[T any](g *Graph, o CSVOptions, uris ...string) Dataset[T] {
	in := o.input()
	c := csvColumns[T](g, &in)
	return typedSource(g, "csv", in, uris,
		func(s *input.Source, ctx context.Context, part int, yield func([]T) error) error {
			in, set, err := c.Keyed(s.Parts[part].File)
			if err != nil {
				return err
			}
			b := row.NewBatcher(setting(set, yield))
			err = in.Read(s, ctx, part, func(row *T, _ *csv.Record, _ error) error {
				if row == nil {
					return nil
				}
				return b.Add(*row)
			})
			return cmp.Or(err, b.Flush())
		})
}

// MalformedRecord is a record that is no T.
type MalformedRecord struct {
	Path string // of its file
	Line int64  // at which it begins, from 1
	Why  string
	Text string // as it is written
}

// CSVMalformed returns a dataset of the records that CSV leaves out, where its options have
// DropMalformed: to count them, or to save them.
func CSVMalformed[T any](g *Graph, o CSVOptions, uris ...string) Dataset[MalformedRecord] {
	in := o.input()
	in.Malformed = DropMalformed
	c := csvColumns[T](g, &in)
	return typedSource(g, "csv-malformed", in, uris,
		func(s *input.Source, ctx context.Context, part int, yield func([]MalformedRecord) error) error {
			in, _, err := c.Keyed(s.Parts[part].File)
			if err != nil {
				return err
			}
			b := row.NewBatcher(yield)
			err = in.Read(s, ctx, part, func(row *T, r *csv.Record, why error) error {
				if row != nil {
					return nil
				}
				path, line := r.Place()
				return b.Add(MalformedRecord{Path: path, Line: line, Why: why.Error(), Text: r.Text()})
			})
			return cmp.Or(err, b.Flush())
		})
}

// csvColumns derives the columns of T, and tells the input of them.
func csvColumns[T any](g *Graph, in *Input) row.CSVRows[T] {
	c, notText := row.CSVRowsOf(columnsFor[T](g, "csv"))
	for _, name := range notText {
		g.fail("csv: column %q cannot be a field of text", name)
	}
	if in.Malformed == KeepMalformed && !c.KeepsMalformed() {
		g.fail("csv: malformed records are to be kept: give %v a field of type rdd.Malformed for their text",
			reflect.TypeFor[T]())
	}
	if in.Format == input.Auto {
		in.Format = input.CSV
	}
	if in.Typed = c.Names(); in.Typed == nil {
		in.Typed = []string{}
	}
	return c
}
