package arrowstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/csv"
	"github.com/volley-engine/volley/storage/input/files"
)

// Rows makes messages of rows that are added to a builder's columns.
type Rows struct {
	*array.RecordBuilder
	yield func(Message) error
	rows  int64
	bytes int
	total int64
}

// How many rows a message has at the most, and about how many bytes.
const (
	messageRows  = 16 << 10
	messageBytes = 1 << 20
)

// NewRows yields the message of a schema, and then those of rows.
func NewRows(schema *arrow.Schema, yield func(Message) error) (*Rows, error) {
	r := &Rows{RecordBuilder: array.NewRecordBuilder(memory.DefaultAllocator, schema), yield: yield}
	var out bytes.Buffer
	if err := ipc.NewWriter(&out, ipc.WithSchema(schema)).Close(); err != nil {
		return nil, err
	}
	return r, each(out.Bytes(), yield)
}

// Added notes that a row is in all columns, of about a number of bytes.
func (r *Rows) Added(bytes int) error {
	r.rows, r.bytes, r.total = r.rows+1, r.bytes+bytes, r.total+1
	if r.rows < messageRows && r.bytes < messageBytes {
		return nil
	}
	return r.Flush()
}

// Flush yields the rows that were added since the last message.
func (r *Rows) Flush() error {
	if r.rows == 0 {
		return nil
	}
	r.rows, r.bytes = 0, 0
	rec := r.NewRecord()
	defer rec.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(rec.Schema()))
	if err := cmp.Or(w.Write(rec), w.Close()); err != nil {
		return err
	}
	return each(out.Bytes(), func(m Message) error {
		if m.Kind == Schema {
			return nil
		}
		return r.yield(m)
	})
}

// Text returns the builder of a column of texts.
func (r *Rows) Text(column int) *array.StringBuilder { return r.Field(column).(*array.StringBuilder) }

// texts yields the messages of a file of lines, or of records.
func texts(ctx context.Context, f files.File, as Format, yield func(Message) error) error {
	o := input.Options{Format: input.Text}
	names := []string{"line"}
	if as == CSV {
		header := true
		o, names = input.Options{Format: input.CSV, Typed: []string{}, Header: &header}, nil
	}
	src, err := input.Open(ctx, o, f.Path)
	if err != nil {
		return err
	}
	if as == CSV && src.Table != nil {
		names, _ = src.FieldNames()
	}
	t, err := newTexts(names, f.Keys, yield)
	if err != nil {
		return err
	}
	for part := range src.Len() {
		if as == CSV {
			err = src.Records(ctx, part, func(r *csv.Record) error { return t.record(src, part, r) })
		} else {
			err = src.EachLine(ctx, part, t.line)
		}
		if err != nil {
			return err
		}
	}
	return t.Flush()
}

// textRows are rows whose columns are texts.
type textRows struct {
	*Rows
	own  int
	keys []files.Key
}

func newTexts(names []string, keys []files.Key, yield func(Message) error) (*textRows, error) {
	var fields []arrow.Field
	for _, name := range names {
		fields = append(fields, arrow.Field{Name: strings.ToValidUTF8(name, "\uFFFD"), Type: arrow.BinaryTypes.String,
			Nullable: true})
	}
	for _, k := range keys {
		fields = append(fields, arrow.Field{Name: k.Name, Type: arrow.BinaryTypes.String, Nullable: true})
	}
	r, err := NewRows(arrow.NewSchema(fields, nil), yield)
	return &textRows{r, len(names), keys}, err
}

// record adds a record of a table, or returns why it is none.
func (t *textRows) record(src *input.Source, part int, r *csv.Record) error {
	if r.Wrong != "" {
		return src.Bad(r, part, r.Hint, errors.New(r.Wrong))
	}
	for _, value := range r.Fields {
		if !utf8.Valid(value) {
			return src.Bad(r, part, notUTF8Hint, errNotUTF8)
		}
	}
	return t.add(r.Fields...)
}

// line adds a line, or returns why it is none.
func (t *textRows) line(where func() input.Where, line []byte) error {
	if !utf8.Valid(line) {
		return fault.New(fault.BadInput, "read", where().String(), errNotUTF8).WithHint(notUTF8Hint)
	}
	return t.add(line)
}

var errNotUTF8 = errors.New("it is not UTF-8, as texts of Arrow are")

const notUTF8Hint = "save it as Parquet or Arrow, with columns of bytes"

// add adds a row.
func (t *textRows) add(values ...[]byte) error {
	size := 0
	for i := range t.own {
		if i >= len(values) || values[i] == nil {
			t.Text(i).AppendNull()
			continue
		}
		size += len(values[i])
		t.Text(i).Append(string(values[i]))
	}
	for i, k := range t.keys {
		if k.Null {
			t.Text(t.own + i).AppendNull()
		} else {
			t.Text(t.own + i).Append(k.Value)
		}
		size += len(k.Value)
	}
	return t.Added(size)
}
