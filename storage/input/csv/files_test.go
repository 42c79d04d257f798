package csv

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/datasets"
)

// csvFile is a real table, and what other readers find in it. A column has the CRC-32
// of its fields, a zero byte after each, and how many are null (0xff for the check).
type csvFile struct {
	Path      string     `json:"path"`
	Options   csvOptions `json:"options"`
	Names     []string   `json:"names"`
	Records   int        `json:"records"`
	Fields    int        `json:"fields"`
	LastLine  int64      `json:"lastLine"`
	Malformed int64      `json:"malformed"`
	First     int64      `json:"first"` // line of the first malformed record
	Columns   []string   `json:"columns"`
	Agrees    []string   `json:"agrees"`
}

// TestRealTables reports whether the tables of the shared data are read as by others,
// as a whole and, where they are not compressed, in parts.
func TestRealTables(t *testing.T) {
	root := datasets.Path(t, "")
	raw, err := os.ReadFile(filepath.Join("testdata", "files.json"))
	if err != nil {
		t.Fatal(err)
	}
	var files []csvFile
	if err := json.Unmarshal(raw, &files); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(f.Path, func(t *testing.T) {
			info, err := os.Stat(filepath.Join(root, f.Path))
			if err != nil {
				t.Skip(err)
			}
			f.check(t, filepath.Join(root, f.Path))
			if !strings.HasSuffix(f.Path, ".gz") && !t.Failed() {
				f.check(t, filepath.Join(root, f.Path), every(int(info.Size()/37)+1, int(info.Size()))...)
			}
		})
	}
}

func (f csvFile) check(t *testing.T, path string, ends ...int64) {
	t.Helper()
	o := f.Options
	if f.Malformed > 0 {
		checkMalformed(t, "whole", path, f.Names, readCSV(path, o, ends...).err, csvBad{Line: f.First})
		o.Malformed = "drop"
	}
	got := readCSV(path, o, ends...)
	if got.refused != nil || got.err != nil {
		t.Fatalf("%v %v", got.refused, got.err)
	}
	if len(got.records) != f.Records || got.malformed != f.Malformed || !slices.Equal(got.names, f.Names) {
		t.Fatalf("%d records, %d malformed, names %q; want %d, %d, %q", len(got.records), got.malformed, got.names,
			f.Records, f.Malformed, f.Names)
	}
	if f.Records > 0 && got.records[f.Records-1].line != f.LastLine {
		t.Errorf("the last record is said to be in line %d, want %d", got.records[f.Records-1].line, f.LastLine)
	}
	if columns := checksums(got.records, f.Fields); !slices.Equal(columns, f.Columns) {
		t.Errorf("columns %v, want %v", columns, f.Columns)
	}
}

// checksums are those of the columns of records, with their nulls.
func checksums(records []csvRecord, columns int) (out []string) {
	for k := range columns {
		sum, nulls := uint32(0), 0
		for _, r := range records {
			text := r.fields[k].text
			if r.fields[k].null {
				text, nulls = "\xff", nulls+1
			}
			sum = crc32.Update(sum, crc32.IEEETable, []byte(text+"\x00"))
		}
		out = append(out, fmt.Sprintf("%08x %d", sum, nulls))
	}
	return out
}
