package rdd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input/files"
)

// visit is a row with columns that directories can be named after.
type visit struct {
	Country string  `col:"country"`
	Year    *int16  `col:"year"`
	Page    string  `col:"page"`
	Took    float64 `col:"took"`
}

func visits() (out []visit) {
	years := []int16{2024, -1, 2026}
	for i, country := range []string{"DE", "a/b=c", "", ".x %", "Ü"} {
		for k := range 40 {
			v := visit{Country: country, Page: fmt.Sprint("p", i, k), Took: float64(k) / 8}
			if k%4 < 3 {
				v.Year = &years[k%4]
			}
			out = append(out, v)
		}
	}
	return out
}

func visitText(v visit) string {
	year := "null"
	if v.Year != nil {
		year = fmt.Sprint(*v.Year)
	}
	return fmt.Sprintf("%q %s %s %v", v.Country, year, v.Page, v.Took)
}

func visitTexts(rows []visit) (out []string) {
	for _, v := range rows {
		out = append(out, visitText(v))
	}
	slices.Sort(out)
	return out
}

// tableFormats save and read rows of a type.
func tableFormats[T any]() map[string]struct {
	save func(ds rdd.Dataset[T], dir string, o ...rdd.SaveOption) rdd.Action[int64]
	read func(g *rdd.Graph, uris ...string) rdd.Dataset[T]
} {
	type format = struct {
		save func(ds rdd.Dataset[T], dir string, o ...rdd.SaveOption) rdd.Action[int64]
		read func(g *rdd.Graph, uris ...string) rdd.Dataset[T]
	}
	return map[string]format{
		"parquet": {rdd.SaveParquet[T], rdd.Parquet[T]}, "arrow": {rdd.SaveArrow[T], rdd.Arrow[T]},
		"csv": {rdd.SaveCSV[T], func(g *rdd.Graph, uris ...string) rdd.Dataset[T] {
			return rdd.CSV[T](g, rdd.CSVOptions{}, uris...)
		}},
		"json": {rdd.SaveJSONLines[T], rdd.JSONLines[T]},
	}
}

// TestDirectoriesAreColumns: what is saved by its values comes back the same; a filter of directories opens no other.
func TestDirectoriesAreColumns(t *testing.T) {
	for name, f := range tableFormats[visit]() {
		dir := filepath.Join(t.TempDir(), "visits")
		save := func(o ...rdd.SaveOption) error {
			_, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
				o := append(o, rdd.PartitionedBy("year", "country"))
				return f.save(rdd.Parallelize(g, 3, visits()...), dir, o...)
			})
			return err
		}
		read := func(of func(g *rdd.Graph) rdd.Dataset[visit]) ([]string, error) {
			rows, err := theAction(t, func(g *rdd.Graph) rdd.Action[[]visit] { return rdd.Collect(of(g)) })
			return visitTexts(rows), err
		}
		if err := save(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := visitTexts(visits())
		got, err := read(func(g *rdd.Graph) rdd.Dataset[visit] { return f.read(g, dir) })
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %d rows, want %d; the first %q, want %q", name, err, len(got), len(want), got[:1],
				want[:1])
		}
		if err := os.Remove(filepath.Join(dir, "_SUCCESS")); err != nil { // as another program has written it
			t.Fatal(err)
		}
		german := func(g *rdd.Graph) rdd.Dataset[visit] {
			return rdd.FilterPartitions(f.read(g, dir), func(v visit) bool {
				return v.Country == "DE" && v.Year != nil && *v.Year > 2000
			})
		}
		for _, broken := range []string{"year=-1/country=DE", "year=2024/country=%2Ex %25"} {
			of, _ := filepath.Glob(filepath.Join(dir, broken, "part-*"))
			if len(of) == 0 {
				t.Fatalf("%s: there is no %s", name, broken)
			}
			for _, path := range of {
				if err := os.WriteFile(path, []byte("\x00 no file of any format"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		want = visitTexts(slices.DeleteFunc(visits(), func(v visit) bool {
			return v.Country != "DE" || v.Year == nil || *v.Year < 2000
		}))
		if got, err = read(german); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: of Germany %v, %d rows, want %d", name, err, len(got), len(want))
		}
		if err := save(rdd.Overwrite()); err == nil && name != "json" {
			got, err = read(func(g *rdd.Graph) rdd.Dataset[visit] { return f.read(g, dir) })
			if err != nil || len(got) != len(visits()) {
				t.Errorf("%s: overwritten: %v, %d rows", name, err, len(got))
			}
		} else if err != nil {
			t.Errorf("%s: overwrite: %v", name, err)
		}
	}
}

// TestSavesThatAppend: the rows of each save follow those before it, whatever partitions they have.
func TestSavesThatAppend(t *testing.T) {
	for name, f := range tableFormats[visit]() {
		for _, by := range [][]string{nil, {"country"}} {
			dir := filepath.Join(t.TempDir(), "visits")
			all := visits()
			for from := 0; from < len(all); from += 80 {
				rows := all[from:min(len(all), from+80)]
				n, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
					o := []rdd.SaveOption{rdd.Append(), rdd.Durable()}
					if by != nil {
						o = append(o, rdd.PartitionedBy(by...))
					}
					return f.save(rdd.Parallelize(g, 2, rows...), dir, o...)
				})
				if err != nil || n != int64(len(rows)) {
					t.Fatalf("%s: %d rows, %v", name, n, err)
				}
			}
			got, err := theAction(t, func(g *rdd.Graph) rdd.Action[[]visit] { return rdd.Collect(f.read(g, dir)) })
			var lines, want []string
			for _, v := range got {
				lines = append(lines, visitText(v))
			}
			for _, v := range all {
				want = append(want, visitText(v))
			}
			if by != nil {
				slices.Sort(lines)
				slices.Sort(want)
			}
			if err != nil || !slices.Equal(lines, want) {
				t.Errorf("%s by %v: %v, %d rows, want %d", name, by, err, len(lines), len(want))
			}
		}
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "part-00000"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.SaveText(rdd.Range(g, 0, 3, 1), foreign, rdd.Append())
	}); err == nil || !strings.Contains(err.Error(), "no save has written it") {
		t.Errorf("appended to what another program has written: %v", err)
	}
}

