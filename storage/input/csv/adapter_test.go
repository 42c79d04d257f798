package csv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/storage/input/files"
)

// What is in this file is all that the tests of CSV know of how a table is opened,
// cut and read.

// few is how many random tables are tried; VOLLEY_SOAK tries all.
func few(all int) int {
	if seeds.Soaking() {
		return all
	}
	return max(1, all/10)
}

// csvOptions say how a table of text is written, as testdata has them.
type csvOptions struct {
	Separator string   `json:"separator,omitempty"`
	Quote     string   `json:"quote,omitempty"`
	Escape    string   `json:"escape,omitempty"`
	Comment   string   `json:"comment,omitempty"`
	Null      string   `json:"null,omitempty"`
	NoQuotes  bool     `json:"no_quotes,omitempty"`
	Malformed string   `json:"malformed,omitempty"`
	Header    *bool    `json:"header,omitempty"`
	Typed     []string `json:"typed,omitempty"`
}

// read returns the options as readers of tables have them.
func (o csvOptions) read() Options {
	ro := Options{Separator: byteOf(o.Separator), Quote: byteOf(o.Quote), Escape: byteOf(o.Escape),
		Comment: byteOf(o.Comment),
		Null:    o.Null, NoQuotes: o.NoQuotes, Malformed: Malformed(o.Malformed), Header: o.Header, Typed: o.Typed}
	if ro.Malformed == "failfast" {
		ro.Malformed = FailFast
	}
	if ro.Typed == nil {
		ro.Typed = []string{}
	}
	return ro
}

func byteOf(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}

// csvField is a field as it is read; text is empty where it is null.
type csvField struct {
	text string
	null bool
}

// String is a field as messages have it.
func (f csvField) String() string {
	if f.null {
		return "null"
	}
	return fmt.Sprintf("%q", f.text)
}

// csvRecord is a record and the line on which it begins.
type csvRecord struct {
	line   int64
	fields []csvField
}

// csvRead is what reading a table came to.
type csvRead struct {
	names     []string // nil without a header
	records   []csvRecord
	malformed int64 // left out and counted
	refused   error // when it was opened
	err       error // when it was read
}

// csvTable is a table of one file, and its parts.
type csvTable struct {
	*Table
	file  files.File
	parts []files.Range
}

// openCSV finds out how a file is read.
func openCSV(path string, o Options) (*csvTable, error) {
	files, err := files.Resolve(path)
	if err != nil {
		return nil, err
	}
	spec, parts, err := Open(context.Background(), files, o, 16<<20)
	return &csvTable{spec, files[0], parts}, err
}

// readCSV reads a table whose parts end at some offsets.
func readCSV(path string, o csvOptions, ends ...int64) (got csvRead) {
	table, err := openCSV(path, o.read())
	if err == nil && len(ends) > 0 {
		err = table.cutAt(ends)
	}
	if err != nil {
		return csvRead{refused: err}
	}
	if table.Header {
		got.names = table.Names
	}
	for _, rng := range table.parts {
		if got.err = got.part(table, rng); got.err != nil {
			return got
		}
	}
	return got
}

// part reads a part. A nil field is null.
func (got *csvRead) part(table *csvTable, rng files.Range) error {
	return table.Records(context.Background(), rng, func(rec *Record) error {
		if rec.Wrong != "" {
			if got.malformed++; table.Malformed == FailFast || rec.First {
				return table.Sure(rng, rec.Bad(rec.Hint, errors.New(rec.Wrong)))
			}
			return nil
		}
		_, line := rec.Place()
		r := csvRecord{line: line}
		for _, f := range rec.Fields {
			r.fields = append(r.fields, csvField{string(f), f == nil})
		}
		got.records = append(got.records, r)
		return nil
	})
}

// cutAt makes parts that end at some offsets, and at the file's end, and finds the
// bounds of records near these.
func (c *csvTable) cutAt(ends []int64) (err error) {
	from, skip := int64(0), c.parts[0].Skip
	c.parts = nil
	for _, end := range append(ends[:len(ends):len(ends)], c.file.Size) {
		if end > from {
			c.parts = append(c.parts, files.Range{File: c.file, Offset: from, Length: end - from, Skip: skip})
			from = end
		}
	}
	c.parts, err = c.Cut(context.Background(), c.parts)
	return err
}

// tableFile writes a table to a file of its own.
func tableFile(t testing.TB, raw []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "table.csv")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
