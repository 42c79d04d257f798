package rdd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/rdd"
)

// tableRow is a row with a field of each kind.
type tableRow struct {
	Name string    `col:"name"`
	Tiny int8      `col:"tiny"`
	Low  float32   `col:"low"`
	At   time.Time `col:"at"`
	Opt  *float64  `col:"opt"`
	Yes  bool      `col:"yes"`
}

const tableHead, tableLine = "name,tiny,low,at,opt,yes\n", "a,1,2.5,2024-02-29T23:59:59.123456789Z,,true\n"

// readRows reads a table of rows.
func readRows(t *testing.T, in rdd.CSVOptions, table string) ([]tableRow, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	return readingFails(t, func(g *rdd.Graph) rdd.Dataset[tableRow] { return rdd.CSV[tableRow](g, in, path) })
}

// TestMalformedRowsAreNamed by file, line and column: no field is dropped, padded,
// wrapped around or infinite.
func TestMalformedRowsAreNamed(t *testing.T) {
	for _, c := range []struct{ name, line, column string }{
		{"a field too many", "a,1,2,2024-01-01,,true,7\n", ""},
		{"an empty field too many", "a,1,2,2024-01-01,,true,\n", ""},
		{"a field too few", "a,1,2,2024-01-01,\n", ""},
		{"text after a quote", "\"a\"b,1,2,2024-01-01,,true\n", "name"},
		{"an open quote", "\"a,1,2,2024-01-01,,true\n", "name"},
		{"beyond int8", "a,128,2,2024-01-01,,true\n", "tiny"},
		{"below int8", "a,-129,2,2024-01-01,,true\n", "tiny"},
		{"a fraction", "a,1.5,2,2024-01-01,,true\n", "tiny"},
		{"beyond float32", "a,1,1e300,2024-01-01,,true\n", "low"},
		{"beyond float64", "a,1,2,2024-01-01,1e400,true\n", "opt"},
		{"no number", "a,1,x,2024-01-01,,true\n", "low"},
		{"no time", "a,1,2,yesterday,,true\n", "at"},
		{"a day that is none", "a,1,2,2023-02-29,,true\n", "at"},
		{"a null in a number", "a,,2,2024-01-01,,true\n", "tiny"},
		{"a null in a time", "a,1,2,,,true\n", "at"},
		{"an empty quoted number", "a,1,\"\",2024-01-01,,true\n", "low"},
		{"no truth", "a,1,2,2024-01-01,,maybe\n", "yes"},
	} {
		rows, err := readRows(t, rdd.CSVOptions{}, tableHead+tableLine+"\n"+c.line+tableLine)
		if err == nil || !strings.Contains(err.Error(), "rows.csv line 4") || c.column != "" &&
			!strings.Contains(err.Error(), c.column) {
			t.Errorf("%s: %+v, %v", c.name, rows, err)
		}
	}
}

// TestRowsOfText reports whether rows are what a table has, whatever stands about them.
func TestRowsOfText(t *testing.T) {
	at := time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC)
	want := fmt.Sprintf("%+v", []tableRow{{"a", 1, 2.5, at, nil, true}})
	for name, table := range map[string]string{
		"plain":                tableHead + tableLine,
		"a byte-order mark":    "\xef\xbb\xbf" + tableHead + tableLine,
		"blank lines first":    "\n\r\n" + tableHead + "\n" + tableLine,
		"carriage returns":     strings.ReplaceAll(tableHead+tableLine, "\n", "\r"),
		"carriage and newline": strings.ReplaceAll(tableHead+tableLine, "\n", "\r\n"),
		"blanks about numbers": tableHead + "a, 1 ,\t2.5, 2024-02-29T23:59:59.123456789Z ,, true\n",
		"blanks about quotes":  tableHead + " \"a\" , \"1\" ,\"2.5\" ,\"2024-02-29T23:59:59.123456789Z\",,\"true\"\n",
		"a quoted header":      "\"name\",\"tiny\", \"low\" ,\"at\",\"opt\",\"yes\"\n" + tableLine,
		"columns of others": "other,yes,opt,at,low,tiny,name\n" +
			"\"x\ny\",true,,2024-02-29T23:59:59.123456789Z,2.5,1,a\n",
	} {
		rows, err := readRows(t, rdd.CSVOptions{}, table)
		if got := fmt.Sprintf("%+v", rows); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
}

// TestAHeaderOfOtherNamesIsRefused by its names rather than taken as data, whose first
// row would then be malformed.
func TestAHeaderOfOtherNamesIsRefused(t *testing.T) {
	rows, err := readRows(t, rdd.CSVOptions{}, "who,small,depth,time,maybe,sure\n"+tableLine)
	if err == nil || !strings.Contains(err.Error(), "who") || !strings.Contains(err.Error(), "Header") {
		t.Errorf("%+v, %v", rows, err)
	}
	if rows, err := readRows(t, rdd.CSVOptions{}, tableLine+tableLine); err != nil || len(rows) != 2 {
		t.Errorf("without a header: %+v, %v", rows, err)
	}
}
