package storage

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// sharedData is where the data sets lie that are not part of the project.
func sharedData(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "data", dir)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not here", path)
	}
	return path
}

// TestMalformedColumnFiles reads every file of the Arrow and Parquet test
// collections, good and malformed: each gives rows or an error, in bounded
// time and memory.
func TestMalformedColumnFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("several hundred processes")
	}
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	g := errgroup.Group{}
	g.SetLimit(4)
	for _, dir := range []string{"arrow-testing", "parquet-testing"} {
		err := filepath.WalkDir(sharedData(t, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, ".gz") || strings.HasSuffix(path, ".md") {
				return err
			}
			format := Arrow
			if strings.Contains(path, "parquet") {
				format = Parquet
			}
			g.Go(func() error {
				began := time.Now()
				rows, err := countRows(path, format)
				if took := time.Since(began); took > 30*time.Second {
					t.Errorf("%s took %v", path, took)
				}
				if err == nil {
					t.Logf("%s: %d rows", filepath.Base(path), rows)
				} else if !strings.Contains(err.Error(), filepath.Base(path)) {
					t.Errorf("%s: the error does not name the file: %v", path, err)
				}
				return nil
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	g.Wait()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); grown > 512<<20 {
		t.Errorf("the process grew by %d MiB", grown>>20)
	}
}

func countRows(path string, format Format) (int, error) {
	src, err := OpenSource(ReadOptions{Format: format}, path)
	if err != nil {
		return 0, err
	}
	rows := 0
	for part := range src.Len() {
		err := src.Read(context.Background(), part, func(c *Chunk) error {
			rows += c.Rows()
			return nil
		})
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}
