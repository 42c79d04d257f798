package rdd_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// failure is what running a plan ends with.
func failure[P any](t *testing.T, build func(*rdd.Graph) P,
	run func(ctx context.Context, s *rdd.Session, p P) error) error {
	t.Helper()
	_, err := volley.Run(context.Background(), testConfig(t), "plan", struct{}{},
		func(g *rdd.Graph, _ struct{}) P { return build(g) },
		func(ctx context.Context, s *rdd.Session, _ struct{}, p P) (string, error) {
			return "end", run(ctx, s, p)
		})
	return err
}

// TestDecisionsDoNotOutliveTheirRows: numbers of rows that a parameter or a loop
// has changed.
func TestDecisionsDoNotOutliveTheirRows(t *testing.T) {
	type numbered = rdd.Pair[int64, int64]
	type plan struct {
		times   rdd.Param[int64]
		indexed rdd.Action[[]numbered]
		loop    *rdd.Loop[int64]
		looped  rdd.Action[[]numbered]
	}
	build := func(g *rdd.Graph) plan {
		times := rdd.NewParam[int64](g, "times")
		repeated := rdd.FlatMap(rdd.MapWith(rdd.Range(g, 0, 9, 3), times,
			func(i, n int64) []int64 { return slices.Repeat([]int64{i}, int(n)) }),
			func(all []int64) []int64 { return all })
		loop := rdd.NewLoop(rdd.Range(g, 0, 6, 3), func(now rdd.Dataset[int64]) rdd.Dataset[int64] {
			return rdd.FlatMap(now, func(i int64) []int64 { return []int64{i, i} })
		})
		return plan{times, rdd.Collect(rdd.ZipWithIndex(repeated)), loop, rdd.Collect(rdd.ZipWithIndex(loop.Now()))}
	}
	inOrder := func(what string, rows []numbered, want int) {
		t.Helper()
		if len(rows) != want {
			t.Errorf("%s: %d rows, want %d", what, len(rows), want)
		}
		for i, r := range rows {
			if r.Key != int64(i) {
				t.Errorf("%s: row %d has the number %d", what, i, r.Key)
				return
			}
		}
	}
	runPlan(t, testConfig(t), build, func(ctx context.Context, s *rdd.Session, p plan) {
		for n := int64(1); n < 4; n++ {
			if err := p.times.Set(s, n); err != nil {
				t.Fatal(err)
			}
			inOrder("after Set", must(ctx, t, s, "indexed", p.indexed), int(9*n))
		}
		for size := 6; size < 50; size *= 2 {
			inOrder("in a loop", must(ctx, t, s, "looped", p.looped), size)
			if err := p.loop.Step(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestErrorsAreNotLost on the way: above MapSplits whose caller has enough, and
// above a pipe.
func TestErrorsAreNotLost(t *testing.T) {
	fails := func(g *rdd.Graph) rdd.Dataset[string] {
		return rdd.MapErr(rdd.Range(g, 0, 9000, 1), func(i int64) (string, error) {
			if i == 5000 {
				return "", fmt.Errorf("the five thousandth is a broken pipe")
			}
			return fmt.Sprint(i), nil
		})
	}
	for what, build := range map[string]func(g *rdd.Graph) rdd.Action[[]string]{
		"map splits": func(g *rdd.Graph) rdd.Action[[]string] {
			return rdd.Take(rdd.MapSplits(fails(g), func(_ int, rows iter.Seq[string]) iter.Seq[string] {
				all := slices.Collect(rows)
				slices.Reverse(all)
				return slices.Values(all)
			}), 3)
		},
		"pipe": func(g *rdd.Graph) rdd.Action[[]string] { return rdd.Collect(rdd.Pipe(fails(g), "cat")) },
	} {
		err := failure(t, build, func(ctx context.Context, s *rdd.Session, a rdd.Action[[]string]) error {
			_, err := a.Run(ctx, s)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "five thousandth") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestCSVSaysWhatItDidNotExpect instead of reading other rows than there are.
func TestCSVSaysWhatItDidNotExpect(t *testing.T) {
	type person struct{ Name, Age, City string }
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(in rdd.CSVOptions, pattern string) ([]person, error) {
		var rows []person
		err := failure(t, func(g *rdd.Graph) rdd.Action[[]person] {
			return rdd.Collect(rdd.CSV[person](g, in, filepath.Join(dir, pattern)))
		},
			func(ctx context.Context, s *rdd.Session, a rdd.Action[[]person]) (err error) {
				rows, err = a.Run(ctx, s)
				return err
			})
		return rows, err
	}
	var late strings.Builder
	late.WriteString("name,age,city\n")
	for late.Len() < 300<<10 {
		late.WriteString("ann,41,rome\n")
	}
	late.WriteString("\"Doe, John\",44,Paris\n")
	write("late.csv", late.String())
	if rows, err := read(rdd.CSVOptions{}, "late.csv"); err != nil || rows[len(rows)-1].Name != "Doe, John" {
		t.Errorf("a quote that comes late: %v", err)
	}
	rows, err := read(rdd.CSVOptions{Quoted: true}, "late.csv")
	if err != nil || rows[len(rows)-1].Name != "Doe, John" {
		t.Errorf("a quote that was announced: %v", err)
	}
	write("one-a.csv", "name,age,city\na,1,x\n")
	write("one-b.csv", "b,2,y\n")
	if _, err := read(rdd.CSVOptions{}, "one-*.csv"); err == nil || !strings.Contains(err.Error(), "one-b.csv") {
		t.Errorf("a header in one of two files: %v", err)
	}
	write("end.csv", "\"a\",\"b\",")
	header := false
	if rows, err := read(rdd.CSVOptions{Header: &header}, "end.csv"); err != nil || len(rows) != 1 ||
		rows[0] != (person{"a", "b", ""}) {
		t.Errorf("an empty field at the end: %v, %v", rows, err)
	}
}

// TestAColumnOfNothingsComesBack from CSV.
func TestAColumnOfNothingsComesBack(t *testing.T) {
	backAgain(t, []string{"a", "", "b", ""}, filepath.Join(t.TempDir(), "out"), rdd.SaveCSV[string],
		func(g *rdd.Graph, uri string) rdd.Dataset[string] { return rdd.CSV[string](g, rdd.CSVOptions{}, uri) })
}

// TestTimesMeetInAllZones as keys of joins and groups.
func TestTimesMeetInAllZones(t *testing.T) {
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	east := time.FixedZone("east", 3600)
	type row = rdd.Pair[time.Time, int64]
	type plan struct{ small, moved, grouped rdd.Action[int64] }
	build := func(g *rdd.Graph) plan {
		left := rdd.Map(rdd.Range(g, 0, 1000, 4),
			func(i int64) row { return row{Key: at.Add(time.Duration(i%10) * time.Hour).In(east), Value: i} })
		right := rdd.Map(rdd.Range(g, 0, 10, 2),
			func(i int64) row { return row{Key: at.Add(time.Duration(i) * time.Hour), Value: i} })
		return plan{rdd.Count(rdd.BroadcastJoin(left, right)), rdd.Count(rdd.Join(left, right, rdd.Partitions(3))),
			rdd.Count(rdd.GroupByKey(rdd.Union(left, right)))}
	}
	runPlan(t, testConfig(t), build, func(ctx context.Context, s *rdd.Session, p plan) {
		for what, c := range map[string]struct {
			a    rdd.Action[int64]
			want int64
		}{"broadcast": {p.small, 1000}, "shuffled": {p.moved, 1000}, "grouped": {p.grouped, 10}} {
			if n := must(ctx, t, s, what, c.a); n != c.want {
				t.Errorf("%s: %d rows, want %d", what, n, c.want)
			}
		}
	})
}

// TestHistogramsHaveTheirGreatest in the last bin.
func TestHistogramsHaveTheirGreatest(t *testing.T) {
	runPlan(t, testConfig(t), func(g *rdd.Graph) rdd.Action[rdd.Bins] {
		return rdd.HistogramOf(rdd.Parallelize(g, 1, -1.0786579227538942, -0.24708592448352185), 10)
	}, func(ctx context.Context, s *rdd.Session, a rdd.Action[rdd.Bins]) {
		if b := must(ctx, t, s, "histogram", a); b.Counts[0] != 1 || b.Counts[9] != 1 {
			t.Errorf("%v", b)
		}
	})
}

// TestANullIsFoundByItsRow: where a field cannot be null, the error names file, column and row.
func TestANullIsFoundByItsRow(t *testing.T) {
	type given struct{ X *float64 }
	type wanted struct{ X float64 }
	const rows, null = 20_000, 12_345
	dir := filepath.Join(t.TempDir(), "rows")
	saving := func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.SaveParquet(rdd.Map(rdd.Range(g, 0, rows, 1), func(i int64) given {
			if i == null {
				return given{}
			}
			x := float64(i)
			return given{&x}
		}), dir)
	}
	if err := failure(t, saving, func(ctx context.Context, s *rdd.Session, a rdd.Action[int64]) error {
		_, err := a.Run(ctx, s)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	reading := func(g *rdd.Graph) rdd.Action[int64] { return rdd.Count(rdd.Parquet[wanted](g, dir)) }
	err := failure(t, reading, func(ctx context.Context, s *rdd.Session, a rdd.Action[int64]) error {
		_, err := a.Run(ctx, s)
		return err
	})
	if want := fmt.Sprintf("row %d", null); err == nil || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), "part-0") || !strings.Contains(err.Error(), `"X"`) {
		t.Errorf("%v, want the file, column X and %s", err, want)
	}
}
