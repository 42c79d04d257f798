package pack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

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
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	rec := b.NewRecord()
	w, err := pqarrow.NewFileWriter(rec.Schema(), f, parquet.NewWriterProperties(parquet.WithDictionaryDefault(true)),
		pqarrow.DefaultWriterProps())
	if err != nil || w.Write(rec) != nil || w.Close() != nil {
		t.Fatal(err)
	}
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
	for _, o := range []Options{{}, {Random: true}, {Float32: true}} {
		for budget, fits := range map[int64]bool{16 << 20: false, 100 << 20: true} {
			cache, err := OpenCache(dir, budget)
			if err != nil {
				t.Fatal(err)
			}
			src, err := input.Open(context.Background(), input.Options{}, path)
			if err != nil {
				t.Fatal(err)
			}
			o.Workers = 2
			id, _ := ID(src, o)
			began := time.Now()
			p, err := cache.Get(context.Background(), id, src, o, quiet)
			if took := time.Since(began); took > time.Minute {
				t.Errorf("%+v took %v", o, took)
			}
			if p != nil {
				p.Close()
				os.RemoveAll(p.Dir)
			}
			if fits != (err == nil) ||
				!fits && (fault.KindOf(err) != fault.NoResources || !strings.Contains(err.Error(), "--disk")) {
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
		c := &rows.Chunk{}
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

// TestSpilledWeightsComeBack from the file that chunks are spooled to.
func TestSpilledWeightsComeBack(t *testing.T) {
	s := newSpool(t.TempDir(), nil)
	defer s.close()
	c := &rows.Chunk{}
	for i := range 100 {
		c.AppendSparse(1, []int32{int32(i)}, []float64{2})
		if i >= 40 {
			c.AppendWeight(float64(i))
		}
	}
	h := &spooled{chunk: c, rows: c.Rows()}
	if err := s.spill(h); err != nil {
		t.Fatal(err)
	}
	back, err := s.load(h)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		want := float64(i)
		if i < 40 {
			want = 0
		}
		if got := back.WeightOf(i); got != want {
			t.Errorf("row %d weighs %v, want %v", i, got, want)
		}
	}
}
