package parquet

import (
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley/internal/datasets"
	"github.com/volley-engine/volley/storage/input/rows"
)

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
		err := filepath.WalkDir(datasets.Path(t, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, ".gz") || strings.HasSuffix(path, ".md") {
				return err
			}
			kind := Arrow
			if strings.Contains(path, "parquet") {
				kind = Parquet
			}
			g.Go(func() error {
				began := time.Now()
				rows, err := countRows(path, kind)
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

func countRows(path string, kind Kind) (n int, err error) {
	o, err := openPoints(path, kind)
	if err != nil {
		return 0, err
	}
	err = o.points(func(c *rows.Chunk) error {
		n += c.Rows()
		return nil
	})
	return n, err
}
