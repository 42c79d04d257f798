package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// What is in this file is all that the tests of CSV know of how a table is opened,
// cut and read.

// few is how many random tables are tried; VOLLEY_SOAK tries all.
func few(all int) int {
	if os.Getenv("VOLLEY_SOAK") != "" {
		return all
	}
	return max(1, all/6)
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

// read returns the options as storage has them.
func (o csvOptions) read() ReadOptions {
	ro := ReadOptions{Format: CSV, Separator: byteOf(o.Separator), Quote: byteOf(o.Quote), Escape: byteOf(o.Escape), Comment: byteOf(o.Comment),
		Null: o.Null, NoQuotes: o.NoQuotes, Malformed: Malformed(o.Malformed), Header: o.Header, Typed: o.Typed}
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

// readCSV reads a table whose parts end at some offsets.
func readCSV(path string, o csvOptions, ends ...int64) (got csvRead) {
	src, err := OpenSource(o.read(), path)
	if err == nil && len(ends) > 0 {
		err = cutAt(src, ends)
	}
	if err != nil {
		return csvRead{refused: err}
	}
	if names, own := src.FieldNames(); own {
		got.names = names
	}
	for part := range src.Len() {
		if got.err = got.part(src, part); got.err != nil {
			return got
		}
	}
	return got
}

// part reads a part. A nil field is null.
func (got *csvRead) part(src *Source, part int) error {
	return src.Records(context.Background(), part, func(rec *Record) error {
		if rec.Wrong != "" {
			if got.malformed++; src.MalformedPolicy() == FailFast || rec.First {
				return src.Bad(rec, part, rec.Hint, errors.New(rec.Wrong))
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

// cutAt makes parts of a source of one file that end at some offsets, and at its end,
// and has it find the bounds of records near these.
func cutAt(src *Source, ends []int64) (err error) {
	file, from, skip := src.Files[0], int64(0), src.Parts[0].Skip
	src.Parts = nil
	for _, end := range append(ends[:len(ends):len(ends)], file.Size) {
		if end > from {
			src.Parts = append(src.Parts, Range{File: file, Offset: from, Length: end - from, Skip: skip})
			from = end
		}
	}
	src.Parts, err = src.Table.cut(context.Background(), src.Parts)
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
