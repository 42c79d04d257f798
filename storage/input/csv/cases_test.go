package csv

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/seeds"
)

// csvCase is a small table, and what is to be read from it. Agrees names the readers
// that read the same; Why says for which rule of ours others do not.
type csvCase struct {
	Name      string      `json:"name"`
	Input     string      `json:"input"`
	Input64   string      `json:"input64"` // where the input is no UTF-8
	Options   csvOptions  `json:"options"`
	Refused   string      `json:"refused"` // kind of the error with which it is not opened
	Names     []string    `json:"names"`
	Records   [][]*string `json:"records"`
	Records64 [][]*string `json:"records64"`
	Lines     []int64     `json:"lines"` // on which the records begin
	Malformed []csvBad    `json:"malformed"`
	Agrees    []string    `json:"agrees"`
	Why       string      `json:"why"`
}

func csvCases(t *testing.T) (cases []csvCase) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func (c csvCase) raw() []byte {
	if c.Input64 != "" {
		return decoded64(c.Input64)
	}
	return []byte(c.Input)
}

func decoded64(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// want are the records of a case.
func (c csvCase) want() (out []csvRecord) {
	for i, r := range slices.Concat(c.Records, c.Records64) {
		w := csvRecord{line: c.Lines[i]}
		for _, f := range r {
			switch {
			case f == nil:
				w.fields = append(w.fields, csvField{null: true})
			case c.Input64 != "":
				w.fields = append(w.fields, csvField{text: string(decoded64(*f))})
			default:
				w.fields = append(w.fields, csvField{text: *f})
			}
		}
		out = append(out, w)
	}
	return out
}

// TestCSVCasesAreLawful reports whether the cases are what the law says, where
// nothing of it has to be guessed.
func TestCSVCasesAreLawful(t *testing.T) {
	for _, c := range csvCases(t) {
		if c.Options.Header == nil || c.Refused != "" || strings.HasPrefix(c.Name, "a separator is found") {
			continue
		}
		names, good, bad := newLaw(c.raw(), c.Options).read(*c.Options.Header)
		if !slices.Equal(names, c.Names) || !slices.Equal(bad, c.Malformed) {
			t.Errorf("%s: names %q, malformed %v; want %q, %v", c.Name, names, bad, c.Names, c.Malformed)
		}
		if diff := unlike(good, c.want()); diff != "" {
			t.Errorf("%s: %s", c.Name, diff)
		}
	}
}

// TestCSVCases reports whether tables are read as the law has it, as a whole.
func TestCSVCases(t *testing.T) {
	for _, c := range csvCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			path := tableFile(t, c.raw())
			if c.Refused != "" {
				checkRefused(t, readCSV(path, c.Options), c.Refused)
				return
			}
			c.check(t, path, "whole")
		})
	}
}

// TestCSVCasesInParts reports whether the parts of a table together are the table,
// wherever they are cut: at each byte in a soak, and else at one in three of them, and into parts of many sizes.
func TestCSVCasesInParts(t *testing.T) {
	for _, c := range csvCases(t) {
		if c.Refused != "" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			raw, step := c.raw(), 3
			if seeds.Soaking() {
				step = 1
			}
			path := tableFile(t, raw)
			for at := 1; at < len(raw) && !t.Failed(); at += step {
				c.check(t, path, fmt.Sprintf("cut at byte %d", at), int64(at))
				if at <= 8 || at%5 == 0 {
					c.check(t, path, fmt.Sprintf("cut into parts of %d bytes", at), every(at, len(raw))...)
				}
			}
		})
	}
}

// every are the offsets at which parts of a size end.
func every(size, of int) (ends []int64) {
	for end := size; end < of; end += size {
		ends = append(ends, int64(end))
	}
	return ends
}

// check reads a case, failing at the first malformed record and then without them.
func (c csvCase) check(t *testing.T, path, how string, ends ...int64) {
	t.Helper()
	o := c.Options
	if len(c.Malformed) > 0 {
		if got := readCSV(path, o, ends...); got.refused != nil {
			t.Errorf("%s: refused: %v", how, got.refused)
		} else {
			checkMalformed(t, how, path, c.Names, got.err, c.Malformed[0])
		}
		o.Malformed = "drop"
	}
	got := readCSV(path, o, ends...)
	if got.refused != nil || got.err != nil {
		t.Errorf("%s: %v %v", how, got.refused, got.err)
		return
	}
	if !slices.Equal(got.names, c.Names) || got.malformed != int64(len(c.Malformed)) {
		t.Errorf("%s: names %q, %d malformed; want %q, %d", how, got.names, got.malformed, c.Names, len(c.Malformed))
	}
	if diff := unlike(got.records, c.want()); diff != "" {
		t.Errorf("%s: %s", how, diff)
	}
}

// checkMalformed reports whether an error is of a malformed record: bad input, by file
// and line, and by field where one is wrong.
func checkMalformed(t *testing.T, how, path string, names []string, err error, bad csvBad) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: the malformed record of line %d is read", how, bad.Line)
		return
	}
	if kind := fault.KindOf(err); kind != fault.BadInput || !strings.Contains(err.Error(), filepath.Base(path)) {
		t.Errorf("%s: an error of kind %v, want bad input by its file: %v", how, kind, err)
	}
	if m := lineNumber.FindStringSubmatch(err.Error()); m == nil || m[1] != strconv.FormatInt(bad.Line, 10) {
		t.Errorf("%s: want line %d: %v", how, bad.Line, err)
	}
	if !namesField(err, names, bad.Field) {
		t.Errorf("%s: want field %d: %v", how, bad.Field, err)
	}
}

// namesField reports whether an error has a field's number, from 1, or its name.
func namesField(err error, names []string, field int) bool {
	number := regexp.MustCompile(fmt.Sprintf(`field %d\b`, field))
	return field == 0 || number.MatchString(err.Error()) ||
		field <= len(names) && strings.Contains(err.Error(), strconv.Quote(names[field-1]))
}

var lineNumber = regexp.MustCompile(`line (\d+)\b`)

func checkRefused(t *testing.T, got csvRead, kind string) {
	t.Helper()
	want := map[string]fault.Kind{"input": fault.BadInput, "usage": fault.Usage}[kind]
	if got.refused == nil || fault.KindOf(got.refused) != want {
		t.Errorf("want it refused as %v: %v; %d records are read, %v", want, got.refused, len(got.records), got.err)
	}
}

// unlike says how records differ; nothing where they do not.
func unlike(got, want []csvRecord) string {
	for i := range min(len(got), len(want)) {
		if !slices.Equal(got[i].fields, want[i].fields) {
			return fmt.Sprintf("record %d is %v, want %v", i, got[i].fields, want[i].fields)
		}
		if got[i].line != want[i].line {
			return fmt.Sprintf("record %d is said to be in line %d, want %d", i, got[i].line, want[i].line)
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d records, want %d", len(got), len(want))
	}
	return ""
}
