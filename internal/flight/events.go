package flight

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/arrowstream"
)

// eventColumns are those of an event log (docs/event-log.md): what most who ask want, each null where a line has no
// such field, and the line.
var eventColumns = arrow.NewSchema([]arrow.Field{
	{Name: "line", Type: arrow.PrimitiveTypes.Int64},
	{Name: "event", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "step", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "iteration", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "retried", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "rows", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "missing", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "moves", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "bytes", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "took_ns", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "share", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "objective", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "cut", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "why", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "json", Type: arrow.BinaryTypes.String},
}, nil)

// event is what the columns take of a line.
type event struct {
	Event     *string             `json:"event"`
	Step      *int64              `json:"step"`
	Iteration *int64              `json:"iteration"`
	Retried   *int64              `json:"retried"`
	Folded    []int64             `json:"folded"`
	Missing   []json.RawMessage   `json:"missing"`
	Moves     []json.RawMessage   `json:"moves"`
	Bytes     *int64              `json:"bytes"`
	Took      *int64              `json:"took_ns"`
	Phases    map[string]int64    `json:"phases_ns"`
	Share     *float64            `json:"share"`
	Objective *float64            `json:"objective"`
	Values    map[string]*float64 `json:"values"`
	Cut       *bool               `json:"cut"`
	Why       *string             `json:"why"`
}

// mostLine bounds a line of an event log.
const mostLine = 64 << 20

// Events yields an event log as a table, a row for each line, as far as it goes; of one that is not there yet no rows.
// A line that is cut off, as the last one of a job that goes on may be, is left out.
func Events(ctx context.Context, path string, yield func(arrowstream.Message) error) error {
	rows, err := arrowstream.NewRows(eventColumns, yield)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.New(fault.NoResources, "read", path, err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	for n := int64(1); ; n++ {
		line, err := wholeLine(in)
		if err == io.EOF {
			return rows.Flush()
		}
		if err == nil {
			err = ctx.Err()
		}
		var e event
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			return fault.Newf(fault.Corrupt, "read", path, "line %d: %v", n, err)
		}
		e.add(rows, n, line)
		if err := rows.Added(len(line)); err != nil {
			return err
		}
	}
}

// wholeLine returns the next line, without its end; io.EOF after the last that has one.
func wholeLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte{'\n'}), nil
		case err != bufio.ErrBufferFull:
			return nil, err
		case len(line) > mostLine:
			return nil, errors.New("it is longer than a line of an event log may be")
		}
	}
}

// add adds a line to the columns.
func (e *event) add(rows *arrowstream.Rows, n int64, line []byte) {
	rows.Field(0).(*array.Int64Builder).Append(n)
	appendText(rows, 1, e.Event)
	for i, v := range []*int64{e.Step, e.Iteration, e.Retried, sumOfAll(e.Folded), countOf(e.Missing), countOf(e.Moves),
		e.Bytes, e.took()} {
		if b := rows.Field(2 + i).(*array.Int64Builder); v == nil {
			b.AppendNull()
		} else {
			b.Append(*v)
		}
	}
	objective := e.Objective
	if v := e.Values["objective"]; v != nil {
		objective = v
	}
	for i, v := range []*float64{e.Share, objective} {
		if b := rows.Field(10 + i).(*array.Float64Builder); v == nil {
			b.AppendNull()
		} else {
			b.Append(*v)
		}
	}
	if b := rows.Field(12).(*array.BooleanBuilder); e.Cut == nil {
		b.AppendNull()
	} else {
		b.Append(*e.Cut)
	}
	appendText(rows, 13, e.Why)
	rows.Text(14).Append(string(bytes.ToValidUTF8(line, []byte("\uFFFD"))))
}

func appendText(rows *arrowstream.Rows, column int, text *string) {
	if text == nil {
		rows.Text(column).AppendNull()
		return
	}
	rows.Text(column).Append(*text)
}

func sumOfAll(all []int64) *int64 {
	if all == nil {
		return nil
	}
	sum := int64(0)
	for _, n := range all {
		sum += n
	}
	return &sum
}

func countOf(all []json.RawMessage) *int64 {
	if all == nil {
		return nil
	}
	n := int64(len(all))
	return &n
}

// took returns how long a step or pass took: what the log has, or its phases but those that are part of others (wait)
// or beside them (exchange).
func (e *event) took() *int64 {
	if e.Took != nil || e.Phases == nil {
		return e.Took
	}
	sum := int64(0)
	for name, ns := range e.Phases {
		if name != "wait" && name != "exchange" {
			sum += ns
		}
	}
	return &sum
}
