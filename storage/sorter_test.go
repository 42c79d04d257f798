package storage

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type record struct {
	part       int
	key, value []byte
}

// readBuckets reads a file of sorted records back, partition by partition.
func readBuckets(path string, b *Buckets) (out []record, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for part := range len(b.Offsets) - 1 {
		r := NewRecordReader(io.NewSectionReader(f, b.Offsets[part], b.Offsets[part+1]-b.Offsets[part]))
		n := int64(0)
		for ; r.Next(); n++ {
			out = append(out, record{part, bytes.Clone(r.Key()), bytes.Clone(r.Value())})
		}
		if r.Err() != nil {
			return nil, r.Err()
		}
		if n != b.Records[part] {
			return nil, fmt.Errorf("partition %d has %d records, it says %d", part, n, b.Records[part])
		}
	}
	return out, nil
}

// TestASorterSorts, whatever its budget, and keeps the order of what has one
// key.
func TestASorterSorts(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.IntRange(1, 5).Draw(t, "partitions")
		s := NewSorter(dir, parts, 0)
		s.budget = rapid.SampledFrom([]int{1, 200, 2000, 1 << 20}).Draw(t, "budget")
		var want []record
		for i := range rapid.IntRange(0, 400).Draw(t, "records") {
			key := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 255}), 0, 12).Draw(t, "key")
			r := record{rapid.IntRange(0, parts-1).Draw(t, "part"), key, fmt.Append(nil, i)}
			want = append(want, r)
			if err := s.Add(r.part, r.key, r.value); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortStableFunc(want, func(a, b record) int {
			if a.part != b.part {
				return a.part - b.part
			}
			return bytes.Compare(a.key, b.key)
		})
		path := filepath.Join(dir, "sorted")
		b, err := s.Finish(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readBuckets(path, b)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d records, want %d: %v", len(got), len(want), err)
		}
		for i := range got {
			if got[i].part != want[i].part || !bytes.Equal(got[i].key, want[i].key) || !bytes.Equal(got[i].value, want[i].value) {
				t.Fatalf("record %d is %v, want %v", i, got[i], want[i])
			}
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "run-*")); len(left) > 0 {
			t.Fatalf("files are left: %v", left)
		}
	})
}

// TestDamageIsNoticed in any byte of a file of records.
func TestDamageIsNoticed(t *testing.T) {
	s := NewSorter(t.TempDir(), 1, 1<<20)
	for i := range 3000 {
		if err := s.Add(0, fmt.Append(nil, i), bytes.Repeat([]byte{'v'}, i%50)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "sorted")
	b, err := s.Finish(path)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(raw); at += 61 {
		bad := bytes.Clone(raw)
		bad[at] ^= 1 << (at % 8)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readBuckets(path, b); err == nil {
			t.Fatalf("a flipped bit at %d of %d goes unnoticed", at, len(raw))
		}
	}
	if err := os.WriteFile(path, raw[:len(raw)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readBuckets(path, b); err == nil {
		t.Error("a file that is cut off goes unnoticed")
	}
}

// FuzzRecords: whatever is read as records, nothing is read or allocated
// beyond it.
func FuzzRecords(f *testing.F) {
	s := NewSorter(f.TempDir(), 1, 1<<20)
	for i := range 100 {
		if err := s.Add(0, fmt.Append(nil, i), []byte("value")); err != nil {
			f.Fatal(err)
		}
	}
	path := filepath.Join(f.TempDir(), "sorted")
	if _, err := s.Finish(path); err != nil {
		f.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(_ *testing.T, raw []byte) {
		for r := NewRecordReader(bytes.NewReader(raw)); r.Next(); {
			_, _ = r.Key(), r.Value()
		}
	})
}
