package arrowstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/saved"
)

var columns = arrow.NewSchema([]arrow.Field{
	{Name: "n", Type: arrow.PrimitiveTypes.Int64},
	{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Float32), Nullable: true},
}, nil)

// someRows returns a record of n rows.
func someRows(rng *rand.Rand, n int) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
	for range n {
		b.Field(0).(*array.Int64Builder).Append(rng.Int64())
		if rng.IntN(3) == 0 {
			b.Field(1).AppendNull()
			b.Field(2).AppendNull()
			b.Field(3).AppendNull()
			continue
		}
		b.Field(1).(*array.Float64Builder).Append(rng.NormFloat64())
		b.Field(2).(*array.StringBuilder).Append(strings.Repeat("é", rng.IntN(4)))
		list := b.Field(3).(*array.ListBuilder)
		list.Append(true)
		for range rng.IntN(3) {
			list.ValueBuilder().(*array.Float32Builder).Append(rng.Float32())
		}
	}
	return b.NewRecord()
}

// writers write records as files of each format.
var writers = map[string]func(t *testing.T, w io.Writer, recs []arrow.Record){
	"stream": func(t *testing.T, w io.Writer, recs []arrow.Record) {
		writeAll(t, ipc.NewWriter(w, ipc.WithSchema(columns)), recs)
	},
	"zstd": func(t *testing.T, w io.Writer, recs []arrow.Record) {
		writeAll(t, ipc.NewWriter(w, ipc.WithSchema(columns), ipc.WithZstd()), recs)
	},
	"file": func(t *testing.T, w io.Writer, recs []arrow.Record) {
		out, err := ipc.NewFileWriter(w.(io.WriteSeeker), ipc.WithSchema(columns))
		if err != nil {
			t.Fatal(err)
		}
		writeAll(t, out, recs)
	},
	"parquet": func(t *testing.T, w io.Writer, recs []arrow.Record) {
		out, err := pqarrow.NewFileWriter(columns, struct{ io.Writer }{w}, parquet.NewWriterProperties(),
			pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
		if err != nil {
			t.Fatal(err)
		}
		writeAll(t, out, recs)
	},
}

func writeAll(t *testing.T, w interface {
	Write(arrow.Record) error
	Close() error
}, recs []arrow.Record) {
	t.Helper()
	for _, r := range recs {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// rowsOf reads what Read yields by Arrow's own reader, and returns each row as text.
func rowsOf(t *testing.T, f files.File, as Format) (rows []string, names []string) {
	t.Helper()
	var stream []byte
	if err := Read(context.Background(), f, as, func(m Message) error {
		stream = Append(stream, m)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	in, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	for in.Next() {
		rows = append(rows, textsOf(in.Record())...)
	}
	if err := in.Err(); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	for _, f := range in.Schema().Fields() {
		names = append(names, f.Name)
	}
	return rows, names
}

func textsOf(rec arrow.Record) (rows []string) {
	for i := range int(rec.NumRows()) {
		row := ""
		for _, c := range rec.Columns() {
			row += c.ValueStr(i) + "|"
		}
		rows = append(rows, row)
	}
	return rows
}

func resolved(t *testing.T, path string) files.File {
	t.Helper()
	found, err := files.Resolve(path)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0]
}

// TestEveryFormatIsReadAsItWasWritten: what a reader of the stream has is what was written, in its order; and so it is
// with columns that directories have.
func TestEveryFormatIsReadAsItWasWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, write := range writers {
		for _, sizes := range [][]int{{}, {1}, {3, 0, 20_000, 5}} {
			var recs []arrow.Record
			var want []string
			for _, n := range sizes {
				recs = append(recs, someRows(rng, n))
				want = append(want, textsOf(recs[len(recs)-1])...)
			}
			dir := filepath.Join(t.TempDir(), "day=monday")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "part-00000")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, f, recs)
			f.Close()
			file := resolved(t, path)
			as, err := FormatOf(file)
			if err != nil {
				t.Fatal(err)
			}
			if got, names := rowsOf(t, file, as); !slices.Equal(got, want) || len(names) != 4 {
				t.Errorf("%s %v: %d rows, want %d; %v", name, sizes, len(got), len(want), names)
			}
			keyed := resolved(t, filepath.Dir(dir))
			for i := range want {
				want[i] += "monday|"
			}
			got, names := rowsOf(t, keyed, as)
			if !slices.Equal(got, want) || !slices.Equal(names, []string{"n", "x", "text", "list", "day"}) {
				t.Errorf("%s %v by directories: %d rows, want %d; %v", name, sizes, len(got), len(want), names)
			}
			if raw, err := SchemaOf(context.Background(), file, as); err != nil || len(raw) == 0 {
				t.Errorf("%s %v: no schema: %v", name, sizes, err)
			}
		}
	}
}

// TestTexts: lines are a column, records of a table columns of texts; what is not UTF-8 is an error that says where.
func TestTexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "part-00000")
	put := func(text string) files.File {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return resolved(t, path)
	}
	f := put("name,note\na,\"x,\ny\"\nb,\n")
	if got, names := rowsOf(t, f, Text); len(got) != 4 || !slices.Equal(names, []string{"line"}) {
		t.Errorf("%q %v", got, names)
	}
	got, names := rowsOf(t, f, CSV)
	if !slices.Equal(got, []string{"a|x,\ny|", "b|(null)|"}) || !slices.Equal(names, []string{"name", "note"}) {
		t.Errorf("%q %v", got, names)
	}
	for as, text := range map[Format]string{Text: "fine\nbad \xff\n", CSV: "name,note\na,\xff\n"} {
		err := Read(context.Background(), put(text), as, func(Message) error { return nil })
		if !fault.Is(err, fault.BadInput) || !strings.Contains(err.Error(), "line 2") ||
			!strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%s: %v", as, err)
		}
	}
}