// TestCompressionsOfSaves: each is read, and is smaller; one that there is not is refused when the plan is built.
func TestCompressionsOfSaves(t *testing.T) {
	type row struct{ Text string }
	rows := make([]row, 5000)
	for i := range rows {
		rows[i].Text = strings.Repeat("the same ", 5) + fmt.Sprint(i%7)
	}
	for name, f := range tableFormats[row]() {
		codecs := map[string][]string{"parquet": {"none", "snappy", "gzip", "zstd"},
			"arrow": {"none", "lz4", "zstd"}}[name]
		if codecs == nil {
			codecs = []string{"none", "gzip", "zstd"}
		}
		sizes := map[string]int64{}
		for _, codec := range codecs {
			dir := filepath.Join(t.TempDir(), "rows")
			if _, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
				return f.save(rdd.Parallelize(g, 2, rows...), dir, rdd.Compressed(codec))
			}); err != nil {
				t.Fatalf("%s, %s: %v", name, codec, err)
			}
			got, err := theAction(t, func(g *rdd.Graph) rdd.Action[[]row] { return rdd.Collect(f.read(g, dir)) })
			if err != nil || !slices.Equal(got, rows) {
				t.Errorf("%s, %s: %d rows, %v", name, codec, len(got), err)
			}
			info, err := os.Stat(filepath.Join(dir, "part-00000"))
			if err != nil {
				t.Fatal(err)
			}
			sizes[codec] = info.Size()
		}
		if name != "parquet" && sizes["none"] <= 2*sizes["zstd"] { // its dictionary leaves little to compress
			t.Errorf("%s: %v bytes", name, sizes)
		}
	}
	if _, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.SaveText(rdd.Range(g, 0, 3, 1), t.TempDir(), rdd.Compressed("rar"))
	}); err == nil || !strings.Contains(err.Error(), `"rar"`) || !strings.Contains(err.Error(), "gzip") {
		t.Errorf("rar: %v", err)
	}
}

