package row

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/datasets"
	"github.com/volley-engine/volley/storage/input"
)

// written is what another program has read of a file: testdata/columns.py.
type written struct {
	Rows    int
	Failed  string
	Columns map[string]struct {
		Kind, Type, Failed string
		First              []*string
	}
}

// refused are the files, or columns, that are not read, and what is said.
var refused = func() map[string]string {
	out := map[string]string{
		"parquet-testing/data/unknown-logical-type.parquet":              "invalid logical type",
		"parquet-testing/data/datapage_v2_empty_datapage.snappy.parquet": "malformed",
		"parquet-testing/data/byte_stream_split.zstd.parquet":            "BYTE_STREAM_SPLIT, which is not read",
		"parquet-testing/data/lz4_raw_compressed.parquet":                "LZ4_RAW, which is not read",
		"parquet-testing/data/lz4_raw_compressed_larger.parquet":         "LZ4_RAW, which is not read",
		"parquet-testing/data/hadoop_lz4_compressed.parquet":             "LZ4, which is not read",
		"parquet-testing/data/hadoop_lz4_compressed_larger.parquet":      "LZ4, which is not read",
		"parquet-testing/data/non_hadoop_lz4_compressed.parquet":         "LZ4, which is not read",
	}
	for _, c := range []string{"float16", "float", "double", "int32", "int64", "flba5", "decimal"} {
		out["parquet-testing/data/byte_stream_split_extended.gzip.parquet/"+c+"_byte_stream_split"] =
			"BYTE_STREAM_SPLIT, which is not read"
	}
	const ipc = "arrow-testing/arrow-ipc-stream/integration/1.0.0-"
	for _, ends := range []string{"littleendian/", "bigendian/"} {
		for _, file := range []string{".stream/", ".arrow_file/"} {
			for _, c := range []string{"f1", "f2", "f3"} { // of seconds, milliseconds, microseconds
				out[ipc+ends+"generated_interval"+file+c] = "more than a time.Duration holds"
			}
		}
	}
	return out
}()

// TestColumnsOfOtherWriters reads every column of the files that the makers of Arrow and Parquet test
// readers by, into the fields that docs/guide.md names for its type, and compares the values with those that
// pyarrow reads.
func TestColumnsOfOtherWriters(t *testing.T) {
	root := filepath.Dir(datasets.Path(t, "parquet-testing"))
	raw, err := os.ReadFile("testdata/columns.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]written
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for file, w := range all {
		for name, c := range w.Columns {
			read := readerOf[c.Kind]
			if read == nil || c.First == nil {
				continue
			}
			got, err := read(filepath.Join(root, file), name)
			says, no := refused[file]
			if s, ok := refused[file+"/"+name]; ok {
				says, no = s, true
			}
			switch {
			case no && (err == nil || !strings.Contains(err.Error(), says)):
				t.Errorf("%s %s: %v, want %q", file, name, err, says)
			case !no && err != nil:
				t.Errorf("%s %s, a %s: %v", file, name, c.Type, err)
			case !no && len(got) != w.Rows:
				t.Errorf("%s %s has %d rows, want %d", file, name, len(got), w.Rows)
			case !no:
				for i, want := range c.First {
					if !sameText(got[i], want, c.Kind) {
						t.Errorf("%s %s row %d: %s, want %s", file, name, i, shown(got[i]), shown(want))
						break
					}
				}
			}
		}
	}
}

func shown(s *string) string {
	if s == nil {
		return "null"
	}
	return strconv.Quote(*s)
}

func sameText(got, want *string, kind string) bool {
	if got == nil || want == nil {
		return got == want
	}
	if kind == "float" {
		a, _ := strconv.ParseFloat(*got, 64)
		b, _ := strconv.ParseFloat(*want, 64)
		return a == b || math.IsNaN(a) && math.IsNaN(b)
	}
	return *got == *want
}

// readerOf returns, by kind of column, what reads all its values as text.
var readerOf = map[string]func(path, column string) ([]*string, error){
	"bool":     values(func(v bool) string { return strconv.FormatBool(v) }),
	"whole":    wholes,
	"float":    values(func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }),
	"decimal":  values(func(v string) string { return v }),
	"text":     values(func(v string) string { return v }),
	"bytes":    values(func(v []byte) string { return hex.EncodeToString(v) }),
	"fixed":    values(func(v []byte) string { return hex.EncodeToString(v) }),
	"time":     values(func(v time.Time) string { return nanos(v) }),
	"duration": values(func(v time.Duration) string { return strconv.FormatInt(int64(v), 10) }),
	"list of whole": values(func(v []*int64) string {
		return listed(v, func(x int64) string { return fmt.Sprint(x) })
	}),
	"list of text": values(func(v []*string) string { return listed(v, func(x string) string { return x }) }),
}

// nanos returns a time in nanoseconds, which may be more than 64 bits have.
func nanos(v time.Time) string {
	n := new(big.Int).Mul(big.NewInt(v.Unix()), big.NewInt(1e9))
	return n.Add(n, big.NewInt(int64(v.Nanosecond()))).String()
}

func listed[V any](v []*V, text func(V) string) string {
	var out []string
	for _, x := range v {
		if x == nil {
			out = append(out, `"None"`)
			continue
		}
		raw, _ := json.Marshal(text(*x))
		out = append(out, string(raw))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// wholes reads numbers with a sign, or, where they are too large, without.
func wholes(path, column string) ([]*string, error) {
	out, err := values(func(v int64) string { return strconv.FormatInt(v, 10) })(path, column)
	if err != nil && strings.Contains(err.Error(), "make the field a uint64") {
		return values(func(v uint64) string { return strconv.FormatUint(v, 10) })(path, column)
	}
	return out, err
}

// values returns what reads a column whose values, or nulls, are of a type.
func values[V any](text func(V) string) func(path, column string) ([]*string, error) {
	return func(path, column string) ([]*string, error) {
		type one struct{ V *V }
		c, err := ColumnsOf[one]()
		if err != nil {
			return nil, err
		}
		c.fields[0].name = column
		o := input.Options{Typed: []string{column}, Format: input.Arrow}
		if strings.HasSuffix(path, ".parquet") {
			o.Format = input.Parquet
		}
		s, err := input.Open(context.Background(), o, path)
		if err != nil {
			return nil, err
		}
		var out []*string
		take := func(rows []one) error {
			for _, r := range rows {
				if r.V == nil {
					out = append(out, nil)
					continue
				}
				v := text(*r.V)
				out = append(out, &v)
			}
			return nil
		}
		for part := range s.Len() {
			if s.Flat && c.IsFlat() {
				err = c.ReadFlat(context.Background(), s, part, take)
			} else {
				err = c.ReadArrow(context.Background(), s, part, take)
			}
			if err != nil {
				return nil, err
			}
		}
		return slices.Clip(out), nil
	}
}
