package row

import (
	"strings"
	"testing"
)

// TestRecordsOfTablesAreCutByBytes, and those of short rows by rows only.
func TestRecordsOfTablesAreCutByBytes(t *testing.T) {
	for _, long := range []int{8, 10_000} {
		c, err := ColumnsOf[string]()
		if err != nil {
			t.Fatal(err)
		}
		s, records := newRecordWriter(c), 0
		s.end = func() error { return nil }
		s.write = func(bytes int) error {
			rec := s.b.NewRecord()
			defer rec.Release()
			records++
			if bytes > recordBytes+20*long || rec.NumRows() > 2*recordRows {
				t.Errorf("rows of %d bytes: a record of %d bytes, %d rows", long, bytes, rec.NumRows())
			}
			return nil
		}
		rows := make([]string, 1000)
		for i := range rows {
			rows[i] = strings.Repeat("x", long)
		}
		for range 40 {
			if err := s.Add(rows); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if least := 40 * 1000 * long / recordBytes; records < max(3, least) || records > max(3, least+least/4) {
			t.Errorf("rows of %d bytes: %d records", long, records)
		}
	}
}
