package synth

import (
	"bufio"
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley/internal/fault"
)

// blockRows is how many rows are made, and written, at a time.
const blockRows = 8192

// block is a run of rows.
type block struct {
	labels []float64
	x      []float64 // row-major
	text   []byte    // of a law whose rows are lines of its own
}

// sink writes blocks in order.
type sink interface {
	encode(b *block) (any, error) // may run on any goroutine
	write(encoded any) error      // runs in the order of rows
	close() error
}

// Write makes the data on some workers and writes it in a format (libsvm,
// csv, parquet, arrow). The file appears whole or not at all, and its bytes
// do not depend on the number of workers.
func Write(ctx context.Context, l Law, format, path string, workers int) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".generate-*")
	if err != nil {
		return fault.New(fault.NoResources, "write", path, err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	s, err := newSink(format, out, l.Columns())
	if err == nil {
		err = produce(ctx, l, s, workers)
	}
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil && fault.KindOf(err) == fault.Internal {
		err = fault.New(fault.NoResources, "write", path, err)
	}
	return err
}

// produce makes `workers` blocks at a time and writes them in order.
func produce(ctx context.Context, l Law, s sink, workers int) error {
	for first := 0; first < l.Blocks(); first += workers {
		encoded := make([]any, workers)
		var g errgroup.Group
		for k := range min(workers, l.Blocks()-first) {
			g.Go(func() (err error) {
				encoded[k], err = s.encode(l.block(first + k))
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for _, e := range encoded {
			if e == nil {
				break
			}
			if err := s.write(e); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return fault.New(fault.Cancelled, "generate", "data", err)
		}
	}
	return s.close()
}

func newSink(format string, w io.Writer, columns []string) (sink, error) {
	own := columns[0] == "label"
	width := len(columns)
	if own {
		width--
	}
	switch format {
	case "libsvm":
		return &textSink{w: w, d: width, row: appendLIBSVM}, nil
	case "csv":
		if _, err := io.WriteString(w, strings.Join(columns, ",")+"\n"); err != nil {
			return nil, err
		}
		return &textSink{w: w, d: width, row: func(out []byte, label float64,
			x []float64) []byte {
			return appendCSV(out, own, label, x)
		}}, nil
	case "lda-c", "txt":
		return &lineSink{textSink{w: w}}, nil
	case "arrow", "parquet":
		return newColumnSink(format, w, columns)
	}
	return nil, fault.Newf(fault.Usage, "generate", format,
		"unknown format").WithHint("formats are libsvm, csv, parquet, arrow, lda-c, txt")
}

// features returns the names of d features.
func features(d int) []string {
	names := make([]string, d)
	for j := range names {
		names[j] = "x" + strconv.Itoa(j)
	}
	return names
}

// textSink writes lines.
type textSink struct {
	w   io.Writer
	d   int
	row func(out []byte, label float64, x []float64) []byte
}

func (s *textSink) encode(b *block) (any, error) {
	var out []byte
	for i, label := range b.labels {
		out = s.row(out, label, b.x[i*s.d:(i+1)*s.d])
	}
	return out, nil
}

func (s *textSink) write(encoded any) error {
	_, err := s.w.Write(encoded.([]byte))
	return err
}

func (s *textSink) close() error { return nil }

func appendLIBSVM(out []byte, label float64, x []float64) []byte {
	out = appendNumber(out, label)
	for j, v := range x {
		if v == 0 {
			continue
		}
		out = append(out, ' ')
		out = strconv.AppendInt(out, int64(j+1), 10)
		out = append(out, ':')
		out = appendNumber(out, v)
	}
	return append(out, '\n')
}

func appendCSV(out []byte, own bool, label float64, x []float64) []byte {
	if own {
		out = append(appendNumber(out, label), ',')
	}
	for j, v := range x {
		if j > 0 {
			out = append(out, ',')
		}
		out = appendNumber(out, v)
	}
	return append(out, '\n')
}

// appendNumber writes the shortest text of a number, whole ones without an exponent.
func appendNumber(out []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.AppendFloat(out, v, 'f', -1, 64)
	}
	return strconv.AppendFloat(out, v, 'g', -1, 64)
}

// columnSink writes a column for each number of a row.
type columnSink struct {
	schema *arrow.Schema
	label  int // columns before those of x
	d      int
	put    func(arrow.Record) error
	end    func() error
}

func newColumnSink(format string, w io.Writer, columns []string) (*columnSink, error) {
	var fields []arrow.Field
	for _, name := range columns {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float64})
	}
	s := &columnSink{schema: arrow.NewSchema(fields, nil), d: len(columns)}
	if columns[0] == "label" {
		s.label, s.d = 1, s.d-1
	}
	if format == "parquet" {
		props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy),
			parquet.WithDictionaryDefault(false))
		pw, err := pqarrow.NewFileWriter(s.schema, w, props, pqarrow.DefaultWriterProps())
		if err != nil {
			return nil, err
		}
		s.put, s.end = pw.WriteBuffered, pw.Close
		return s, nil
	}
	aw, err := ipc.NewFileWriter(&position{w: w}, ipc.WithSchema(s.schema))
	if err != nil {
		return nil, err
	}
	s.put, s.end = aw.Write, aw.Close
	return s, nil
}

// position is a writer that knows how much it has written, which is all that
// the Arrow file writer seeks for.
type position struct {
	w io.Writer
	n int64
}

func (p *position) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.n += int64(n)
	return n, err
}

// Seek answers where the writer is.
func (p *position) Seek(int64, int) (int64, error) { return p.n, nil }

func (s *columnSink) encode(b *block) (any, error) {
	builder := array.NewRecordBuilder(memory.DefaultAllocator, s.schema)
	defer builder.Release()
	if s.label == 1 {
		builder.Field(0).(*array.Float64Builder).AppendValues(b.labels, nil)
	}
	for j := range s.d {
		col := builder.Field(s.label + j).(*array.Float64Builder)
		for i := range b.labels {
			col.Append(b.x[i*s.d+j])
		}
	}
	return builder.NewRecord(), nil
}

func (s *columnSink) write(encoded any) error {
	rec := encoded.(arrow.Record)
	defer rec.Release()
	return s.put(rec)
}

func (s *columnSink) close() error { return s.end() }
