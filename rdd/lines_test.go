package rdd_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
)

// TestFlatMapLinesIsFlatMapOfTextFile with lines of every kind of end, of which some make no row and some many.
func TestFlatMapLinesIsFlatMapOfTextFile(t *testing.T) {
	var text strings.Builder
	for i := range 40_000 {
		text.WriteString(strings.Repeat("x", i*i%17))
		text.WriteString([]string{"\n", "\r\n", " \n"}[i%3])
	}
	text.WriteString("no end")
	path := filepath.Join(t.TempDir(), "lines.txt")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	prefixes := func(out []string, line string) []string {
		for i := range len(line) % 5 {
			out = append(out, line[i:])
		}
		return out
	}
	run := func(of func(g *rdd.Graph) rdd.Dataset[string]) []string {
		t.Helper()
		rows, err := theAction(t, func(g *rdd.Graph) rdd.Action[[]string] { return rdd.Collect(of(g)) })
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	got := run(func(g *rdd.Graph) rdd.Dataset[string] {
		return rdd.FlatMapLines(g, func(out []string, line []byte) ([]string, error) {
			return prefixes(out, string(line)), nil
		}, path)
	})
	want := run(func(g *rdd.Graph) rdd.Dataset[string] { return rdd.FlatMapAppend(rdd.TextFile(g, path), prefixes) })
	if !slices.Equal(got, want) || len(want) < 40_000 {
		t.Errorf("%d rows, want the %d of a flat map", len(got), len(want))
	}
}

// TestFlatMapLinesNamesTheLine that its function refuses.
func TestFlatMapLinesNamesTheLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines.txt")
	if err := os.WriteFile(path, []byte("1\n2\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := theAction(t, func(g *rdd.Graph) rdd.Action[[]int] {
		return rdd.Collect(rdd.FlatMapLines(g, func(out []int, line []byte) ([]int, error) {
			if len(line) > 1 {
				return out, errors.New("it is no digit")
			}
			return append(out, int(line[0])), nil
		}, path))
	})
	const want = "row 2 of partition 0: it is no digit"
	if fault.KindOf(err) != fault.UserCode || !strings.Contains(fmt.Sprint(err), want) {
		t.Error(err)
	}
}
