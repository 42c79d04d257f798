package parquet

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// sentRows are the values of a record that was sent, of each message.
func sentRows(t *testing.T, rec arrow.Record) (rows []string, messages, bytesSent int) {
	var out bytes.Buffer
	s := &sender{out: bufio.NewWriter(&out)}
	if err := errors.Join(sendRecord(s, rec), s.out.Flush()); err != nil {
		t.Fatal(err)
	}
	bytesSent = out.Len()
	for ; out.Len() > 0; messages++ {
		var reply decodeReply
		if err := json.Unmarshal(out.Next(int(binary.LittleEndian.Uint32(out.Next(4)))), &reply); err != nil {
			t.Fatal(err)
		}
		r, err := ipc.NewReader(bytes.NewReader(out.Next(reply.Inline)))
		if err != nil {
			t.Fatal(err)
		}
		for r.Next() {
			rows = append(rows, valuesOf(r.Record())...)
		}
		if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		r.Release()
	}
	return rows, messages, bytesSent
}

func valuesOf(rec arrow.Record) (rows []string) {
	for i := range int(rec.NumRows()) {
		row := ""
		for _, c := range rec.Columns() {
			row += c.ValueStr(i) + ";"
		}
		rows = append(rows, row)
	}
	return rows
}

// TestADictionaryIsNotSentAgainAndAgain: with every part of a record goes the whole of it.
func TestADictionaryIsNotSentAgainAndAgain(t *testing.T) {
	kind := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	schema := arrow.NewSchema([]arrow.Field{{Name: "text", Type: kind},
		{Name: "texts", Type: arrow.ListOf(arrow.BinaryTypes.String)}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	const rows = 8000
	for i := range rows {
		text := fmt.Sprint(i, strings.Repeat("x", 1000))
		if err := b.Field(0).(*array.BinaryDictionaryBuilder).AppendString(text); err != nil {
			t.Fatal(err)
		}
		list := b.Field(1).(*array.ListBuilder)
		list.Append(i%7 != 0)
		for range i % 3 {
			list.ValueBuilder().(*array.StringBuilder).Append(text[:i%100])
		}
	}
	rec := b.NewRecord()
	defer rec.Release()
	want := valuesOf(rec)
	got, messages, sent := sentRows(t, rec)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Error("its rows are others")
	}
	if sent > 3*rows*1000 {
		t.Errorf("%d messages of %d bytes for a dictionary of %d", messages, sent, rows*1000)
	}
	plain := array.NewRecord(arrow.NewSchema(schema.Fields()[1:], nil), []arrow.Array{rec.Column(1)}, rows)
	defer plain.Release()
	if got, messages, _ := sentRows(t, plain); fmt.Sprint(got) != fmt.Sprint(valuesOf(plain)) || messages < 2 {
		t.Errorf("without it: %d messages, or other rows", messages)
	}
}
