package pack

import (
	"crypto/sha256"
	"os"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/raw"
)

// schemaOf returns the Arrow schema of a split's file.
func schemaOf(m *Meta) *arrow.Schema {
	value := arrow.DataType(arrow.PrimitiveTypes.Float64)
	if m.Float32 {
		value = arrow.PrimitiveTypes.Float32
	}
	label := arrow.Field{Name: "label", Type: arrow.PrimitiveTypes.Float64, Nullable: true}
	field := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	var fields []arrow.Field
	switch m.Layout {
	case DenseLayout:
		fields = []arrow.Field{label, field("features", arrow.FixedSizeListOf(int32(m.Features), value))}
	case SparseLayout:
		fields = []arrow.Field{label, field("indices", arrow.ListOf(arrow.PrimitiveTypes.Int32)),
			field("values", arrow.ListOf(value))}
	default:
		fields = []arrow.Field{field("row", arrow.BinaryTypes.Binary)}
	}
	if m.Weighted {
		fields = append(fields, field("weight", arrow.PrimitiveTypes.Float64))
	}
	return arrow.NewSchema(fields, nil)
}

// columns are the buffers of one record batch, in the order of its layout.
type columns struct {
	rows    int
	labels  []float64
	weights []float64 // where rows have them
	values  []byte    // features, row-major or by nonzero
	offsets []int32
	indices []int32
	blob    []byte
}

// bytes returns about how much of a file the batch takes.
func (c *columns) bytes() int64 {
	return int64(8*len(c.labels) + 8*len(c.weights) + len(c.values) + 4*len(c.offsets) + 4*len(c.indices) + len(c.blob))
}

func (c *columns) record(m *Meta, schema *arrow.Schema) arrow.Record {
	var cols []arrow.Array
	switch m.Layout {
	case DenseLayout:
		list := schema.Field(1).Type.(*arrow.FixedSizeListType)
		items := fixed(list.Elem(), c.rows*m.Features, c.values)
		cols = []arrow.Array{c.floatArray(c.labels),
			wrap(array.NewData(list, c.rows, []*memory.Buffer{nil}, []arrow.ArrayData{items}, 0, 0))}
	case SparseLayout:
		values := schema.Field(2).Type.(*arrow.ListType)
		cols = []arrow.Array{c.floatArray(c.labels),
			c.listArray(schema.Field(1).Type, fixed(arrow.PrimitiveTypes.Int32, len(c.indices), padded(c.indices))),
			c.listArray(values, fixed(values.Elem(), len(c.indices), c.values))}
	default:
		bufs := []*memory.Buffer{nil, memory.NewBufferBytes(padded(c.offsets)), memory.NewBufferBytes(c.blob)}
		cols = []arrow.Array{wrap(array.NewData(arrow.BinaryTypes.Binary, c.rows, bufs, nil, 0, 0))}
	}
	if m.Weighted {
		cols = append(cols, c.floatArray(c.weights))
	}
	return array.NewRecord(schema, cols, int64(c.rows))
}

func (c *columns) floatArray(v []float64) arrow.Array {
	return wrap(fixed(arrow.PrimitiveTypes.Float64, c.rows, padded(v)))
}

func (c *columns) listArray(t arrow.DataType, items arrow.ArrayData) arrow.Array {
	bufs := []*memory.Buffer{nil, memory.NewBufferBytes(padded(c.offsets))}
	return wrap(array.NewData(t, c.rows, bufs, []arrow.ArrayData{items}, 0, 0))
}

func fixed(t arrow.DataType, n int, raw []byte) arrow.ArrayData {
	return array.NewData(t, n, []*memory.Buffer{nil, memory.NewBufferBytes(raw)}, nil, 0, 0)
}

// padded rounds a buffer up to whole cache lines, so that the next one in the
// body begins on one: the Arrow writer keeps such padding but adds none.
func padded[T any](v []T) []byte {
	b := raw.Bytes(v)
	return append(b[:len(b):len(b)], zeros[:-len(b)&63]...)
}

func wrap(d arrow.ArrayData) arrow.Array { return array.MakeFromData(d) }

// writeSplit writes one split's file: every record batch's body begins at a
// multiple of 64 bytes. It returns the file's size and content hash.
func writeSplit(path string, m *Meta, batches func(yield func(*columns) error) error) (SplitMeta, error) {
	f, err := os.Create(path)
	if err != nil {
		return SplitMeta{}, disk.WriteError("write the pack in", path, err)
	}
	defer f.Close()
	sm, err := writeSplitTo(f, m, batches)
	if err != nil {
		return SplitMeta{}, disk.WriteError("write the pack in", path, err)
	}
	return sm, nil
}

func writeSplitTo(f *os.File, m *Meta, batches func(yield func(*columns) error) error) (SplitMeta, error) {
	schema := schemaOf(m)
	out := &alignedWriter{w: f, sum: sha256.New()}
	w, err := ipc.NewFileWriter(out, ipc.WithSchema(schema))
	if err != nil {
		return SplitMeta{}, err
	}
	var rows, nonzeros int64
	var weight float64
	err = batches(func(c *columns) error {
		rec := c.record(m, schema)
		defer rec.Release()
		if out.head == 0 {
			if out.head, err = headLength(rec); err != nil {
				return err
			}
		}
		rows += int64(c.rows)
		nonzeros += int64(len(c.indices))
		for _, v := range c.weights {
			weight += v
		}
		return w.Write(rec)
	})
	if err != nil {
		return SplitMeta{}, err
	}
	out.head = 0
	if err := w.Close(); err != nil {
		return SplitMeta{}, err
	}
	return SplitMeta{Rows: rows, Weight: weight, Nonzeros: nonzeros, Bytes: out.pos,
		SHA256: plan.DigestFromBytes(out.sum.Sum(nil))}, nil
}

// headLength returns the length of a record batch's message before its body; it
// depends on the schema only.
func headLength(rec arrow.Record) (int64, error) {
	probe := &headProbe{}
	w := ipc.NewWriterWithPayloadWriter(probe, ipc.WithSchema(rec.Schema()))
	if err := w.Write(rec); err != nil {
		return 0, err
	}
	return probe.length, w.Close()
}

// headProbe is a payload writer that keeps the last message's head length.
type headProbe struct{ length int64 }

func (p *headProbe) Start() error { return nil }
func (p *headProbe) Close() error { return nil }

func (p *headProbe) WritePayload(payload ipc.Payload) error {
	meta := payload.Meta()
	defer meta.Release()
	p.length = (int64(meta.Len()) + 8 + 7) &^ 7
	return nil
}
