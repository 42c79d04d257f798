package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"

	"github.com/volley-engine/volley/internal/fault"
)

// claimingFile is a Parquet file whose first page says that it is much larger than it is.
func claimingFile(t *testing.T) string {
	t.Helper()
	path := tableOf(t, 200_000, 1, false, parquet.WithDictionaryDefault(false), parquet.WithCompression(compress.Codecs.Snappy), parquet.WithDataPageSize(4<<20))
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The head begins, in Thrift's compact protocol, with the page's kind and its size.
	size := binary.AppendVarint([]byte{0x15, 0x00, 0x15}, 8*200_000)
	claim := binary.AppendVarint([]byte{0x15, 0x00, 0x15}, 1<<27-1)
	if len(size) != len(claim) || bytes.Index(raw, size) != 4 {
		t.Fatalf("the first page's head is % x", raw[4:24])
	}
	copy(raw[4:], claim)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWhatFilesClaimIsNotAllocatedHere, by whichever way Parquet files are read: they are
// decoded in a child process (ADR 2).
func TestWhatFilesClaimIsNotAllocatedHere(t *testing.T) {
	path := claimingFile(t)
	for way, read := range map[string]func() error{
		"points": func() error { _, _, err := readAll(path); return err },
		"typed": func() error {
			src, err := OpenSource(ReadOptions{Format: Parquet, Typed: []string{"key", "x0"}}, path)
			if err != nil {
				return err
			}
			return src.FlatColumns(context.Background(), 0, []string{"key", "x0"}, func(int, []*FlatColumn) error { return nil })
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := read()
		runtime.ReadMemStats(&after)
		if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 32 {
			t.Errorf("%s: %d MiB were allocated for a page of 1.6 MB", way, grown)
		}
		if fault.KindOf(err) != fault.BadInput || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", way, err)
		}
	}
}

// mixed are columns of all kinds: with nulls, and with texts of which one has more bytes
// than the memory that is shared with a decoder.
func mixed() arrow.Record {
	fields := []arrow.Field{{Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}, {Name: "small", Type: arrow.PrimitiveTypes.Int32},
		{Name: "large", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "float", Type: arrow.PrimitiveTypes.Float32},
		{Name: "double", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "when", Type: arrow.FixedWidthTypes.Timestamp_us}, {Name: "nothing", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 20_000 {
		b.Field(1).(*array.Int32Builder).Append(int32(i))
		b.Field(3).(*array.Float32Builder).Append(rng.Float32())
		b.Field(6).(*array.TimestampBuilder).Append(arrow.Timestamp(i))
		b.Field(7).AppendNull()
		if i%7 == 3 {
			for _, k := range []int{0, 2, 4, 5} {
				b.Field(k).AppendNull()
			}
			continue
		}
		b.Field(0).(*array.BooleanBuilder).Append(i%3 == 0)
		b.Field(2).(*array.Int64Builder).Append(rng.Int64())
		b.Field(4).(*array.Float64Builder).Append(rng.NormFloat64())
		text := strings.Repeat("text ", rng.IntN(20))
		if i == 9000 {
			text = strings.Repeat("long", slotBytes)
		}
		b.Field(5).(*array.StringBuilder).Append(text)
	}
	return b.NewRecord()
}

// column is all that came of a column.
type gathered struct {
	Unit    TimeUnit
	Defs    []int16
	Values  []string
	batches int
}

func (g *gathered) take(rows int, c *FlatColumn) {
	g.Unit, g.batches = c.Unit, g.batches+1
	defs := c.Defs
	if defs == nil {
		defs = slices.Repeat([]int16{1}, rows)
	}
	g.Defs = append(g.Defs, defs...)
	for _, some := range []any{c.Bools, c.Int32s, c.Int64s, c.Floats, c.Doubles} {
		for v := reflect.ValueOf(some); v.Len() > 0; v = v.Slice(1, v.Len()) {
			g.Values = append(g.Values, fmt.Sprint(v.Index(0)))
		}
	}
	for _, b := range c.Bytes {
		g.Values = append(g.Values, string(b))
	}
}

// TestColumnsComeAsTheyWereDecoded, whatever is in them.
func TestColumnsComeAsTheyWereDecoded(t *testing.T) {
	rec := mixed()
	var names []string
	for _, f := range rec.Schema().Fields() {
		names = append(names, f.Name)
	}
	for _, dictionary := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "mixed.parquet")
		writeParquet(t, path, rec, []parquet.WriterProperty{parquet.WithDictionaryDefault(dictionary)})
		want, got := make([]gathered, len(names)), make([]gathered, len(names))
		f, err := openFlat(path)
		if err != nil {
			t.Fatal(err)
		}
		gather := func(to []gathered) func(int, []*FlatColumn) error {
			return func(n int, cols []*FlatColumn) error {
				for i, c := range cols {
					to[i].take(n, c)
				}
				return nil
			}
		}
		if err := f.read([]int{0, 1, 2}, names, gather(want)); err != nil {
			t.Fatal(err)
		}
		f.close()
		src, err := OpenSource(ReadOptions{Format: Parquet, Typed: names}, path)
		if err != nil || !src.Flat || src.Len() != 1 {
			t.Fatalf("%+v, %v", src, err)
		}
		if err := src.FlatColumns(context.Background(), 0, names, gather(got)); err != nil {
			t.Fatal(err)
		}
		for i, name := range names {
			if !reflect.DeepEqual(got[i], want[i]) || len(got[i].Defs) != 20_000 {
				t.Errorf("dictionary %v: column %s came otherwise: %d of %d rows, %d of %d values", dictionary, name, len(got[i].Defs), len(want[i].Defs), len(got[i].Values), len(want[i].Values))
			}
		}
	}
}

// TestAnErrorOfWhoReadsIsTheirs, and what is cancelled ends.
func TestAnErrorOfWhoReadsIsTheirs(t *testing.T) {
	path := tableOf(t, 300_000, 1, false)
	names := []string{"key", "x0"}
	src, err := OpenSource(ReadOptions{Format: Parquet, Typed: names}, path)
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Errorf("enough")
	if err := src.FlatColumns(context.Background(), 0, names, func(int, []*FlatColumn) error { return own }); err != own {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = src.FlatColumns(ctx, 0, names, func(int, []*FlatColumn) error { cancel(); return nil })
	if fault.KindOf(err) != fault.Cancelled {
		t.Errorf("%v", err)
	}
}

// idlers are the children that wait for an order.
func idlers() []*decoder {
	decoders.mu.Lock()
	defer decoders.mu.Unlock()
	var all []*decoder
	for _, d := range decoders.idle {
		all = append(all, d.decoder)
	}
	return all
}

// TestADecoderThatEndsWhileItWaitsIsReplaced: a file is not malformed because of it.
func TestADecoderThatEndsWhileItWaitsIsReplaced(t *testing.T) {
	path := tableOf(t, 1000, 1, false)
	for range 3 {
		if rows, _, err := readAll(path); err != nil || rows != 1000 {
			t.Fatalf("%d rows, %v", rows, err)
		}
		waiting := idlers()
		if len(waiting) == 0 {
			t.Fatal("no decoder waits for another order")
		}
		for _, d := range waiting {
			d.kill()
		}
	}
}

// TestDecodersThatAreNotWantedEnd.
func TestDecodersThatAreNotWantedEnd(t *testing.T) {
	if _, _, err := readAll(tableOf(t, 1000, 1, false)); err != nil {
		t.Fatal(err)
	}
	waiting := idlers()
	if len(waiting) == 0 {
		t.Fatal("no decoder waits for another order")
	}
	for _, d := range waiting {
		decoders.retire(d)
		if d.cmd.ProcessState == nil {
			t.Error("a decoder goes on")
		}
	}
	if left := idlers(); len(left) > 0 {
		t.Errorf("%d decoders are left", len(left))
	}
}

// inflating is a file of few bytes and many rows.
func inflating(t *testing.T, rows, width int) string {
	t.Helper()
	fields := []arrow.Field{{Name: "label", Type: arrow.PrimitiveTypes.Float64}}
	for i := range width {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("x", i), Type: arrow.PrimitiveTypes.Float64})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	for _, f := range b.Fields() {
		for range rows {
			f.(*array.Float64Builder).Append(1)
		}
	}
	path := filepath.Join(t.TempDir(), "small.parquet")
	writeParquetGroups(t, path, b.NewRecord(), int64(rows), []parquet.WriterProperty{parquet.WithDictionaryDefault(true)})
	return path
}

// TestUnpackingHoldsToTheBudget: a small file may have very many rows, and what its pack
// takes on disk, while it is made too, is within what packs may have.
func TestUnpackingHoldsToTheBudget(t *testing.T) {
	path := inflating(t, 1_000_000, 9) // of which 48 MiB stay in memory
	if info, err := os.Stat(path); err != nil || info.Size() > 64<<10 {
		t.Fatalf("the file is not small: %v", err)
	}
	dir := t.TempDir()
	for _, o := range []PackOptions{{}, {Random: true}, {Float32: true}} {
		for budget, fits := range map[int64]bool{16 << 20: false, 100 << 20: true} {
			cache, err := OpenCache(dir, budget)
			if err != nil {
				t.Fatal(err)
			}
			src, err := OpenSource(ReadOptions{}, path)
			if err != nil {
				t.Fatal(err)
			}
			o.Workers = 2
			id, _ := PackID(src, o)
			began := time.Now()
			p, err := cache.Get(context.Background(), id, src, o, quiet)
			if took := time.Since(began); took > time.Minute {
				t.Errorf("%+v took %v", o, took)
			}
			if p != nil {
				p.Close()
				os.RemoveAll(p.Dir)
			}
			if fits != (err == nil) || !fits && (fault.KindOf(err) != fault.NoResources || !strings.Contains(err.Error(), "--disk")) {
				t.Errorf("%+v within %d MiB: %v", o, budget>>20, err)
			}
		}
	}
}

// TestASpoolGivesUpWhatHasBeenRead, so that a pack needs the disk once and not twice.
func TestASpoolGivesUpWhatHasBeenRead(t *testing.T) {
	cache, err := OpenCache(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	a := &allowance{cache: cache}
	s := newSpool(t.TempDir(), a)
	var all []*spooled
	for i := range 3 {
		c := &Chunk{}
		for range 30_000 {
			c.AppendDense(float64(i), []float64{1})
		}
		h := &spooled{chunk: c, rows: c.Rows()}
		h.left.Store(2)
		if i == 2 {
			s.done(all[0])
			s.done(all[1])
			if err := s.spill(h); err == nil || !strings.Contains(err.Error(), "--disk") {
				t.Errorf("three chunks that are all wanted fit into the disk of two: %v", err)
			}
			s.done(all[1])
		}
		if err := s.spill(h); err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	for i, h := range []*spooled{all[0], all[2]} {
		c, err := s.load(h)
		if err != nil || c.Rows() != 30_000 || c.Labels[7] != float64(2*i) {
			t.Errorf("chunk %d is not what it was: %v", 2*i, err)
		}
	}
	if s.close(); a.mu.taken != 0 {
		t.Errorf("%d bytes are taken by nothing", a.mu.taken)
	}
}
