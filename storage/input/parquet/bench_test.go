package parquet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"golang.org/x/sys/unix"
)

// tableOf writes a Parquet file of a key, numbers and, where asked for, a text a row.
func tableOf(tb testing.TB, rows, numbers int, text bool, properties ...parquet.WriterProperty) string {
	tb.Helper()
	fields := []arrow.Field{{Name: "key", Type: arrow.PrimitiveTypes.Int64}}
	for i := range numbers {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("x", i), Type: arrow.PrimitiveTypes.Float64})
	}
	if text {
		fields = append(fields, arrow.Field{Name: "text", Type: arrow.BinaryTypes.String})
	}
	path := filepath.Join(tb.TempDir(), "table.parquet")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	schema := arrow.NewSchema(fields, nil)
	w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(properties...), pqarrow.DefaultWriterProps())
	if err != nil {
		tb.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for from := 0; from < rows; from += 1 << 18 {
		rec := someRows(schema, min(1<<18, rows-from), numbers, rng)
		if err := w.Write(rec); err != nil {
			tb.Fatal(err)
		}
		rec.Release()
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return path
}

func someRows(schema *arrow.Schema, rows, numbers int, rng *rand.Rand) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for range rows {
		b.Field(0).(*array.Int64Builder).Append(rng.Int64N(1000))
		for j := range numbers {
			b.Field(1 + j).(*array.Float64Builder).Append(rng.NormFloat64())
		}
		if numbers+1 < schema.NumFields() {
			b.Field(1 + numbers).(*array.StringBuilder).Append(fmt.Sprint("word", rng.IntN(100_000)))
		}
	}
	return b.NewRecord()
}

// BenchmarkParquetColumns reads columns as typed rows are made of them.
func BenchmarkParquetColumns(b *testing.B) {
	for name, properties := range map[string][]parquet.WriterProperty{
		"plain":  {parquet.WithDictionaryDefault(false)},
		"snappy": {parquet.WithCompression(compress.Codecs.Snappy)},
	} {
		for _, text := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s text %v", name, text), func(b *testing.B) {
				names := []string{"key", "x0"}
				if text {
					names = append(names, "text")
				}
				path := tableOf(b, 4_000_000, 1, text, properties...)
				defer reportProcessors(b, processorsUsed())
				for b.Loop() {
					readColumnsOf(b, path, names)
				}
			})
		}
	}
}

func readColumnsOf(tb testing.TB, path string, names []string) (rows int, sum float64) {
	tb.Helper()
	o, err := openNamed(path, names...)
	if err != nil {
		tb.Fatal(err)
	}
	for part := range o.parts {
		err := o.columns(context.Background(), part, names, func(n int, cols []*FlatColumn) error {
			for _, c := range cols {
				for _, v := range c.Doubles {
					sum += v
				}
				for _, v := range c.Int64s {
					sum += float64(v)
				}
				for _, v := range c.Bytes {
					sum += float64(len(v))
				}
			}
			rows += n
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return rows, sum
}

// BenchmarkParquetPoints reads rows of numbers.
func BenchmarkParquetPoints(b *testing.B) {
	for _, width := range []int{8, 40} {
		b.Run(fmt.Sprint(width), func(b *testing.B) {
			path := tableOf(b, 16_000_000/width, width, false, parquet.WithDictionaryDefault(false))
			defer reportProcessors(b, processorsUsed())
			for b.Loop() {
				if _, _, err := readAll(path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// processorsUsed is how much of processors' time this process has used, and its children.
func processorsUsed() (used time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			used += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return used + waiting()
}

// waiting is the same of decoders that wait for another order.
func waiting() (used time.Duration) {
	decoders.mu.Lock()
	defer decoders.mu.Unlock()
	for _, d := range decoders.idle {
		t, _ := processorTime(d.cmd.Process.Pid)
		used += t
	}
	return used
}

// reportProcessors reports the time of processors that a benchmark has taken.
func reportProcessors(b *testing.B, before time.Duration) {
	b.ReportMetric(float64(processorsUsed()-before)/float64(b.N)/1e6, "cpu-ms/op")
}
