package parquet

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
	path := tableOf(t, 200_000, 1, false, parquet.WithDictionaryDefault(false),
		parquet.WithCompression(compress.Codecs.Snappy), parquet.WithDataPageSize(4<<20))
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
			o, err := openNamed(path, "key", "x0")
			if err != nil {
				return err
			}
			return o.columns(context.Background(), 0, []string{"key", "x0"},
				func(int, []*FlatColumn) error { return nil })
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
	fields := []arrow.Field{{Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "small", Type: arrow.PrimitiveTypes.Int32},
		{Name: "large", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "float", Type: arrow.PrimitiveTypes.Float32},
		{Name: "double", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "when", Type: arrow.FixedWidthTypes.Timestamp_us},
		{Name: "nothing", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}
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
		o, err := openNamed(path, names...)
		if err != nil || !o.flat || len(o.parts) != 1 {
			t.Fatalf("%+v, %v", o, err)
		}
		if err := o.columns(context.Background(), 0, names, gather(got)); err != nil {
			t.Fatal(err)
		}
		for i, name := range names {
			if !reflect.DeepEqual(got[i], want[i]) || len(got[i].Defs) != 20_000 {
				t.Errorf("dictionary %v: column %s came otherwise: %d of %d rows, %d of %d values", dictionary, name,
					len(got[i].Defs), len(want[i].Defs), len(got[i].Values), len(want[i].Values))
			}
		}
	}
}

// TestAnErrorOfWhoReadsIsTheirs, and what is cancelled ends.
func TestAnErrorOfWhoReadsIsTheirs(t *testing.T) {
	path := tableOf(t, 300_000, 1, false)
	names := []string{"key", "x0"}
	o, err := openNamed(path, names...)
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Errorf("enough")
	if err := o.columns(context.Background(), 0, names, func(int, []*FlatColumn) error { return own }); err != own {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = o.columns(ctx, 0, names, func(int, []*FlatColumn) error { cancel(); return nil })
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
