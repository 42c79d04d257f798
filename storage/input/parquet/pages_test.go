package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/volley-engine/volley/internal/raw"
)

// TestPlainPagesAreRead as decoders read them: numbers of all types, in pages of both
// versions that end within batches, compressed or not, required or without nulls, and
// next to columns that must be decoded.
func TestPlainPagesAreRead(t *testing.T) {
	for name, properties := range map[string][]parquet.WriterProperty{
		"version 1": {parquet.WithDictionaryDefault(false), parquet.WithDataPageVersion(parquet.DataPageV1)},
		"version 2": {parquet.WithDictionaryDefault(false), parquet.WithDataPageVersion(parquet.DataPageV2)},
		"snappy":    {parquet.WithDictionaryDefault(false), parquet.WithCompression(compress.Codecs.Snappy)},
		"zstd, 2": {parquet.WithDictionaryDefault(false), parquet.WithCompression(compress.Codecs.Zstd),
			parquet.WithDataPageVersion(parquet.DataPageV2)},
		"gzip":          {parquet.WithDictionaryDefault(false), parquet.WithCompression(compress.Codecs.Gzip)},
		"dictionaries":  {parquet.WithDictionaryDefault(true)},
		"no statistics": {parquet.WithDictionaryDefault(false), parquet.WithStats(false)},
	} {
		for _, nullable := range []bool{false, true} {
			for _, nulls := range []bool{false, true} {
				if nulls && !nullable {
					continue
				}
				t.Run(fmt.Sprintf("%s nullable %v nulls %v", name, nullable, nulls), func(t *testing.T) {
					plain := name != "dictionaries" && !nulls && (name != "no statistics" || !nullable)
					for _, page := range []int64{3000, 20_000, 1 << 20} { // within batches, of several, of all
						readNumbersOf(t, append(slices.Clone(properties), parquet.WithDataPageSize(page),
							parquet.WithBatchSize(100)), nullable, nulls, plain)
					}
				})
			}
		}
	}
}

func readNumbersOf(t *testing.T, properties []parquet.WriterProperty, nullable, nulls, plain bool) {
	rec, valid := numbersOfAllTypes(nullable, nulls)
	path := filepath.Join(t.TempDir(), "numbers.parquet")
	writeParquet(t, path, rec, properties)
	f, err := openFlat(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	var names []string
	for i, field := range rec.Schema().Fields() {
		names = append(names, field.Name)
		if p, err := f.pageColumn(0, i); err != nil || (p != nil) != plain {
			t.Fatalf("column %s is read by pages: %v, %v", field.Name, p != nil, err)
		}
	}
	unpacked := f.groupPages(0, names) != nil && f.groupPages(1, names) != nil
	for _, c := range f.r.MetaData().RowGroups[0].Columns {
		plain = plain && (c.MetaData.Codec == 0 || c.MetaData.Codec == 1)
	}
	if unpacked != plain {
		t.Errorf("pages are unpacked by who asks for them: %v, want %v", unpacked, plain)
	}
	for way, read := range map[string]func(yield func(int, []*FlatColumn) error) error{
		"decoded":  func(yield func(int, []*FlatColumn) error) error { return f.read([]int{0, 1}, names, yield) },
		"unpacked": func(yield func(int, []*FlatColumn) error) error { return readRaw(f, []int{0, 1}, names, yield) },
	} {
		if way == "decoded" || unpacked {
			t.Run(way, func(t *testing.T) { sameNumbers(t, read, rec, valid) })
		}
	}
}

// readRaw reads row groups as who asks a decoder for columns does.
func readRaw(f *flatFile, groups []int, names []string, yield func(int, []*FlatColumn) error) error {
	raw := &rawFile{path: f.path}
	defer raw.close()
	cols := make([]*FlatColumn, len(names))
	for i, name := range names {
		cols[i] = &FlatColumn{Name: name}
	}
	for _, g := range groups {
		pages := f.groupPages(g, names)
		if pages == nil {
			return errNotRaw
		}
		if err := raw.group(pages, cols, yield); err != nil {
			return err
		}
	}
	return nil
}

var errNotRaw = errors.New("pages must be decoded")

func sameNumbers(t *testing.T, read func(yield func(int, []*FlatColumn) error) error, rec arrow.Record, valid []bool) {
	row := 0
	err := read(func(n int, cols []*FlatColumn) error {
		for i, c := range cols {
			got := make([]float64, max(len(c.Int32s), len(c.Int64s), len(c.Floats), len(c.Doubles)))
			c.numbers(got, 1)
			for r := range n {
				if c.Defs != nil && (c.Defs[r] == 1) != valid[row+r] {
					t.Fatalf("row %d of %s is null: %v", row+r, c.Name, valid[row+r])
				}
				if !valid[row+r] {
					continue
				}
				if want := float64(numberAt(rec.Column(i), row+r)); len(got) == 0 || got[0] != want {
					t.Fatalf("row %d of %s is not %v", row+r, c.Name, want)
				}
				got = got[1:]
			}
		}
		row += n
		return nil
	})
	if err != nil || row != int(rec.NumRows()) {
		t.Fatalf("%d rows, %v", row, err)
	}
}

func numbersOfAllTypes(nullable, nulls bool) (arrow.Record, []bool) {
	rng := rand.New(rand.NewPCG(1, 2))
	var fields []arrow.Field
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64} {
		fields = append(fields, arrow.Field{Name: typ.Name(), Type: typ, Nullable: nullable})
	}
	const rows = 10000 // of which a group has no multiple of a batch
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	valid := make([]bool, rows)
	for i := range valid {
		if valid[i] = !nulls || rng.IntN(5) > 0; !valid[i] {
			for _, f := range b.Fields() {
				f.AppendNull()
			}
			continue
		}
		v := rng.IntN(100) - 50
		b.Field(0).(*array.Int32Builder).Append(int32(v))
		b.Field(1).(*array.Int64Builder).Append(int64(v) << 20)
		b.Field(2).(*array.Float32Builder).Append(float32(v) / 4)
		b.Field(3).(*array.Float64Builder).Append(float64(v) / 3)
	}
	return b.NewRecord(), valid
}

