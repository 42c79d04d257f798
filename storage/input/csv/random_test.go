package csv

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/storage/input/rows"
)

// textPieces are what fields of generated tables are made of.
var textPieces = []string{"a", "Z", "0", "17.5", " ", "  ", "\t", "\"", "\"\"", "'", "\\", "\\\"", ",", ";", "|", "\n",
	"\r\n", "\r", "\n\n",
	"#", "# x\n", "NA", "\\N", "é", "日本", "🎉", "\xff", "\x00", "\",\"", "\"\n\"", "1,2\n3,4\n", "\ufeff"}

// randomText is a field, once in a while a long one.
func randomText(rng *rand.Rand) string {
	var b strings.Builder
	pieces := rng.IntN(7)
	if rng.IntN(400) == 0 {
		pieces = 5000 + rng.IntN(20000)
	}
	for range pieces {
		b.WriteString(textPieces[rng.IntN(len(textPieces))])
	}
	return b.String()
}

// tableWriter writes tables in a dialect, in all the ways that it has.
type tableWriter struct {
	o    csvOptions
	rng  *rand.Rand
	out  bytes.Buffer
	end  string // of lines
	fill bool   // blank lines and comments stand between records
}

// dialects are the options of tables that are written and read back.
var dialects = []csvOptions{
	{Separator: ","},
	{Separator: ";", Quote: "'"},
	{Separator: ",", Escape: "\\"},
	{Separator: "\t", Escape: "\\", Null: "\\N"},
	{Separator: "|", Quote: "'", Escape: "^", Comment: "#", Null: "NA"},
	{Separator: ",", Comment: "#", Null: "NA"},
	{Separator: "\t", NoQuotes: true, Null: "NA"},
	{Separator: "\x1f"},
}

// table makes records of a dialect, each of a number of fields.
func (w *tableWriter) table(records, fields int) (rows [][]csvField) {
	for range records {
		row := make([]csvField, fields)
		for k := range row {
			row[k] = w.field(fields == 1)
		}
		rows = append(rows, row)
	}
	return rows
}

// field makes a field that the dialect can say.
func (w *tableWriter) field(alone bool) csvField {
	if w.rng.IntN(8) == 0 && (!alone || w.o.Null != "") {
		return csvField{null: true}
	}
	text := randomText(w.rng)
	if w.end == "\r" {
		text = strings.ReplaceAll(text, "\n", "\r")
	}
	if w.o.NoQuotes {
		text = "x" + strings.NewReplacer("\n", "", "\r", "", w.o.Separator, "").Replace(text) + "x"
	}
	return csvField{text: text}
}

func (w *tableWriter) write(rows [][]csvField) []byte {
	for i, row := range rows {
		for k, f := range row {
			if k > 0 {
				w.out.WriteString(w.o.Separator)
			}
			w.put(f, len(row) == 1)
		}
		if i < len(rows)-1 || w.rng.IntN(2) == 0 {
			w.out.WriteString(w.end)
			w.between()
		}
	}
	return w.out.Bytes()
}

// between writes what is no record.
func (w *tableWriter) between() {
	for w.fill && w.rng.IntN(3) == 0 {
		switch w.rng.IntN(3) {
		case 0:
			w.out.WriteString("  ")
		case 1:
			if w.o.Comment != "" {
				w.out.WriteString(w.o.Comment + " it's \"one")
			}
		}
		w.out.WriteString(w.end)
	}
}

// put writes a field, in quotes where it must be and sometimes where it need not.
func (w *tableWriter) put(f csvField, alone bool) {
	switch {
	case f.null && (alone || w.o.Null != "" && w.rng.IntN(2) == 0):
		w.out.WriteString(w.o.Null)
	case f.null:
	case w.o.NoQuotes || !w.mustQuote(f.text) && w.rng.IntN(3) > 0:
		w.out.WriteString(f.text)
	default:
		w.blanks()
		w.quoted(f.text)
		w.blanks()
	}
}

func (w *tableWriter) mustQuote(text string) bool {
	return text == "" || text == w.o.Null ||
		strings.ContainsAny(text, "\r\n \t\ufeff"+w.o.Separator+w.quote()+w.o.Comment)
}

func (w *tableWriter) blanks() {
	for w.rng.IntN(6) == 0 {
		w.out.WriteByte(' ')
	}
}

func (w *tableWriter) quote() string {
	if w.o.Quote == "" {
		return "\""
	}
	return w.o.Quote
}

// quoted writes a field in quotes; with an escape set it may still double a quote.
func (w *tableWriter) quoted(text string) {
	q, e := w.quote(), w.o.Escape
	w.out.WriteString(q)
	for i := range len(text) {
		switch c := text[i : i+1]; {
		case c == q && (e == "" || w.rng.IntN(2) == 0):
			w.out.WriteString(q)
		case e != "" && (c == q || c == e):
			w.out.WriteString(e)
		}
		w.out.WriteByte(text[i])
	}
	w.out.WriteString(q)
}

