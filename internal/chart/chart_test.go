package chart

import (
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pictures are one of each kind, with what is hard to draw: no number, one number, names that are markup, and a great
// many.
func pictures() map[string]Picture {
	name := `<script>alert("1")</script> & 'b'`
	long := Line{Name: name}
	wide := &Strip{Down: "split", Across: "step", Rows: 5000}
	stack := &Stack{Across: "step", Up: "seconds", Parts: []string{"send", name}}
	for k := range 10_000 {
		long.X, long.Y = append(long.X, float64(k)), append(long.Y, math.Sin(float64(k)))
		long.Open = append(long.Open, k%2 == 0)
		stack.Steps = append(stack.Steps, []float64{1, float64(k % 7)})
		if k%50 == 0 {
			col := Column{Name: strconv.Itoa(k), Mark: k%100 == 0, Shares: slices.Repeat([]float64{1}, 5000)}
			col.Shares[4321] = float64(k%3) / 2
			wide.Columns = append(wide.Columns, col)
		}
	}
	few := Line{Name: "few", X: []float64{1, 2, 3}, Y: []float64{1, math.NaN(), 0}, Open: []bool{true, false, true},
		Err: []float64{0.5, 1, math.Inf(1)}}
	return map[string]Picture{"lines": &Lines{Across: "s", Up: name, Lines: []Line{long, few}},
		"logarithmic": &Lines{Across: "s", Up: "y", Logarithmic: true,
			Lines: []Line{few, {Name: "one", X: []float64{2}, Y: []float64{1e-9}}}},
		"bars": &Bars{Of: "seconds", Unit: "s", None: "–", Names: []string{name, "b", "c"},
			Bars: []float64{1, math.NaN(), 3}, End: 4},
		"strip": wide, "stack": stack, "gantt": crowd(name), "matrix": exchange(name)}
}

// crowd returns what many have done, of which some marks are at one place.
func crowd(name string) *Gantt {
	g := &Gantt{Of: name, Idle: 1, Kinds: []Kind{{Name: name, Top: 0.5, High: 0.5}, {Name: "waits"}},
		Marks: []Mark{{At: 9, Name: name}, {At: 9, Name: "b"}, {At: 9, Name: "c"}}}
	for i := range 500 {
		g.Names, g.Rows = append(g.Names, name), append(g.Rows, []Span{{From: 0, To: float64(i%9) + 0.5},
			{From: 8, To: 9, Kind: 1}})
	}
	return g
}

// exchange returns what many have moved to many.
func exchange(name string) *Matrix {
	m := &Matrix{Of: "bytes", Down: name, Across: name, Text: func(n int64) string { return Number(float64(n)) }}
	for i := range 500 {
		row := make([]int64, 500)
		for k := range row {
			row[k] = int64(i * k % 17)
		}
		m.Rows, m.Columns, m.Cells = append(m.Rows, name), append(m.Columns, name), append(m.Cells, row)
	}
	return m
}

// TestDrawingsAreWithinTheirFrame: each is XML, has nothing outside of it, is not a number nowhere, runs nothing, and
// stays small however much it is of.
func TestDrawingsAreWithinTheirFrame(t *testing.T) {
	t.Parallel()
	for kind, p := range pictures() {
		drawing := SVG(p)
		w, h := p.size()
		within(t, kind, drawing, float64(w), float64(h))
		if strings.Contains(drawing, "NaN") || strings.Contains(drawing, "<script") || len(drawing) > 100<<10 {
			t.Errorf("%s: %d bytes: %.200s", kind, len(drawing), drawing)
		}
		var page strings.Builder
		Figure{Title: `a "<b>"`, Read: "good <bad>", Of: p}.Write(&page)
		if strings.Contains(page.String(), "<b>") || strings.Contains(page.String(), "<bad>") {
			t.Errorf("%s: markup of a title is markup: %s", kind, page.String())
		}
	}
}

// within holds a drawing's numbers against its frame.
func within(t *testing.T, kind, drawing string, w, h float64) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(drawing))
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		el, is := token.(xml.StartElement)
		for k := 0; is && k < len(el.Attr); k++ {
			most := w
			switch el.Attr[k].Name.Local {
			case "y", "y1", "y2", "cy", "height":
				most = h
			case "x", "x1", "x2", "cx", "width":
			default:
				continue
			}
			if v, err := strconv.ParseFloat(el.Attr[k].Value, 64); err != nil || v < 0 || v > most+0.5 {
				t.Errorf("%s: %s of %s is %s, of at most "+
					"%v", kind, el.Attr[k].Name.Local, el.Name.Local, el.Attr[k].Value, most)
			}
		}
	}
}

