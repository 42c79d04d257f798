package input_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

// readRows returns the rows that a reader makes of a file, a line each: label, and column:value of what is not zero.
func readRows(t *testing.T, text string, o input.Options) (string, error) {
	t.Helper()
	src, err := input.Open(context.Background(), o, textFile(t, text))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for part := range src.Len() {
		err := src.Read(context.Background(), part, func(c *rows.Chunk) error {
			for r := range c.Rows() {
				if c.Texts != nil {
					fmt.Fprintf(&b, "%q", c.Texts[int(c.Labels[r])])
				} else {
					fmt.Fprint(&b, c.Labels[r])
				}
				if c.Dense() {
					for j, v := range c.Values[r*c.Width : (r+1)*c.Width] {
						fmt.Fprintf(&b, " %d:%v", j, v)
					}
				} else {
					for k := c.Offsets[r]; k < c.Offsets[r+1]; k++ {
						fmt.Fprintf(&b, " %d:%v", c.Indices[k], c.Values[k])
					}
				}
				b.WriteString("\n")
			}
			return nil
		})
		if err != nil {
			return b.String(), err
		}
	}
	return b.String(), nil
}

// edge is a small file and what is read from it, or a part of the error.
type edge struct{ name, text, want, wrong string }

func checkEdges(t *testing.T, o input.Options, edges []edge) {
	t.Helper()
	for _, e := range edges {
		got, err := readRows(t, e.text, o)
		switch {
		case e.wrong != "" && (err == nil || !strings.Contains(err.Error(), e.wrong)):
			t.Errorf("%s: %q, %v, want an error with %q", e.name, got, err, e.wrong)
		case e.wrong == "" && (err != nil || got != e.want):
			t.Errorf("%s: %q, %v, want %q", e.name, got, err, e.want)
		}
	}
}

func TestEdgesOfLIBSVM(t *testing.T) {
	checkEdges(t, input.Options{Format: input.LIBSVM}, []edge{
		{"no bytes", "", "", "the file is empty"},
		{"blank lines alone", "\n \n\r\n", "", ""},
		{"comments alone", "# a\n#b", "", ""},
		{"a label alone", "1\n-2\n", "1\n-2\n", ""},
		{"no newline at the end", "1 1:1\n0 2:2", "1 1:1\n0 2:2\n", ""},
		{"CRLF", "1 1:1\r\n0 2:2\r\n", "1 1:1\n0 2:2\n", ""},
		{"CRLF, comments and blank lines", "1 1:1 # x\r\n\r\n# y\r\n0 2:2", "1 1:1\n0 2:2\n", ""},
		{"a byte order mark", "\ufeff1 1:1\n0 2:2\n", "1 1:1\n0 2:2\n", ""},
		{"a byte order mark before a text label", "\ufeffspam 1:1\nspam 2:2\n", "\"spam\" 1:1\n\"spam\" 2:2\n", ""},
		{"a byte order mark within", "1 1:1\n\ufeff0 2:2\n", "", `line 2: the label "\ufeff0" is not a number`},
		{"CR alone ends no line", "1 1:1\r0 2:2\r", "", `line 1: "0" is not an index:value pair`},
		{"blanks about fields", " \t1\t1:1  2:2 \n", "1 1:1 2:2\n", ""},
		{"signs and points", "+1 1:+2\n-1 2:-.5\n", "1 1:2\n-1 2:-0.5\n", ""},
		{"labels that are text", "spam 1:1\nham\n", "\"spam\" 1:1\n\"ham\"\n", ""},
		{"a number among text labels", "spam 1:1\n1 1:1\n", "", `line 2: the label "1" is a number, those before it are text`},
		{"NUL in a value", "1 1:1\x00\n", "", `line 1: the value of "1:1\x00" is not a number`},
		{"NUL as a field", "1 1:1 \x00\n", "", `line 1: "\x00" is not an index:value pair`},
		{"an index twice", "1 1:1 1:2\n", "", "line 1: index 1 comes after index 1"},
		{"an index below zero", "1 -1:1\n", "", `"-1:1" is not an index:value pair`},
		{"no value", "1 1:\n", "", `the value of "1:" is not a number`},
		{"a blank before the colon", "1 1 :1\n", "", `"1" is not an index:value pair`},
		{"a comment without a blank", "1 1:1# c\n", "", `the value of "1:1#" is not a number`},
		{"beyond a double", "1 1:1e400\n", "", `the value of "1:1e400" is not finite`},
		{"the line of an error after blank lines", "1 1:1\n\n# x\n0 2\n", "", "line 4:"},
		{"a line longer than a block", "1 1:1 #" + strings.Repeat("x", 3<<20) + "\n0 2:2\n", "1 1:1\n0 2:2\n", ""},
	})
}