// TestDirectoriesThatCannotBe: what names no column, or what no directory can be named after.
func TestDirectoriesThatCannotBe(t *testing.T) {
	type row struct {
		At   time.Time
		Tags []string
		N    *string
		M    int
	}
	empty := ""
	for want, c := range map[string]struct {
		row row
		by  []string
	}{
		`no column "who"`: {row{}, []string{"who"}}, `column "Tags" cannot be`: {row{}, []string{"tags"}},
		"tell from a null": {row{N: &empty}, []string{"N"}},
		"none is left for": {row{}, []string{"At", "N", "M", "Tags"}},
	} {
		dir := filepath.Join(t.TempDir(), "rows")
		_, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
			return rdd.SaveParquet(rdd.Parallelize(g, 1, c.row), dir, rdd.PartitionedBy(c.by...))
		})
		if err == nil || !strings.Contains(err.Error(), want) && want != "none is left for" {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestSavesThatAreRedone: a job that is started again writes no rows twice, whichever of its saves it had done.
func TestSavesThatAreRedone(t *testing.T) {
	m := files.Marker{Owner: "job 1.1", Rows: 8, Added: 8}
	m.Owner = m.OwnersAnd("job 2.1", 5)
	m.Owner = m.OwnersAnd("job 3.1", 0)
	for owner, want := range map[string]int64{"job 1.1": 8, "job 2.1": 5, "job 3.1": 0, "job 4.1": -1} {
		rows, done := m.SavedBy(owner)
		if done != (want >= 0) || done && rows != want {
			t.Errorf("%s: %d rows, %v", owner, rows, done)
		}
	}
}

// TestFiltersOfDirectories compose, refuse directories without columns of the rows, and panic as the program's error.
func TestFiltersOfDirectories(t *testing.T) {
	dir, plain := filepath.Join(t.TempDir(), "visits"), filepath.Join(t.TempDir(), "plain")
	for _, c := range []struct {
		dir string
		o   []rdd.SaveOption
	}{{dir, []rdd.SaveOption{rdd.PartitionedBy("country", "year")}}, {plain, nil}} {
		if _, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
			return rdd.SaveParquet(rdd.Parallelize(g, 2, visits()...), c.dir, c.o...)
		}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(dir string, keeps ...func(visit) bool) (int64, error) {
		return theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
			ds := rdd.Parquet[visit](g, dir)
			for _, keep := range keeps {
				ds = rdd.FilterPartitions(ds, keep)
			}
			return rdd.Count(ds)
		})
	}
	german := func(v visit) bool { return v.Country == "DE" }
	recent := func(v visit) bool { return v.Year != nil && *v.Year == 2026 }
	if n, err := count(dir, german, recent); err != nil || n != 10 {
		t.Errorf("both filters: %d rows, %v", n, err)
	}
	if n, err := count(dir, func(visit) bool { return false }); err != nil || n != 0 {
		t.Errorf("none: %d rows, %v", n, err)
	}
	if _, err := count(plain, german); err == nil || !strings.Contains(err.Error(), "no column of the rows") {
		t.Errorf("without directories: %v", err)
	}
	if _, err := count(dir, func(visit) bool { panic("in the filter") }); err == nil ||
		!strings.Contains(err.Error(), "in the filter") {
		t.Errorf("a panic: %v", err)
	}
	if _, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.SaveParquet(rdd.Parallelize(g, 1, visits()...), dir, rdd.Append())
	}); err == nil || !strings.Contains(err.Error(), "the columns") {
		t.Errorf("appended without its directories: %v", err)
	}
	if n, err := count(dir); err != nil || n != int64(len(visits())) {
		t.Errorf("after an append that was refused: %d rows, %v", n, err)
	}
}

// TestOddNamesOfDirectories come back as they were, and a save of no rows as none.
func TestOddNamesOfDirectories(t *testing.T) {
	type row struct {
		Day string `col:"_day"`
		N   int
	}
	rows := []row{{"\xff\xfe", 1}, {"__HIVE_DEFAULT_PARTITION__", 2}, {"..", 3}, {"a/../b", 4}, {"x\ny", 5}, {"%41", 6}}
	for name, f := range tableFormats[row]() {
		for _, of := range [][]row{rows, nil} {
			if name == "json" && of != nil { // JSON has no such texts
				of = of[1:]
			}
			dir := filepath.Join(t.TempDir(), "rows")
			if _, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
				return f.save(rdd.Parallelize(g, 2, of...), dir, rdd.PartitionedBy("_day"))
			}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := theAction(t, func(g *rdd.Graph) rdd.Action[[]row] { return rdd.Collect(f.read(g, dir)) })
			slices.SortFunc(got, func(a, b row) int { return a.N - b.N })
			if err != nil || !slices.Equal(got, of) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	}
}
