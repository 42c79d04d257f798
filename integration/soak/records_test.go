package soak

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
)

// record is a row of a table in a file.
type record struct {
	ID   int64     `col:"id"`
	Word string    `col:"word"`
	Size float64   `col:"size"`
	Few  int8      `col:"few"`
	At   time.Time `col:"at"`
	Tip  *float64  `col:"tip"`
}

// words have what is special in tables of text.
var words = []string{"", "plain", "a, b", "say \"so\"", "two\nlines", " blanks ", "größer", "tab\there", "#", "1e9",
	"\\\""}

func recordOf(n uint64) record {
	r := record{ID: int64(n % 100_000), Word: words[mix(n)%uint64(len(words))], Size: float64(int64(n)%1_000_003) / 64,
		Few: int8(n), At: time.UnixMicro(int64(n % (1 << 50))).UTC()}
	if mix(n+1)%3 > 0 {
		r.Tip = new(float64(n%997) / 8)
	}
	return r
}

func (r record) text() string {
	return fmt.Sprintf("%d %q %v %d %d %s", r.ID, r.Word, r.Size, r.Few, r.At.UnixMicro(),
		pointers(floats[float64]("", 0, false)).text(r.Tip))
}

// format is a kind of file, as something that is not the engine reads and writes it.
type format struct {
	name  string
	write func([]record) ([]byte, error)
	read  func([]byte) ([]record, error)
}

var formats = []format{
	{"csv", writeCSV, readCSV}, {"jsonl", writeJSON, readJSON}, {"parquet", writeParquet, readParquet},
	{"arrow", writeArrow, readArrow},
}

func writeCSV(rows []record) ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	_ = w.Write([]string{"id", "word", "size", "few", "at", "tip"})
	for _, r := range rows {
		tip := ""
		if r.Tip != nil {
			tip = fmt.Sprint(*r.Tip)
		}
		_ = w.Write([]string{fmt.Sprint(r.ID), r.Word, strconv.FormatFloat(r.Size, 'g', -1, 64), fmt.Sprint(r.Few),
			r.At.Format(time.RFC3339Nano), tip})
	}
	w.Flush()
	return out.Bytes(), w.Error()
}

func readCSV(raw []byte) (out []record, err error) {
	lines, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	for _, f := range lines[1:] {
		var r record
		if _, err := fmt.Sscan(f[0], &r.ID); err != nil {
			return nil, err
		}
		if _, err := fmt.Sscan(f[2]+" "+f[3], &r.Size, &r.Few); err != nil {
			return nil, err
		}
		if r.At, err = time.Parse(time.RFC3339Nano, f[4]); err != nil {
			return nil, err
		}
		if r.Word = f[1]; f[5] != "" {
			r.Tip = new(float64)
			if _, err := fmt.Sscan(f[5], r.Tip); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
	}
	return out, nil
}

func writeJSON(rows []record) ([]byte, error) {
	var out bytes.Buffer
	w := json.NewEncoder(&out)
	for _, r := range rows {
		if err := w.Encode(r); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func readJSON(raw []byte) (out []record, err error) {
	for in := json.NewDecoder(bytes.NewReader(raw)); in.More(); {
		var r record
		if err := in.Decode(&r); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

var schema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "word", Type: arrow.BinaryTypes.String},
	{Name: "size", Type: arrow.PrimitiveTypes.Float64},
	{Name: "few", Type: arrow.PrimitiveTypes.Int8}, {Name: "at", Type: arrow.FixedWidthTypes.Timestamp_us},
	{Name: "tip", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
}, nil)

// columns are records as columns.
func columns(rows []record) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for _, r := range rows {
		b.Field(0).(*array.Int64Builder).Append(r.ID)
		b.Field(1).(*array.StringBuilder).Append(r.Word)
		b.Field(2).(*array.Float64Builder).Append(r.Size)
		b.Field(3).(*array.Int8Builder).Append(r.Few)
		b.Field(4).(*array.TimestampBuilder).Append(arrow.Timestamp(r.At.UnixMicro()))
		if tips := b.Field(5).(*array.Float64Builder); r.Tip == nil {
			tips.AppendNull()
		} else {
			tips.Append(*r.Tip)
		}
	}
	return b.NewRecord()
}

// recordsOf are columns as records.
func recordsOf(in arrow.Record) (out []record, err error) {
	col := map[string]arrow.Array{}
	for i, f := range in.Schema().Fields() {
		col[f.Name] = in.Column(i)
	}
	id, ok1 := col["id"].(*array.Int64)
	word, ok2 := col["word"].(*array.String)
	size, ok3 := col["size"].(*array.Float64)
	few, ok4 := col["few"].(*array.Int8)
	at, ok5 := col["at"].(*array.Timestamp)
	tip, ok6 := col["tip"].(*array.Float64)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 {
		return nil, fmt.Errorf("the columns are %v", in.Schema())
	}
	for i := range int(in.NumRows()) {
		r := record{id.Value(i), word.Value(i), size.Value(i), few.Value(i), time.UnixMicro(int64(at.Value(i))), nil}
		if tip.IsValid(i) {
			r.Tip = new(tip.Value(i))
		}
		out = append(out, r)
	}
	return out, nil
}

func writeParquet(rows []record) ([]byte, error) {
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &out, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	all := columns(rows)
	defer all.Release()
	if err := w.Write(all); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

func readParquet(raw []byte) (out []record, err error) {
	table, err := pqarrow.ReadTable(context.Background(), bytes.NewReader(raw), nil, pqarrow.ArrowReadProperties{},
		memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	defer table.Release()
	for in := array.NewTableReader(table, 0); in.Next(); {
		rows, err := recordsOf(in.Record())
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	return out, nil
}

func writeArrow(rows []record) ([]byte, error) {
	f, err := os.CreateTemp("", "soak-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
	if err != nil {
		return nil, err
	}
	all := columns(rows)
	defer all.Release()
	if err := w.Write(all); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(f.Name())
}

func readArrow(raw []byte) (out []record, err error) {
	in, err := ipc.NewFileReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	for {
		r, err := in.Read()
		if err == io.EOF {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		rows, err := recordsOf(r)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
}