// TestLargeMessagesAreCut: a message that is larger than may be passed on is cut by who decodes it.
func TestLargeMessagesAreCut(t *testing.T) {
	if raced {
		t.Skip("the race detector takes the memory that the child process may take")
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "x", Type: arrow.PrimitiveTypes.Float64}}, nil))
	n := mostBody/8 + 1
	b.Field(0).(*array.Float64Builder).AppendValues(make([]float64, n), nil)
	rec := b.NewRecord()
	path := filepath.Join(t.TempDir(), "part-00000")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	writeAll(t, ipc.NewWriter(f, ipc.WithSchema(rec.Schema())), []arrow.Record{rec})
	f.Close()
	var rows int64
	most := 0
	err = Read(context.Background(), resolved(t, path), Arrow, func(m Message) error {
		rows += m.Rows
		most = max(most, len(m.Body))
		return nil
	})
	if err != nil || rows != int64(n) || most > 1<<20 {
		t.Errorf("%d rows of %d, %d bytes at most: %v", rows, n, most, err)
	}
}

// messagesOf returns the messages of records.
func messagesOf(t *testing.T, recs ...arrow.Record) (all []Message) {
	t.Helper()
	var out bytes.Buffer
	writeAll(t, ipc.NewWriter(&out, ipc.WithSchema(recs[0].Schema())), recs)
	if err := each(out.Bytes(), func(m Message) error {
		all = append(all, m)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// nextOf returns messages one after the other.
func nextOf(all []Message) func() (Message, error) {
	return func() (Message, error) {
		if len(all) == 0 {
			return Message{}, io.EOF
		}
		m := all[0]
		all = all[1:]
		return m, nil
	}
}

// TestSaveIsWholeOrNothing: what is saved is read as it came; what readers would not read, or have less of, is refused,
// and nothing of it appears.
func TestSaveIsWholeOrNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	good := messagesOf(t, someRows(rng, 100), someRows(rng, 7))
	cut := slices.Clone(good)
	cut[1].Body = cut[1].Body[:len(cut[1].Body)/2]
	more := slices.Clone(good)
	more[2].Rows++ // which the message itself does not have
	other := slices.Clone(good)
	other[1].Body = bytes.Repeat([]byte{0xff}, len(other[1].Body)) // offsets of texts that lead out of it
	failed := errors.New("the client is gone")
	for name, c := range map[string]struct {
		next      func() (Message, error)
		announced int64
		rows      int64
	}{
		"good":       {nextOf(good), -1, 107},
		"as many":    {nextOf(good), 107, 107},
		"fewer":      {nextOf(good[:2]), 107, -1},
		"schema":     {nextOf(good[:1]), -1, 0},
		"nothing":    {nextOf(nil), -1, -1},
		"no schema":  {nextOf(good[1:]), -1, -1},
		"two":        {nextOf(slices.Concat(good, good)), -1, -1},
		"cut":        {nextOf(cut), -1, -1},
		"more":       {nextOf(more), -1, -1},
		"bad bodies": {nextOf(other), -1, -1},
		"gone": {func() (Message, error) {
			return Message{}, failed
		}, -1, -1},
	} {
		dir := filepath.Join(t.TempDir(), "saved")
		rows, err := Save(context.Background(), dir, saved.Options{}, c.announced, c.next, func() {})
		m, merr := files.ReadMarker(dir)
		switch {
		case merr != nil:
			t.Error(name, merr)
		case c.rows < 0 && (err == nil || m != nil):
			t.Errorf("%s: saved %d rows: %v", name, rows, err)
		case c.rows >= 0 && (err != nil || rows != c.rows || m == nil || m.Rows != rows):
			t.Errorf("%s: %d rows, want %d: %v", name, rows, c.rows, err)
		}
		left, _ := os.ReadDir(filepath.Dir(dir))
		if c.rows < 0 && len(left) > 0 {
			t.Errorf("%s: it has left %v", name, left)
		}
	}
}

// FuzzMessages: whatever comes as a stream, messages lie within it, or it is refused.
func FuzzMessages(f *testing.F) {
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(columns))
	rec := someRows(rand.New(rand.NewPCG(5, 6)), 3)
	if err := errors.Join(w.Write(rec), w.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	for i := 0; i < out.Len(); i += 13 {
		bad := slices.Clone(out.Bytes())
		bad[i] ^= 0x80
		f.Add(bad)
		f.Add(out.Bytes()[:i])
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		n := 0
		err := each(raw, func(m Message) error {
			if n++; (m.Kind == Schema) != (n == 1) {
				return fmt.Errorf("message %d is of kind %d", n, m.Kind)
			}
			_, err := Described(m.Header, m.Body)
			if err != nil && m.Rows >= 0 {
				return fmt.Errorf("message %d is described otherwise: %w", n, err)
			}
			return nil
		})
		if err != nil && !errors.Is(err, errNoMessages) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	})
}
