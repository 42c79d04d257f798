package rdd

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestASortOfNoPartitions comes to no rows: a file of nothing has no partitions, and
// nothing that could say where the result is to be cut.
func TestASortOfNoPartitions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nothing.txt")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	itself := func(s string) string { return s }
	for name, sorted := range map[string]func(Dataset[string]) Dataset[string]{
		"read":      func(ds Dataset[string]) Dataset[string] { return SortBy(ds, itself) },
		"read on":   func(ds Dataset[string]) Dataset[string] { return Map(SortBy(ds, itself, Partitions(3)), itself) },
		"by key":    func(ds Dataset[string]) Dataset[string] { return Keys(SortByKey(KeyBy(ds, itself))) },
		"moved on":  func(ds Dataset[string]) Dataset[string] { return Repartition(SortBy(ds, itself), 2) },
		"distinct":  func(ds Dataset[string]) Dataset[string] { return Distinct(SortBy(ds, itself)) },
		"numbered":  func(ds Dataset[string]) Dataset[string] { return Values(ZipWithIndex(SortBy(ds, itself))) },
		"persisted": func(ds Dataset[string]) Dataset[string] { return Cache(SortBy(ds, itself)) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewGraph()
			action := Collect(sorted(TextFile(g, path)))
			if _, err := g.Resolve(context.Background()); err != nil {
				t.Fatal(err)
			}
			rows, err := action.Run(context.Background(), NewSession(g, newFrail(t, g, 2, 1), Config{}))
			if err != nil || len(rows) != 0 {
				t.Errorf("%d rows, %v", len(rows), err)
			}
		})
	}
}
