package parquet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"

	"github.com/volley-engine/volley/internal/fault"
)

// listed is a Parquet file of numbers, not null or all of them there, beside lists of them.
func listed(t *testing.T, rows, group int64, nullable bool, properties ...parquet.WriterProperty) string {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: nullable},
		{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	}, nil))
	defer b.Release()
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(i * i)
		l := b.Field(1).(*array.ListBuilder)
		l.Append(true)
		for j := range i % 4 {
			l.ValueBuilder().(*array.Int64Builder).Append(j - i)
		}
	}
	rec := b.NewRecord()
	defer rec.Release()
	path := filepath.Join(t.TempDir(), "listed.parquet")
	writeParquetGroups(t, path, rec, group, append(properties, parquet.WithDictionaryDefault(false)))
	return path
}

// readListed reads all records of such a file, and says how many numbers are what they should be.
func readListed(path string) (right int64, err error) {
	o, err := openNamed(path, "n", "list")
	if err != nil {
		return 0, err
	}
	row := int64(0)
	for part := range o.parts {
		err = cmp.Or(err, o.records(part, nil, func(rec arrow.Record) error {
			for _, v := range rec.Column(0).(*array.Int64).Int64Values() {
				if v == row*row {
					right++
				}
				row++
			}
			return nil
		}))
	}
	return right, err
}

// TestAPageThatCannotBeReadIsNotTheEndOfAFile where records are read.
func TestAPageThatCannotBeReadIsNotTheEndOfAFile(t *testing.T) {
	for name, pages := range map[string]int{"all pages": -1, "the first page": 1} {
		path := listed(t, 2000, 1000, false)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// A page's head has the encoding of its values, PLAIN, and those of its levels, RLE.
		plain, other := []byte{0x15, 0, 0x15, 6, 0x15, 6}, []byte{0x15, 18, 0x15, 6, 0x15, 6}
		if n := bytes.Count(raw, plain); n < 4 {
			t.Fatalf("%d pages are encoded PLAIN", n)
		}
		if err := os.WriteFile(path, bytes.Replace(raw, plain, other, pages), 0o600); err != nil {
			t.Fatal(err)
		}
		right, err := readListed(path)
		if fault.KindOf(err) != fault.BadInput || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %d of 2000 rows are right, and %v", name, right, err)
		}
	}
}

// TestWhatIsNotReadIsSaidWithAWayOut: a column's compression or encoding, whichever way it is read.
func TestWhatIsNotReadIsSaidWithAWayOut(t *testing.T) {
	for word, change := range map[string][2][]byte{ // in the footer: names and compression, encodings
		"LZ4_RAW":           {{0x18, 1, 'n', 0x15, 0}, {0x18, 1, 'n', 0x15, 14}},
		"BYTE_STREAM_SPLIT": {{0x19, 0x25, 0, 6}, {0x19, 0x25, 18, 6}},
	} {
		path := listed(t, 2000, 1000, false)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(raw, change[0]) {
			t.Fatalf("%s: the footer is not as it was thought to be", word)
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(raw, change[0], change[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		_, records := readListed(path)
		for way, err := range map[string]error{"records": records, "columns": readColumn(path, "n")} {
			var f *fault.Error
			if !errors.As(err, &f) || !strings.Contains(err.Error(), word) || f.Hint == "" {
				t.Errorf("%s, %s: %v", word, way, err)
			}
		}
	}
}

// readColumn reads a column of numbers.
func readColumn(path, name string) error {
	o, err := openNamed(path, name)
	if err != nil {
		return err
	}
	return o.columns(context.Background(), 0, []string{name}, func(int, []*FlatColumn) error { return nil })
}

// TestDifferencesWithNullsAreReadBesideLists, in row groups of more rows than are read at a time.
func TestDifferencesWithNullsAreReadBesideLists(t *testing.T) {
	const rows = 3*decodeBatch + 5
	for _, column := range []string{"n", "list.list.element"} {
		path := listed(t, rows, 2*decodeBatch, true,
			parquet.WithEncodingFor(column, parquet.Encodings.DeltaBinaryPacked))
		if right, err := readListed(path); right != rows || err != nil {
			t.Errorf("%s: %d of %d rows are right, and %v", column, right, rows, err)
		}
	}
}

// TestOnlyColumnsThatAreWantedAreRead, of which a file that has lists may have any others.
func TestOnlyColumnsThatAreWantedAreRead(t *testing.T) {
	o, err := openNamed(listed(t, 500, 200, false), "List")
	if err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	err = o.records(0, []string{"List"}, func(rec arrow.Record) error {
		if rec.NumCols() != 1 || rec.ColumnName(0) != "list" {
			t.Errorf("a record has the columns %v", rec.Schema().Fields())
		}
		rows += rec.NumRows()
		return nil
	})
	if err != nil || rows != 500 {
		t.Errorf("%d rows, %v", rows, err)
	}
}