func TestEdgesOfTables(t *testing.T) {
	yes := true
	checkEdges(t, input.Options{Header: &yes}, []edge{
		{"a header alone", "label,a\n", "", ""},
		{"a header alone, no newline", "label,a", "", ""},
	})
	checkEdges(t, input.Options{Format: input.CSV}, []edge{
		{"no bytes", "", "", "the file is empty"},
		{"a newline alone", "\n", "", "the file is empty"},
		{"a byte order mark alone", "\ufeff", "", "the file is empty"},
		{"names or texts in one line", "label,a\n", "", `line 1: field 1 is "a", not a number`},
		{"a byte order mark", "\ufefflabel,a\n1,2\n", "1 0:2\n", ""},
		{"a byte order mark, no header", "\ufeff1,2\n0,3\n", "1 0:2\n0 0:3\n", ""},
		{"CRLF, none at the end", "label,a\r\n1,2\r\n0,3", "1 0:2\n0 0:3\n", ""},
		{"CRLF and LF", "label,a\r\n1,2\n0,3\r\n", "1 0:2\n0 0:3\n", ""},
		{"CR alone", "label,a\r1,2\r0,3\r", "1 0:2\n0 0:3\n", ""},
		{"the line of an error after newlines in quotes", "label,\"a\nb\"\n1,2\n0,\"3\n\"\nx,1\n", "", "line 4: field"},
		{"NUL in a number", "label,a\n1,2\x00\n", "", `line 2: field "a" is "2\x00", not a number`},
		{"too few fields", "label,a,b\n1,2,3\n1,2\n", "", "line 3: the row has 2 fields, the first row 3"},
		{"too many fields", "label,a,b\n1,2,3\n1,2,3,4\n", "", "line 3: the row has more than the 3 fields"},
		{"a separator at the end of each line", "label,a,\n1,2,\n0,3,\n", "1 0:2\n0 0:3\n", ""},
		{"a separator at the end of one line", "label,a\n1,2,\n0,3\n", "",
			"line 2: the row has more than the 2 fields"},
		{"empty fields", "label,a,b\n1,,\n", "", `line 2: field "a" is empty`},
		{"a field as long as a block", "label,a\n1,2\n0," + strings.Repeat("9", 1<<20) + "\n", "", `line 3: field "a" is "999`},
		{"not decimal", "label,a\n1,0x10\n", "", `line 2: field "a" is "0x10", not a number`},
		{"digits in groups", "label,a\n1,1_000\n", "", `line 2: field "a" is "1_000", not a number`},
		{"beyond a double", "label,a\n1,1e999\n", "", `line 2: field "a" is "1e999", not finite`},
		{"blanks about numbers", "label,a\n 1 , 2 \n", "1 0:2\n", ""},
		{"a quote that is not closed", "label,a\n1,\"2\n0,3\n", "", `line 2: field "a": a quote is not closed`},
		{"text after a quote", "label,a\n1,\"2\"x\n0,3\n", "", `line 2: field "a": text follows a closing quote`},
		{"two columns of a name", "label,a,a\n1,2,3\n", "1 0:2 1:3\n", ""},
	})
}

// TestEdgesOfLines as TextFile reads them.
func TestEdgesOfLines(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"no bytes", "", nil},
		{"a newline alone", "\n", []string{""}},
		{"no newline at the end", "a\nb", []string{"a", "b"}},
		{"CRLF", "a\r\nb\r\n", []string{"a", "b"}},
		{"blank lines", "\n\na\n\n", []string{"", "", "a", ""}},
		{"NUL", "a\x00b\n\x00\n", []string{"a\x00b", "\x00"}},
		{"no UTF-8", "\xff\xfe\n", []string{"\xff\xfe"}},
		{"longer than a block", long + "\nb\n", []string{long, "b"}},
	} {
		src, err := input.Open(context.Background(), input.Options{Format: input.Text}, textFile(t, c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for part := range src.Len() {
			if err := src.Lines(context.Background(), part, func(line []byte) error {
				got = append(got, string(line))
				return nil
			}); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %.100q, want %.100q", c.name, got, c.want)
		}
	}
}

// TestEdgesOfColumns: files that are cut short, or something else, are errors that name the file.
func TestEdgesOfColumns(t *testing.T) {
	for _, c := range []struct {
		name, text string
		format     input.Format
	}{
		{"no bytes of Parquet", "", input.Parquet},
		{"magic alone", "PAR1", input.Parquet},
		{"magic twice", "PAR1PAR1", input.Parquet},
		{"a footer of no bytes", "PAR1\x00\x00\x00\x00PAR1", input.Parquet},
		{"a footer longer than the file", "PAR1\xff\xff\xff\x7fPAR1", input.Parquet},
		{"text for Parquet", "label,a\n1,2\n", input.Parquet},
		{"no bytes of Arrow", "", input.Arrow},
		{"magic of Arrow alone", "ARROW1\x00\x00", input.Arrow},
		{"text for Arrow", "label,a\n1,2\n", input.Arrow},
	} {
		got, err := readRows(t, c.text, input.Options{Format: c.format})
		if err == nil || !strings.Contains(err.Error(), "input") || fault.KindOf(err) != fault.BadInput {
			t.Errorf("%s: %q, %v (%v)", c.name, got, err, fault.KindOf(err))
		}
	}
}