// TestTablesHaveAllNumbers: what is drawn thinned out is there as a whole.
func TestTablesHaveAllNumbers(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]int{"lines": 10_003, "bars": 3, "strip": 200 * 5000, "stack": 20_000} {
		rows, err := csv.NewReader(strings.NewReader(string(CSV(pictures()[kind])))).ReadAll()
		if err != nil || len(rows) != want+1 {
			t.Errorf("%s: %d rows, want %d and a header; %v", kind, len(rows), want, err)
		}
	}
}

// TestThinnedLinesKeepExtremes: of many points the highest and the lowest are drawn.
func TestThinnedLinesKeepExtremes(t *testing.T) {
	t.Parallel()
	l := Line{}
	for k := range 50_000 {
		l.X, l.Y = append(l.X, float64(k)), append(l.Y, float64(k%10))
	}
	l.Y[31_415], l.Y[27_182] = 99, -99
	got := (&Lines{}).thinned(l)
	if len(got.X) > mostPoints+2 || slices.Max(got.Y) != 99 || slices.Min(got.Y) != -99 || !slices.IsSorted(got.X) {
		t.Errorf("%d points from %v to %v", len(got.X), slices.Min(got.Y), slices.Max(got.Y))
	}
}

// TestStripsShowWhatWasLeftOut: of many splits and steps one that was left out once is seen.
func TestStripsShowWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	s := &Strip{Down: "split", Across: "step", Rows: 3000}
	for k := range 1000 {
		s.Columns = append(s.Columns, Column{Name: fmt.Sprint(k), Shares: slices.Repeat([]float64{1}, 3000)})
	}
	if strings.Contains(SVG(s), `<path class="open`) {
		t.Error("something is drawn as left out, and nothing was")
	}
	s.Columns[777].Shares[2345] = 0
	if !strings.Contains(SVG(s), `<path class="open`) {
		t.Error("what was left out is not seen")
	}
}

// TestTicksAreRound and within their scale.
func TestTicksAreRound(t *testing.T) {
	t.Parallel()
	for _, s := range [][2]float64{{0, 1}, {0, 7}, {3, 3}, {-5, 12345}, {1e-9, 3e-9}} {
		all := ticks(scale{low: s[0], high: s[1]}, false)
		if len(all) < 1 || len(all) > 11 || all[0] < s[0]-1e-12 || all[len(all)-1] > s[1]*(1+1e-9) {
			t.Errorf("from %v to %v: %v", s[0], s[1], all)
		}
	}
}

// TestNumbers have the digits that a reader needs.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 0.123456: "0.1235", 1234.56: "1235", 100_000: "100,000",
		-1234567.8: "-1,234,568", 99_999_999: "99,999,999", 1e-9: "1e-09", 1e15: "1e+15", math.NaN(): "–"} {
		if got := Number(v); got != want && !math.IsNaN(v) || math.IsNaN(v) && got != "–" {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

// TestAxesHaveFewMarks, however near or far apart the ends of an axis are.
func TestAxesHaveFewMarks(t *testing.T) {
	t.Parallel()
	one := 0.3000905401803816
	for _, ends := range [][2]float64{{one, math.Nextafter(one, 1)}, {one, one}, {-math.MaxFloat64, math.MaxFloat64},
		{0, 5e-324}, {1e300, math.Nextafter(1e300, math.Inf(1))}, {-1, 1e-17}, {0, 7}, {math.Inf(-1), 1},
		{1e15, 1e15 + 1}} {
		for _, logarithmic := range []bool{false, true} {
			all := ticks(scale{low: ends[0], high: ends[1]}, logarithmic)
			if len(all) > mostTicks || len(all) == 0 && !math.IsInf(ends[0], 0) && !logarithmic {
				t.Errorf("from %v to %v: %v", ends[0], ends[1], all)
			}
		}
		l := &Lines{Across: "x", Up: "y", Loose: true, Lines: []Line{{X: []float64{1, 2}, Y: ends[:]}}}
		if svg := SVG(l); strings.Contains(svg, "NaN") {
			t.Errorf("from %v to %v: %s", ends[0], ends[1], svg)
		}
	}
}