func numberAt(c arrow.Array, i int) float64 {
	switch c := c.(type) {
	case *array.Int32:
		return float64(c.Value(i))
	case *array.Int64:
		return float64(c.Value(i))
	case *array.Float32:
		return float64(c.Value(i))
	}
	return c.(*array.Float64).Value(i)
}

func writeParquet(t *testing.T, path string, rec arrow.Record, properties []parquet.WriterProperty) {
	t.Helper()
	writeParquetGroups(t, path, rec, 7000, properties)
}

func writeParquetGroups(t *testing.T, path string, rec arrow.Record, group int64, properties []parquet.WriterProperty) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	properties = append(slices.Clone(properties), parquet.WithMaxRowGroupLength(group))
	w, err := pqarrow.NewFileWriter(rec.Schema(), f, parquet.NewWriterProperties(properties...),
		pqarrow.DefaultWriterProps())
	if err == nil {
		err = w.Write(rec)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestStatisticsWithoutANumberOfNulls say nothing of nulls.
func TestStatisticsWithoutANumberOfNulls(t *testing.T) {
	for _, dictionary := range []bool{false, true} {
		rec, valid := numbersOfAllTypes(true, true)
		path := filepath.Join(t.TempDir(), "numbers.parquet")
		writeParquet(t, path, rec, []parquet.WriterProperty{parquet.WithDictionaryDefault(dictionary)})
		f, err := openFlat(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.close()
		read := func(nulls *int64) (present int, err error) {
			f.r.MetaData().RowGroups[0].Columns[1].MetaData.Statistics.NullCount = nulls
			err = f.read([]int{0}, []string{"int64"}, func(n int, cols []*FlatColumn) error {
				present += len(cols[0].Int64s)
				return nil
			})
			return present, err
		}
		want := 0
		for _, v := range valid[:7000] {
			if v {
				want++
			}
		}
		if got, err := read(nil); err != nil || got != want {
			t.Errorf("dictionary %v: %d of %d numbers, %v", dictionary, got, want, err)
		}
		if _, err := read(new(int64)); err == nil {
			t.Errorf("dictionary %v: statistics that deny nulls are believed", dictionary)
		}
	}
}

// unpacked is a reader of pages of 64 bytes, of which an unpacker has written some.
type unpacked struct {
	file.PageReader
	room    *pageMemory
	last    byte // that was written
	written []int
	page    file.Page
}

func (u *unpacked) Next() bool {
	if len(u.written) == 0 {
		return false
	}
	data := u.room.Allocate(64)
	for i := range data[:u.written[0]] {
		data[i] = u.last
	}
	u.written = u.written[1:]
	u.page = file.NewDataPageV2(memory.NewBufferBytes(data), 8, 0, 8, parquet.Encodings.Plain, 0, 0, 64, true)
	return true
}

func (u *unpacked) Page() file.Page { return u.page }
func (u *unpacked) Err() error      { return nil }

// TestPagesThatAreNotFilledAreNoticed: what the last page has left is not taken for theirs, however little it is, and
// bytes that happen to be the same are theirs.
func TestPagesThatAreNotFilledAreNoticed(t *testing.T) {
	for missing := range 17 {
		for last := range 256 {
			open := func() *plainPages {
				room := &pageMemory{mark: 0x0102030405060708}
				pages := &unpacked{room: room, last: byte(last), written: []int{64, 64 - missing}}
				return &plainPages{room: room, stream: &soundStream{}, PageReader: pages}
			}
			p := open()
			p.again = func() (*plainPages, error) { return open(), nil }
			if more, err := p.next(); !more || err != nil {
				t.Fatalf("bytes of %d: the first page: %v, %v", last, more, err)
			}
			if more, err := p.next(); more != (missing == 0) || (err == nil) != (missing == 0) {
				t.Errorf("bytes of %d, %d missing: %v, %v", last, missing, more, err)
			}
		}
	}
}

// TestDamagedPlainPages are errors, or numbers that are as many as there were, but
// never a panic.
func TestDamagedPlainPages(t *testing.T) {
	for name, properties := range map[string][]parquet.WriterProperty{
		"version 1": {parquet.WithDataPageVersion(parquet.DataPageV1)},
		"version 2": {parquet.WithDataPageVersion(parquet.DataPageV2)},
		"snappy":    {parquet.WithCompression(compress.Codecs.Snappy)},
		"snappy, 2": {parquet.WithCompression(compress.Codecs.Snappy), parquet.WithDataPageVersion(parquet.DataPageV2)},
	} {
		t.Run(name, func(t *testing.T) {
			rec, _ := numbersOfAllTypes(true, false)
			path := filepath.Join(t.TempDir(), "numbers.parquet")
			writeParquet(t, path, rec,
				append(properties, parquet.WithDictionaryDefault(false), parquet.WithDataPageSize(3000),
					parquet.WithBatchSize(100)))
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			rng, failed := rand.New(rand.NewPCG(4, 4)), 0
			for range 100 {
				raw := slices.Clone(whole)
				for range 1 + rng.IntN(4) {
					raw[rng.IntN(len(raw)*9/10)] ^= byte(1 << rng.IntN(8)) // the footer is at the end
				}
				if err := os.WriteFile(path, raw, 0o600); err != nil {
					t.Fatal(err)
				}
				failed += readDamaged(t, path)
			}
			if failed == 0 && strings.HasPrefix(name, "snappy") { // else nearly all bytes are of numbers
				t.Fatal("no damage was noticed")
			}
		})
	}
}

func readDamaged(t *testing.T, path string) (failed int) {
	f, err := openFlat(path)
	if err != nil {
		return 1
	}
	defer f.close()
	names := []string{"int32", "float64"}
	for g, rows := range []int{7000, 3000} {
		var ints [2][]int32
		var doubles [2][]float64
		var errs [2]error
		for way, read := range []func([]int, []string, func(int, []*FlatColumn) error) error{f.read,
			func(g []int, names []string, yield func(int, []*FlatColumn) error) error {
				return readRaw(f, g, names, yield)
			}} {
			errs[way] = read([]int{g}, names, func(n int, cols []*FlatColumn) error {
				if len(cols[0].Int32s) != n || len(cols[1].Doubles) != n {
					t.Errorf("%d rows have %d and %d numbers", n, len(cols[0].Int32s), len(cols[1].Doubles))
				}
				ints[way], doubles[way] = append(ints[way], cols[0].Int32s...), append(doubles[way], cols[1].Doubles...)
				return nil
			})
			if errs[way] == nil && len(ints[way]) != rows {
				t.Errorf("%d of %d rows", len(ints[way]), rows)
			}
		}
		if errs[0] != nil {
			failed++
		}
		if errs[0] == nil && errs[1] == nil && (!slices.Equal(ints[0], ints[1]) ||
			!bytes.Equal(raw.Bytes(doubles[0]), raw.Bytes(doubles[1]))) {
			t.Error("damaged pages are unpacked to other numbers than decoders make of them")
		}
		if errs[0] != nil && errs[1] == nil {
			t.Errorf("damaged pages are unpacked of which decoders say %v", errs[0])
		}
	}
	return failed
}

// textsOf is a file of texts and numbers, none of them null.
func textsOf(t *testing.T, nullable bool, properties []parquet.WriterProperty) (path string, want []string) {
	fields := []arrow.Field{{Name: "text", Type: arrow.BinaryTypes.String, Nullable: nullable},
		{Name: "int64", Type: arrow.PrimitiveTypes.Int64}}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	rng := rand.New(rand.NewPCG(8, 9))
	for i := range 10_000 {
		text := strings.Repeat("text ", rng.IntN(4))
		if i%1000 == 999 {
			text = strings.Repeat("long ", 2000)
		}
		want = append(want, text)
		b.Field(0).(*array.StringBuilder).Append(text)
		b.Field(1).(*array.Int64Builder).Append(int64(i))
	}
	path = filepath.Join(t.TempDir(), "texts.parquet")
	writeParquet(t, path, b.NewRecord(), properties)
	return path, want
}

// TestPlainTextsAreRead in place, whatever pages end within a batch.
func TestPlainTextsAreRead(t *testing.T) {
	for _, version := range []parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2} {
		for _, codec := range []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy} {
			for _, nullable := range []bool{false, true} {
				for _, page := range []int64{100, 3000, 1 << 20} {
					path, want := textsOf(t, nullable,
						[]parquet.WriterProperty{parquet.WithDictionaryDefault(false),
							parquet.WithDataPageVersion(version),
							parquet.WithCompression(codec), parquet.WithDataPageSize(page), parquet.WithBatchSize(50)})
					f, err := openFlat(path)
					if err != nil {
						t.Fatal(err)
					}
					defer f.close()
					var got []string
					err = readRaw(f, []int{0, 1}, []string{"text", "int64"}, func(n int, cols []*FlatColumn) error {
						if len(cols[1].Int64s) != n || cols[1].Int64s[0] != int64(len(got)) {
							t.Fatalf("%d rows have %d numbers, from %v", n, len(cols[1].Int64s), cols[1].Int64s[:1])
						}
						for _, b := range cols[0].Bytes {
							got = append(got, string(b))
						}
						return nil
					})
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("version %v, %v, nullable %v, pages of %d: %d texts, or others, %v", version, codec,
							nullable, page, len(got), err)
					}
				}
			}
		}
	}
}

