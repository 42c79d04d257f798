package shuffle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// writeRows writes rows of a number of partitions.
func writeRows(w *Writer, part int, row []byte) error {
	room := w.Room(part)
	*room = append(*room, row...)
	w.Rows[part]++
	if len(*room) >= w.Block {
		return w.Flush(part)
	}
	return nil
}

// readRows reads partitions back.
func readRows(b *Output, span Span) ([]byte, error) {
	r, err := b.Open(span)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []byte
	for br := NewBlockReader(r); ; {
		block, err := br.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, block...)
	}
}

// TestBucketsHaveWhatWasWritten: every partition, and every run of neighbouring
// ones, in memory or in a file.
func TestBucketsHaveWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.IntRange(1, 6).Draw(t, "partitions")
		w := NewWriter(dir, parts, 1, rapid.SampledFrom([]int{0, 3000, 1 << 20}).Draw(t, "in memory"))
		w.Block = rapid.SampledFrom([]int{1, 100, 5000}).Draw(t, "block")
		want := make([][]byte, parts)
		for range rapid.IntRange(0, 300).Draw(t, "rows") {
			part := rapid.IntRange(0, parts-1).Draw(t, "part")
			row := bytes.Repeat([]byte{byte(rapid.IntRange(0, 255).Draw(t, "byte"))},
				rapid.IntRange(0, 200).Draw(t, "bytes"))
			want[part] = append(want[part], row...)
			if err := writeRows(w, part, row); err != nil {
				t.Fatal(err)
			}
		}
		b, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		for from := range parts {
			for through := from; through <= parts; through++ {
				got, err := readRows(b, Span{from, through})
				if err != nil || !bytes.Equal(got, bytes.Join(want[from:through], nil)) {
					t.Fatalf("partitions %d to %d are not what was written: %v", from, through, err)
				}
			}
			if b.Raw[from] != int64(len(want[from])) {
				t.Fatalf("partition %d has %d bytes, it says %d", from, len(want[from]), b.Raw[from])
			}
		}
		b.Remove()
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Fatalf("files are left: %v", left)
		}
	})
}

// someBuckets are rows in a file.
func someBuckets(t testing.TB) *Output {
	w := NewWriter(t.TempDir(), 1, 1<<20, 0)
	for i := range 3000 {
		if err := writeRows(w, 0, append(fmt.Append(nil, i), bytes.Repeat([]byte{'v'}, i%50)...)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDamageIsNoticed in any byte of a file of rows.
func TestDamageIsNoticed(t *testing.T) {
	b := someBuckets(t)
	raw, err := os.ReadFile(b.path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(raw); at += 61 {
		bad := bytes.Clone(raw)
		bad[at] ^= 1 << (at % 8)
		if err := os.WriteFile(b.path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readRows(b, Span{0, 1}); err == nil {
			t.Fatalf("a flipped bit at %d of %d goes unnoticed", at, len(raw))
		}
	}
	if err := os.WriteFile(b.path, raw[:len(raw)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRows(b, Span{0, 1}); err == nil {
		t.Error("a file that is cut off goes unnoticed")
	}
}

// TestOutputsAreDroppedAsTold and keep what is newer.
func TestOutputsAreDroppedAsTold(t *testing.T) {
	s, err := NewOutputs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keep := func(attempt uint64, row string) Key {
		w := s.NewWriter(1, 1)
		if err := writeRows(w, 0, []byte(row)); err != nil {
			t.Fatal(err)
		}
		b, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		key := Key{Node: 1, Map: 2, Attempt: attempt}
		s.Keep(key, b)
		return key
	}
	first, second := keep(1, "a"), keep(2, "b")
	s.Drop(1, 1)
	if _, err := s.Open(first, Span{0, 1}); err == nil {
		t.Error("the output of a former attempt is still there")
	}
	if r, err := s.Open(second, Span{0, 1}); err != nil {
		t.Error(err)
	} else {
		r.Close()
	}
	if _, err := s.Open(second, Span{0, 2}); err == nil {
		t.Error("a partition that is not there can be read")
	}
	s.Drop(1, 2)
	if _, err := s.Open(second, Span{0, 1}); err == nil || s.mu.small != 0 {
		t.Errorf("what was dropped is still there: %v, %d bytes", err, s.mu.small)
	}
}

// FuzzBlocks: whatever is read as blocks, nothing is read or allocated beyond
// it.
func FuzzBlocks(f *testing.F) {
	raw, err := os.ReadFile(someBuckets(f).path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(_ *testing.T, raw []byte) {
		for r := NewBlockReader(bytes.NewReader(raw)); ; {
			if _, err := r.Next(); err != nil {
				return
			}
		}
	})
}

// TestOutputsKeepTheirRows, whatever writers after them do with memory that one has had,
// and are read from memory in pieces of any size.
func TestOutputsKeepTheirRows(t *testing.T) {
	var all []*Output
	for n := range 20 {
		w := NewWriter(t.TempDir(), 3, 1<<20, 1<<20)
		for part := range 3 {
			for block := range 3 {
				*w.Room(part) = append(*w.Room(part), bytes.Repeat([]byte{byte(n), byte(part), byte(block)}, 700)...)
				if err := w.Flush(part); err != nil {
					t.Fatal(err)
				}
			}
		}
		b, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	for n, b := range all {
		for _, span := range []Span{{0, 3}, {1, 2}, {2, 3}} {
			for _, whole := range []bool{true, false} {
				checkOutput(t, b, span, n, whole)
			}
		}
	}
}

func checkOutput(t *testing.T, b *Output, span Span, n int, whole bool) {
	in, err := b.Open(span)
	if err != nil {
		t.Fatal(err)
	}
	var from io.Reader = in
	if !whole {
		from = iotest.OneByteReader(in)
	}
	r := NewBlockReader(from)
	for part := span.From; part < span.Through; part++ {
		for block := range 3 {
			got, err := r.Next()
			if want := bytes.Repeat([]byte{byte(n), byte(part), byte(block)}, 700); err != nil ||
				!bytes.Equal(got, want) {
				t.Fatalf("output %d, partition %d, block %d: %d bytes, %v", n, part, block, len(got), err)
			}
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("after the last block: %v", err)
	}
}
