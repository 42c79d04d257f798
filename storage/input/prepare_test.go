package input

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/rows"
)

const rawTable = `age,city,note,label
30,Paris,"Good price, fast",1
40,Rome,slow slow,0
,Paris,fast,1
50,Oslo,,0
`

func writeTable(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// prepared reads a table as dense rows.
func preparedRows(t *testing.T, o Options, path string) (*Source, [][]float64) {
	t.Helper()
	s, err := Open(context.Background(), o, path)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]float64
	err = s.Read(context.Background(), 0, func(c *rows.Chunk) error {
		for r := range c.Rows() {
			row := make([]float64, s.Width())
			if c.Dense() {
				copy(row, c.Values[r*c.Width:(r+1)*c.Width])
			} else {
				for k := c.Offsets[r]; k < c.Offsets[r+1]; k++ {
					row[c.Indices[k]] += c.Values[k]
				}
			}
			out = append(out, row)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, out
}

// TestColumnsArePrepared as they were asked for, and again, of a table with its columns
// elsewhere and without a label, as a model has it.
func TestColumnsArePrepared(t *testing.T) {
	path := writeTable(t, "raw.csv", rawTable)
	o := Options{Prepare: Prepare{OneHot: []string{"city"}, Text: []string{"note"}, Buckets: 1 << 20,
		Missing: MissingMean, Scale: ScaleStandard}}
	s, rows := preparedRows(t, o, path)
	if s.Width() != 1+3+1<<20 || len(rows) != 4 {
		t.Fatalf("%d features, %d rows", s.Width(), len(rows))
	}
	deviation := math.Sqrt((100.0 + 0 + 100) / 3)
	for i, want := range [][]float64{{-10 / deviation, 0, 1, 0}, {0, 0, 0, 1}, {0, 0, 1, 0},
		{10 / deviation, 1, 0, 0}} {
		for j, v := range want {
			if math.Abs(rows[i][j]-v) > 1e-12 {
				t.Errorf("row %d, feature %d is %v, want %v", i, j, rows[i][j], v)
			}
		}
	}
	tfidf := map[string][]float64{"good": {math.Log(5.0 / 2)}, "price": {math.Log(5.0 / 2)},
		"fast": {math.Log(5.0 / 3), 0, math.Log(5.0 / 3)}, "slow": {0, 2 * math.Log(5.0/2)}}
	for word, values := range tfidf {
		at := 4 + bucketOf([]byte(word), 1<<20)
		for i, v := range values {
			if math.Abs(rows[i][at]-v) > 1e-12 {
				t.Errorf("row %d, %q is %v, want %v", i, word, rows[i][at], v)
			}
		}
	}
	swapped := writeTable(t, "swapped.csv",
		"note,city,more,age\n\"Good price, fast\",Paris,7,30\nslow "+
			"slow,Rome,7,40\nfast,Paris,7,\n,Oslo,7,50\n,Bern,7,50\n")
	_, again := preparedRows(t, Options{NoLabel: true, Fitted: s.Prepared}, swapped)
	if !reflect.DeepEqual(again[:4], rows) {
		t.Error("a table with its columns elsewhere has other rows")
	}
	if again[4][1]+again[4][2]+again[4][3] != 0 {
		t.Error("a city that the data did not have is one that it had")
	}
}

func TestMissingNumbersAndScales(t *testing.T) {
	path := writeTable(t, "raw.csv", rawTable)
	only := func(m Missing, s Scale) []float64 {
		_, rows := preparedRows(t, Options{Prepare: Prepare{OneHot: []string{"city", "2"}, Missing: m, Scale: s}}, path)
		var out []float64
		for _, r := range rows {
			out = append(out, r[0])
		}
		return out
	}
	for _, c := range []struct {
		m    Missing
		s    Scale
		want []float64
	}{{MissingZero, "", []float64{30, 40, 0, 50}}, {MissingMean, "", []float64{30, 40, 40, 50}},
		{MissingDrop, "", []float64{30, 40, 50}},
		{MissingDrop, ScaleMinMax, []float64{0, 0.5, 1}}, {MissingMean, ScaleMaxAbs, []float64{0.6, 0.8, 0.8, 1}}} {
		for i, v := range only(c.m, c.s) {
			if math.Abs(v-c.want[i]) > 1e-12 {
				t.Errorf("%s %s: %v, want %v", c.m, c.s, only(c.m, c.s), c.want)
			}
		}
	}
	dropping, _ := preparedRows(t, Options{Prepare: Prepare{OneHot: []string{"city", "2"}, Missing: MissingDrop}}, path)
	if _, rows := preparedRows(t, Options{Fitted: dropping.Prepared}, path); len(rows) != 4 || rows[2][0] != 40 {
		t.Errorf("rows to be predicted are %v", rows)
	}
}

func TestWhatCannotBePrepared(t *testing.T) {
	path := writeTable(t, "raw.csv", rawTable)
	for says, p := range map[string]Prepare{
		`no column "town"`: {OneHot: []string{"town"}},
		"something else":   {OneHot: []string{"city"}, Hash: []string{"city"}, Text: []string{"note"}},
		`line 2: field "note" is "Good price, fast", not a number`: {OneHot: []string{"city"}},
		`line 4: field "age" is empty`:                             {OneHot: []string{"city", "note"}},
	} {
		_, err := Open(context.Background(), Options{Prepare: p}, path)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", p, err, says)
		}
	}
	svm := writeTable(t, "rows.libsvm", "1 1:2\n")
	if _, err := Open(context.Background(), Options{Prepare: Prepare{Scale: ScaleMaxAbs}}, svm); err == nil ||
		!strings.Contains(err.Error(), "CSV") {
		t.Error(err)
	}
}

// TestAnInterruptEndsTheFittingOfAPreparation: the pass over the data that planning makes.
func TestAnInterruptEndsTheFittingOfAPreparation(t *testing.T) {
	path := writeTable(t, "raw.csv", rawTable)
	ctx, interrupt := context.WithCancel(context.Background())
	interrupt()
	o := Options{Prepare: Prepare{OneHot: []string{"city"}, Text: []string{"note"}}}
	if _, err := Open(ctx, o, path); fault.KindOf(err) != fault.Cancelled {
		t.Errorf("%v, want that it was cancelled", err)
	}
}
