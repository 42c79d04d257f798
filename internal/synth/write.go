package synth

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"

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
	first  int64
	labels []float64
	x      []float64 // row-major
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
func Write(ctx context.Context, l Logistic, format, path string, workers int) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".generate-*")
	if err != nil {
		return fault.New(fault.NoResources, "write", path, err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	s, err := newSink(format, out, l)
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
func produce(ctx context.Context, l Logistic, s sink, workers int) error {
	for first := int64(0); first < l.Rows; first += int64(workers) * blockRows {
		encoded := make([]any, workers)
		var g errgroup.Group
		for k := range workers {
			from := first + int64(k)*blockRows
			if from >= l.Rows {
				break
			}
			g.Go(func() (err error) {
				encoded[k], err = s.encode(l.block(from))
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

func (l Logistic) block(first int64) *block {
	n := int(min(blockRows, l.Rows-first))
	b := &block{first: first, labels: make([]float64, n), x: make([]float64, n*l.Features)}
	for i := range n {
		b.labels[i] = l.Row(first+int64(i), b.x[i*l.Features:(i+1)*l.Features])
	}
	return b
}

func newSink(format string, w io.Writer, l Logistic) (sink, error) {
	switch format {
	case "libsvm":
		return &textSink{w: w, row: appendLIBSVM, d: l.Features}, nil
	case "csv":
		if _, err := io.WriteString(w, csvHeader(l.Features)); err != nil {
			return nil, err
		}
		return &textSink{w: w, row: appendCSV, d: l.Features}, nil
	case "arrow", "parquet":
		return newColumnSink(format, w, l.Features)
	}
	return nil, fault.Newf(fault.Usage, "generate", format, "unknown format").WithHint("formats are libsvm, csv, parquet, arrow")
}

func csvHeader(d int) string {
	h := "label"
	for j := range d {
		h += ",x" + strconv.Itoa(j)
	}
	return h + "\n"
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
	out = strconv.AppendFloat(out, label, 'g', -1, 64)
	for j, v := range x {
		out = append(out, ' ')
		out = strconv.AppendInt(out, int64(j+1), 10)
		out = append(out, ':')
		out = strconv.AppendFloat(out, v, 'g', -1, 64)
	}
	return append(out, '\n')
}

func appendCSV(out []byte, label float64, x []float64) []byte {
	out = strconv.AppendFloat(out, label, 'g', -1, 64)
	for _, v := range x {
		out = append(out, ',')
		out = strconv.AppendFloat(out, v, 'g', -1, 64)
	}
	return append(out, '\n')
}

// columnSink writes a label column and a column for each feature.
type columnSink struct {
	schema *arrow.Schema
	d      int
	put    func(arrow.Record) error
	end    func() error
}

func newColumnSink(format string, w io.Writer, d int) (*columnSink, error) {
	fields := []arrow.Field{{Name: "label", Type: arrow.PrimitiveTypes.Float64}}
	for j := range d {
		fields = append(fields, arrow.Field{Name: "x" + strconv.Itoa(j), Type: arrow.PrimitiveTypes.Float64})
	}
	s := &columnSink{schema: arrow.NewSchema(fields, nil), d: d}
	if format == "parquet" {
		props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy), parquet.WithDictionaryDefault(false))
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
	builder.Field(0).(*array.Float64Builder).AppendValues(b.labels, nil)
	for j := range s.d {
		col := builder.Field(j + 1).(*array.Float64Builder)
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