// TestDamagedTexts are errors, or as many texts as there were, and the same that the decoders
// make of them.
func TestDamagedTexts(t *testing.T) {
	path, _ := textsOf(t, true,
		[]parquet.WriterProperty{parquet.WithDictionaryDefault(false), parquet.WithDataPageSize(3000),
			parquet.WithBatchSize(100)})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rng, failed := rand.New(rand.NewPCG(4, 5)), 0
	for range 100 {
		raw := slices.Clone(whole)
		for range 1 + rng.IntN(30) {
			raw[rng.IntN(len(raw)*9/10)] ^= byte(1 << rng.IntN(8))
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := openFlat(path)
		if err != nil {
			continue
		}
		texts := func(read func([]int, []string, func(int, []*FlatColumn) error) error) (got []string, err error) {
			err = read([]int{0}, []string{"text"}, func(n int, cols []*FlatColumn) error {
				for _, b := range cols[0].Bytes {
					got = append(got, string(b))
				}
				return nil
			})
			return got, err
		}
		decoded, err := texts(f.read)
		unpacked, raw2 := texts(func(g []int, names []string, yield func(int, []*FlatColumn) error) error {
			return readRaw(f, g, names, yield)
		})
		f.close()
		switch {
		case raw2 != nil:
			failed++
		case err != nil:
			t.Errorf("damaged pages are unpacked of which decoders say %v", err)
		case len(unpacked) != 7000 || !slices.Equal(decoded, unpacked):
			t.Errorf("%d texts are unpacked, or others than the %d decoded", len(unpacked), len(decoded))
		}
	}
	if failed < 10 {
		t.Errorf("of 100 damaged files, %d were noticed", failed)
	}
}
