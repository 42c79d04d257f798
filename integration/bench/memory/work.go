package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	volley "github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// allBytes is about how much data there is, unless less is asked for.
const allBytes = 2e9

// job runs an operation and says how many rows there were.
type job func(ctx context.Context, s *rdd.Session) (int64, error)

// operation is what is measured, and what its input is prepared by.
type operation struct {
	name    string
	prepare func(in input) error
	build   func(g *rdd.Graph, in input) job
	refused string // what it says where it must be refused
}

// input is where an operation's files are, and how many bytes of rows it has.
type input struct {
	Dir   string
	Bytes int64
}

func (in input) path(name string) string { return filepath.Join(in.Dir, name) }

// rows returns how many rows there are of a given size each.
func (in input) rows(bytes int64) int64 { return max(1, in.Bytes/bytes) }

// work carries out a step of an operation.
func work(ctx context.Context, o options, step string) error {
	kind, name, _ := strings.Cut(step, " ")
	in := input{o.dir, int64(allBytes * o.scale)}
	for _, op := range operations() {
		switch {
		case op.name != name:
		case kind == "prepare":
			return op.prepare(in)
		default:
			return drive(ctx, in, op.build, "--memory", o.limit)
		}
	}
	return fmt.Errorf("there is no operation %q", name)
}

// drive runs a job on an embedded cluster.
func drive(ctx context.Context, in input, build func(*rdd.Graph, input) job, flags ...string) error {
	cfg, err := volley.ParseConfig(append(flags, "--executors", "2", "--data-dir", in.path("data"))...)
	if err != nil {
		return err
	}
	_, err = volley.Run(ctx, cfg, "memory", in, build,
		func(ctx context.Context, s *rdd.Session, _ input, j job) (string, error) {
			rows, err := j(ctx, s)
			if err == nil && rows == 0 {
				err = fmt.Errorf("there were no rows")
			}
			return "end", err
		})
	return err
}

// Record is a row of about a hundred bytes.
type Record struct {
	Key   int64
	Value float64
	Text  string
}

// recordBytes is about how many bytes a record has.
const recordBytes = 100

// textOf returns a text of n bytes that cannot be compressed to much less than half of them.
func textOf(seed int64, n int) string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
	b := make([]byte, n)
	x := uint64(seed)*0x9e3779b97f4a7c15 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = letters[x>>58]
	}
	return string(b)
}

func recordOf(i int64) Record {
	return Record{Key: int64(uint64(i) * 0x9e3779b97f4a7c15 >> 1), Value: float64(i), Text: textOf(i, 76)}
}

// Wide is a row of ten thousand bytes.
type Wide struct {
	Key  int64
	Text string
}

const wideBytes = 10_000

func wideOf(i int64) Wide { return Wide{i, textOf(i, wideBytes)} }

// Listed is a row with a list.
type Listed struct {
	Label  float64   `col:"label"`
	Values []float64 `col:"values"`
}

const (
	listWidth  = 100
	listedSize = 8 * (listWidth + 1)
)

func listedOf(i int64) Listed {
	l := Listed{Label: float64(i & 1), Values: make([]float64, listWidth)}
	for k := range l.Values {
		l.Values[k] = float64(uint64(i+int64(k))*0x9e3779b97f4a7c15>>11) / (1 << 53)
	}
	return l
}

// made returns rows that are made where they are needed.
func made[T any](g *rdd.Graph, rows int64, of func(int64) T) rdd.Dataset[T] {
	return rdd.Map(rdd.Range(g, 0, rows, 16), of)
}

func records(g *rdd.Graph, in input) rdd.Dataset[Record] {
	return made(g, in.rows(recordBytes), recordOf)
}

// pairs returns as many rows, with a given number of keys, or where that is 0 one each.
func pairs(g *rdd.Graph, rows, keys int64) rdd.Dataset[rdd.Pair[int64, string]] {
	return made(g, rows, func(i int64) rdd.Pair[int64, string] {
		r := recordOf(i)
		if keys > 0 {
			r.Key = i % keys
		}
		return rdd.Pair[int64, string]{Key: r.Key, Value: r.Text}
	})
}

// timed returns rows with a time, which has a place.
func timed(g *rdd.Graph, rows int64) rdd.Dataset[rdd.Pair[int64, time.Time]] {
	place := time.FixedZone("somewhere", 3600)
	return made(g, rows, func(i int64) rdd.Pair[int64, time.Time] {
		return rdd.Pair[int64, time.Time]{Key: i * 7919, Value: time.Unix(i, 0).In(place)}
	})
}

// counted counts rows.
func counted[T any](ds rdd.Dataset[T]) job { return rdd.Count(ds).Run }

// saved writes the input of an operation, without a limit.
func saved(save func(g *rdd.Graph, in input) rdd.Action[int64]) func(in input) error {
	return func(in input) error {
		return drive(context.Background(), in, func(g *rdd.Graph, in input) job { return save(g, in).Run })
	}
}

// written writes lines, of about a given size each.
func written(name string, bytes int64, line func(w *bufio.Writer, i int64)) func(in input) error {
	return func(in input) error {
		f, err := os.Create(in.path(name))
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(f, 1<<20)
		for i := range in.rows(bytes) {
			line(w, i)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		return f.Close()
	}
}

// largeGroups writes records to a Parquet file whose row groups are large, as others write
// them.
func largeGroups(in input) error {
	f, err := os.Create(in.path("in.parquet"))
	if err != nil {
		return err
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "Key", Type: arrow.PrimitiveTypes.Int64},
		{Name: "Value", Type: arrow.PrimitiveTypes.Float64}, {Name: "Text", Type: arrow.BinaryTypes.String}}, nil)
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy),
		parquet.WithMaxRowGroupLength(1<<20))
	out, err := pqarrow.NewFileWriter(schema, f, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range in.rows(recordBytes) {
		r := recordOf(i)
		b.Field(0).(*array.Int64Builder).Append(r.Key)
		b.Field(1).(*array.Float64Builder).Append(r.Value)
		b.Field(2).(*array.StringBuilder).Append(r.Text)
		if i%(1<<15) == 1<<15-1 || i == in.rows(recordBytes)-1 {
			rec := b.NewRecord()
			err := out.WriteBuffered(rec)
			rec.Release()
			if err != nil {
				return err
			}
		}
	}
	return out.Close()
}