// TestTablesComeBack reports whether tables of any text that are written in any
// dialect are read back as they were, in any parts.
func TestTablesComeBack(t *testing.T) {
	for i, o := range dialects {
		for k, end := range []string{"\n", "\r\n", "\r"} {
			t.Run(fmt.Sprintf("%s%s%s %q", o.Separator, o.Quote, o.Escape, end), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(i), uint64(k)))
				for n := 0; n < few(30) && !t.Failed(); n++ {
					w := &tableWriter{o: o, rng: rng, end: end, fill: n%2 == 0}
					rows := w.table(1+rng.IntN(40), 1+n%5)
					comesBack(t, rng, w.write(rows), o, rows)
				}
			})
		}
	}
}

// TestTablesOfTheStandardLibraryComeBack as encoding/csv has written them. It has no nulls.
func TestTablesOfTheStandardLibraryComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := 0; n < few(100) && !t.Failed(); n++ {
		var out bytes.Buffer
		o := csvOptions{Separator: ",;\t|"[n%4 : n%4+1]}
		w := csv.NewWriter(&out)
		w.Comma = rune(o.Separator[0])
		rows := make([][]csvField, 1+rng.IntN(50))
		for i := range rows {
			var record []string
			for range 1 + n%6 {
				record = append(record, "x"+randomText(rng))
				rows[i] = append(rows[i], csvField{text: record[len(record)-1]})
			}
			w.Write(record)
		}
		w.Flush()
		comesBack(t, rng, out.Bytes(), o, rows)
	}
}

// comesBack reads a table as a whole and in random parts.
func comesBack(t *testing.T, rng *rand.Rand, raw []byte, o csvOptions, rows [][]csvField) {
	t.Helper()
	none := false
	o.Header = &none
	_, want, bad := newLaw(raw, o).read(false)
	if same := slices.EqualFunc(want, rows,
		func(r csvRecord, row []csvField) bool { return slices.Equal(r.fields, row) }); !same || len(bad) > 0 {
		t.Fatalf("the law reads %v and %v, want %v of %q", want, bad, rows, raw[:min(len(raw), 2000)])
	}
	path := tableFile(t, raw)
	for cuts := range 6 {
		ends := randomEnds(rng, cuts, len(raw))
		got := readCSV(path, o, ends...)
		if got.refused != nil || got.err != nil {
			t.Errorf("parts to %v: %v %v", ends, got.refused, got.err)
		} else if diff := unlike(got.records, want); diff != "" {
			t.Errorf("parts to %v: %.500s in %.2000q", ends, diff, raw)
		}
		if t.Failed() {
			return
		}
	}
}

// randomEnds are ends of parts: none, a few, or those of many small parts.
func randomEnds(rng *rand.Rand, cuts, size int) (ends []int64) {
	if cuts == 5 {
		return every(max(1+rng.IntN(40), size/200), size)
	}
	for range cuts {
		ends = append(ends, int64(rng.IntN(size+1)))
	}
	slices.Sort(ends)
	return ends
}

// TestALongTableComesBack reports whether records that are longer than what is read at
// a time, and a quoted field that fills several parts, come back.
func TestALongTableComesBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	w := &tableWriter{o: csvOptions{Separator: ","}, rng: rng, end: "\n"}
	rows := w.table(20_000, 3)
	for i := 500; i < len(rows); i += 5000 {
		rows[i][1] = csvField{text: strings.Repeat("1,2\n\"3\",\"4\n\"\n", 100_000+i)}
	}
	comesBack(t, rng, w.write(rows), w.o, rows)
}

// TestPointsOfQuotedTables reports whether numbers in quotes, under names with newlines,
// are the same points wherever the file is cut.
func TestPointsOfQuotedTables(t *testing.T) {
	var text strings.Builder
	text.WriteString("\ufeff\"label\",\"x\n, y\", \"z\" \r\n")
	var want []float64
	for i := range 40 {
		fmt.Fprintf(&text, "%d,\"%d.5\", \"-%d\" \r\n", i%2, i, i)
		if want = append(want, float64(i)+0.5, -float64(i)); i%7 == 0 {
			text.WriteString(" \r\n")
		}
	}
	path := tableFile(t, []byte(text.String()))
	for size := 1; size < text.Len(); size++ {
		table, err := openCSV(path, Options{})
		if err == nil {
			err = table.cutAt(every(size, text.Len()))
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		for _, rng := range table.parts {
			err := table.Read(context.Background(), rng, nil, func(c *rows.Chunk) error {
				got = append(got, c.Values...)
				return nil
			})
			if err != nil {
				t.Fatalf("parts of %d bytes: %v", size, err)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("parts of %d bytes: %v, want %v", size, got, want)
		}
	}
}
