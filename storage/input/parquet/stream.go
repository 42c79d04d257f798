package parquet

import (
	"bytes"
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/volley-engine/volley/storage/input/files"
)

// key is a column that a file's directory has.
type key struct {
	Name  string  `json:"name"`
	Value *string `json:"value"` // nil is null
}

// keysOf returns the columns that a file's directories have.
func keysOf(f files.File) (out []key) {
	for _, k := range f.Keys {
		at := key{Name: k.Name}
		if !k.Null {
			at.Value = &k.Value
		}
		out = append(out, at)
	}
	return out
}

// ReadStream yields the rows of a file as Arrow IPC streams, each with its schema and at most some hundred rows or some
// hundred KiB, which are valid during the call only; the first has no rows. Columns that the file's directories have
// are texts, after its own. A child process decodes the file, and what it sends is not looked at here. With head only
// the first is yielded.
func ReadStream(ctx context.Context, kind Kind, f files.File, head bool, yield func(stream []byte) error) error {
	order := decodeOrder{Path: f.Path, Kind: kind, Records: true, Schema: true, Head: head, Keys: keysOf(f),
		Memory: memoryFor(f.Size)}
	return decode(ctx, order, func(r *decodeReply) error {
		if r.Arrow <= 0 || r.Arrow > len(r.raw) {
			return errShortBody
		}
		return yield(r.raw[:r.Arrow])
	})
}

// sendSchema sends a stream without records.
func sendSchema(s *sender, schema *arrow.Schema) error {
	var out bytes.Buffer
	if err := ipc.NewWriter(&out, ipc.WithSchema(schema)).Close(); err != nil {
		return err
	}
	return s.send(&decodeReply{Arrow: out.Len()}, out.Bytes())
}

// withKeys returns a schema with columns of keys after its own.
func withKeys(s *arrow.Schema, keys []key) *arrow.Schema {
	fields := slices.Clone(s.Fields())
	for _, k := range keys {
		fields = append(fields, arrow.Field{Name: k.Name, Type: arrow.BinaryTypes.String, Nullable: true})
	}
	meta := s.Metadata()
	return arrow.NewSchema(fields, &meta)
}

// keyed returns a record with columns of keys after its own.
func keyed(rec arrow.Record, keys []key) arrow.Record {
	cols := slices.Clone(rec.Columns())
	for _, k := range keys {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		b.Reserve(int(rec.NumRows()))
		for range rec.NumRows() {
			if k.Value == nil {
				b.AppendNull()
			} else {
				b.Append(*k.Value)
			}
		}
		cols = append(cols, b.NewArray())
	}
	return array.NewRecord(withKeys(rec.Schema(), keys), cols, rec.NumRows())
}
