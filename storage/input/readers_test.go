package input_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/pack"
)

func TestBadInputNamesFileLineAndField(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"out of order", "1 1:1\n0 3:1 2:1\n", "line 2: index 2 comes after index 3"},
		{"index too large", "1 1:1\n0 2147483648:1\n", "line 2: the index of"},
		{"no pair", "1 1:1\n0 2\n", `line 2: "2" is not an index:value pair`},
		{"value", "1 1:1\n0 2:x\n", `line 2: the value of "2:x" is not a number`},
		{"NaN", "1 1:1\n0 2:nan\n", "line 2: the value of \"2:nan\" is not finite"},
		{"label", "1 1:1\nx 2:1\n", `line 2: the label "x" is not a number`},
		{"no label", "1 1:1\n2:1\n", "line 2: the line begins with"},
		{"ragged", "1,2,3\n0,2\n", "line 2: the row has 2 fields, the first row 3"},
		{"too many", "1,2,3\n0,2,3,4\n", "line 2: the row has more than the 3 fields"},
		{"text field", "label,a,b\n0,1,2\n1,x,2\n", `line 3: field "a" is "x", not a number`},
		{"empty field", "label,a,b\n0,1,2\n1,,2\n", `line 3: field "a" is empty`},
		{"csv NaN", "0,1\n1,nan\n", `line 2: field 1 is "nan", not finite`},
		{"empty label", "label,a\n1,2\n,2\n", `line 3: the label in field "label" is empty`},
	}
	for _, c := range cases {
		_, err := packedText(t, c.text, input.Options{}, pack.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "input") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := packedText(t, "", input.Options{}, pack.Options{}); err == nil ||
		!strings.Contains(err.Error(), "empty") {
		t.Errorf("empty file: %v", err)
	}
}

func TestLineNumbersAcrossRanges(t *testing.T) {
	var b strings.Builder
	for range 2_000_000 {
		b.WriteString("1 1:1 2:2\n")
	}
	b.WriteString("1 2:1 1:1\n")
	_, err := packedText(t, b.String(), input.Options{}, pack.Options{Workers: 2})
	if err == nil || !strings.Contains(err.Error(), "line 2000001:") {
		t.Errorf("%v", err)
	}
}

func TestTablesAsPeopleWriteThem(t *testing.T) {
	cases := []struct {
		name, text     string
		o              input.Options
		rows, features int
	}{
		{"semicolons, header with #", "# a;b;label\n1;2;0\n3;4;1\n", input.Options{}, 2, 2},
		{"header with # and no blank", "#a;b;label\n1;2;0\n3;4;1\n", input.Options{}, 2, 2},
		{"tabs", "1\t2\t3\n0\t4\t5\n", input.Options{}, 2, 2},
		{"quotes", "\"label\",\"x, y\"\n\"1\",\"2\"\n\"0\",\"3\"\n", input.Options{}, 2, 1},
		{"blank lines and CRLF", "1,2\r\n\r\n0,3\r\n\n", input.Options{}, 2, 1},
		{"label by name", "a,b,kind\n1,2,yes\n3,4,no\n", input.Options{Label: "kind"}, 2, 2},
		{"label by number", "1,2,7\n3,4,8\n", input.Options{Label: "2"}, 2, 2},
		{"no newline at the end", "1,2\n0,3", input.Options{}, 2, 1},
		{"qid and comments", "1 qid:3 1:1 # first\n# nothing\n0 qid:3 2:1\n", input.Options{}, 2, 2},
		{"empty sparse rows", "1\n0 1:1\n1\n", input.Options{Format: input.LIBSVM}, 3, 1},
		{"zero-based", "1 0:1 5:1\n0 3:1\n", input.Options{}, 2, 6},
		{"zero-based by order", "1 1:1 5:1\n0 3:1\n", input.Options{IndexBase: 1}, 2, 6},
	}
	for _, c := range cases {
		p, err := packedText(t, c.text, c.o, pack.Options{IndexBase: c.o.IndexBase})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if p.Meta.Rows != int64(c.rows) || p.Meta.Features != c.features {
			t.Errorf("%s: %d rows × %d features, want %d × %d", c.name, p.Meta.Rows, p.Meta.Features,
				c.rows, c.features)
		}
	}
}

func TestRangesReadEveryLineOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "%d %s\n", i, strings.Repeat("x", i%97))
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	inputs, err := files.Resolve(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{97, 1000, 65536, 1 << 20} {
		if size < 100 && testing.Short() {
			continue
		}
		parts, err := files.Ranges(inputs, size)
		if err != nil {
			t.Fatal(err)
		}
		src := &input.Source{Format: input.Text, Parts: parts, Files: inputs}
		var got bytes.Buffer
		for part := range src.Len() {
			err := src.Lines(context.Background(), part, func(line []byte) error {
				got.Write(line)
				return got.WriteByte('\n')
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if got.String() != b.String() {
			t.Fatalf("ranges of %d bytes do not add up to the file", size)
		}
	}
}

func TestCompressedAndCutShort(t *testing.T) {
	text := strings.Repeat("1 1:1 2:0.5\n0 2:1\n", 5000)
	var gz, zst bytes.Buffer
	w := gzip.NewWriter(&gz)
	w.Write([]byte(text))
	w.Close()
	z, _ := zstd.NewWriter(&zst)
	z.Write([]byte(text))
	z.Close()
	for name, raw := range map[string][]byte{"gzip": gz.Bytes(), "zstd": zst.Bytes()} {
		if p, err := packedText(t, string(raw), input.Options{}, pack.Options{}); err != nil || p.Meta.Rows != 10_000 {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := packedText(t, string(raw[:len(raw)/2]), input.Options{}, pack.Options{}); err == nil {
			t.Errorf("%s cut short is taken for whole", name)
		}
	}
}

func TestAGzipBombAndAnEndlessLineAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("half a gigabyte of zeros")
	}
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	zeros := bytes.Repeat([]byte{'0'}, 1<<20)
	for range 300 {
		w.Write(zeros)
	}
	w.Close()
	if _, err := packedText(t, gz.String(), input.Options{Format: input.CSV}, pack.Options{}); err == nil {
		t.Error("a line of 300 MiB is taken")
	}
	gz.Reset()
	w = gzip.NewWriter(&gz)
	lines := bytes.Repeat([]byte("1 1:1\n"), 1<<18)
	for range 200 {
		w.Write(lines)
	}
	w.Close()
	if _, err := packedText(t, gz.String(), input.Options{Format: input.LIBSVM}, pack.Options{}); err == nil ||
		!strings.Contains(err.Error(), "bomb") {
		t.Errorf("a bomb: %v", err)
	}
}

func TestAnEightByteStreamThatClaimsTwoGigabytes(t *testing.T) {
	raw := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	if _, err := packedText(t, string(raw), input.Options{Format: input.Arrow}, pack.Options{}); err == nil {
		t.Error("it is taken")
	}
}

func fuzzReader(f *testing.F, format input.Format, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		src, err := input.Open(context.Background(), input.Options{Format: format}, path)
		if err != nil {
			return
		}
		for part := range src.Len() {
			err := src.Read(context.Background(), part, func(c *rows.Chunk) error {
				if !c.Dense() && len(c.Offsets) != c.Rows()+1 || c.Dense() && len(c.Values) != c.Rows()*c.Width {
					t.Fatalf("%d rows, %d offsets, %d values", c.Rows(), len(c.Offsets), len(c.Values))
				}
				return nil
			})
			if err != nil {
				return
			}
		}
	})
}

func FuzzLIBSVM(f *testing.F) {
	fuzzReader(f, input.LIBSVM, "1 1:1 2:2\n", "0 qid:1 3:1e5 # x\n", "a 1:1\nb 2:2")
}

func FuzzPointsOfCSV(f *testing.F) {
	fuzzReader(f, input.CSV, "1,2\n3,4\n", "#a;b\n1;2\n", "\"x\",\"y\"\n\"1\",\"2\"\n")
}

func FuzzArrow(f *testing.F) {
	fuzzReader(f, input.Arrow, "ARROW1\x00\x00", "\xff\xff\xff\xff\xff\xff\xff\x7f")
}

func FuzzParquet(f *testing.F) { fuzzReader(f, input.Parquet, "PAR1\x00\x00\x00\x00PAR1") }
