package rdd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/rdd"
)

// TestTablesOfPointsWithLateNewlines: where the first quote comes late in a table, and
// holds a newline at which a part begins, points are refused with what to do about it,
// and read once that is said.
func TestTablesOfPointsWithLateNewlines(t *testing.T) {
	var b strings.Builder
	b.WriteString("y,x\n" + strings.Repeat("plain,1\n", 50_000))
	for b.Len() < 18<<20 {
		b.WriteString("\"a\n" + strings.Repeat("0,1\n", 200_000) + "\",2\n")
	}
	path := filepath.Join(t.TempDir(), "late.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	want := int64(50_000 + strings.Count(b.String(), "\",2\n"))
	count := func(in rdd.Input) (int64, error) {
		return theAction(t, func(g *rdd.Graph) rdd.Action[int64] { return rdd.Count(rdd.Points(g, in, path)) })
	}
	if n, err := count(rdd.Input{}); err == nil && n != want || err != nil &&
		!strings.Contains(err.Error(), "--quoted") {
		t.Errorf("untold: %d points, %v; want %d", n, err, want)
	}
	if n, err := count(rdd.Input{Quoted: true}); err != nil || n != want {
		t.Errorf("%d points, %v; want %d", n, err, want)
	}
}
