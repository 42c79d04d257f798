package rdd_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/rdd"
)

// savedAs saves rows in a directory of their own.
func savedAs[T any](t *testing.T, save func(rdd.Dataset[T], string, ...rdd.SaveOption) rdd.Action[int64],
	rows ...T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	runPlan(t, testConfig(t), func(g *rdd.Graph) rdd.Action[int64] { return save(rdd.Parallelize(g, 1, rows...), dir) },
		func(ctx context.Context, s *rdd.Session, a rdd.Action[int64]) { must(ctx, t, s, "save", a) })
	return filepath.Join(dir, "part-*")
}

// readingFails is what reading rows ends with, and the rows where it does not fail.
func readingFails[T any](t *testing.T, read func(*rdd.Graph) rdd.Dataset[T]) (rows []T, err error) {
	t.Helper()
	err = failure(t, func(g *rdd.Graph) rdd.Action[[]T] { return rdd.Collect(read(g)) },
		func(ctx context.Context, s *rdd.Session, a rdd.Action[[]T]) (err error) {
			rows, err = a.Run(ctx, s)
			return err
		})
	return rows, err
}

type (
	doubleRow   struct{ X float64 }
	singleRow   struct{ X float32 }
	optionalRow struct{ X *float32 }
	wholeRow    struct{ X int64 }
)

// refusedByColumn reports whether rows of T are refused by the column's name.
func refusedByColumn[T any](t *testing.T, what string, read func(*rdd.Graph) rdd.Dataset[T]) {
	t.Helper()
	if rows, err := readingFails(t, read); err == nil || !strings.Contains(err.Error(), "column") ||
		!strings.Contains(err.Error(), `"X"`) {
		t.Errorf("%s: %+v, %v", what, rows, err)
	}
}

// TestDoublesThatNoSingleHasAreRefused rather than read as infinite: columns of doubles,
// read into fields of single precision.
func TestDoublesThatNoSingleHasAreRefused(t *testing.T) {
	rows := []doubleRow{{1}, {1e300}}
	parquet, arrow, csv := savedAs(t, rdd.SaveParquet[doubleRow], rows...),
		savedAs(t, rdd.SaveArrow[doubleRow], rows...), savedAs(t, rdd.SaveCSV[doubleRow], rows...)
	refusedByColumn(t, "Parquet", func(g *rdd.Graph) rdd.Dataset[singleRow] {
		return rdd.Parquet[singleRow](g,
			parquet)
	})
	refusedByColumn(t, "Parquet, a pointer",
		func(g *rdd.Graph) rdd.Dataset[optionalRow] { return rdd.Parquet[optionalRow](g, parquet) })
	refusedByColumn(t, "Arrow", func(g *rdd.Graph) rdd.Dataset[singleRow] { return rdd.Arrow[singleRow](g, arrow) })
	refusedByColumn(t, "Arrow, a pointer", func(
		g *rdd.Graph) rdd.Dataset[optionalRow] {
		return rdd.Arrow[optionalRow](g, arrow)
	})
	refusedByColumn(t, "CSV", func(g *rdd.Graph) rdd.Dataset[singleRow] {
		return rdd.CSV[singleRow](g, rdd.CSVOptions{},
			csv)
	})
}

// TestWholeNumbersThatNoFloatHasAreRefused rather than rounded.
func TestWholeNumbersThatNoFloatHasAreRefused(t *testing.T) {
	rows := []wholeRow{{1 << 53}, {1<<53 + 1}}
	parquet, arrow := savedAs(t, rdd.SaveParquet[wholeRow], rows...), savedAs(t, rdd.SaveArrow[wholeRow], rows...)
	refusedByColumn(t, "Parquet", func(g *rdd.Graph) rdd.Dataset[doubleRow] {
		return rdd.Parquet[doubleRow](g,
			parquet)
	})
	refusedByColumn(t, "Arrow", func(g *rdd.Graph) rdd.Dataset[doubleRow] { return rdd.Arrow[doubleRow](g, arrow) })
}

// TestTimesKeepTheirNanoseconds in every format that they are saved in.
func TestTimesKeepTheirNanoseconds(t *testing.T) {
	type event struct {
		At time.Time `unit:"ns"`
	}
	rows := []event{{time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC)}, {time.Unix(0, 1).UTC()},
		{time.Unix(0, -1).UTC()},
		{time.Date(1700, 1, 1, 0, 0, 0, 1, time.UTC)}}
	dir := t.TempDir()
	backAgain(t, rows, filepath.Join(dir, "csv"), rdd.SaveCSV[event],
		func(g *rdd.Graph, uri string) rdd.Dataset[event] { return rdd.CSV[event](g, rdd.CSVOptions{}, uri) })
	t.Run("parquet", func(t *testing.T) {
		backAgain(t, rows, filepath.Join(dir, "parquet"), rdd.SaveParquet[event],
			func(g *rdd.Graph, uri string) rdd.Dataset[event] { return rdd.Parquet[event](g, uri) })
	})
	t.Run("arrow", func(t *testing.T) {
		backAgain(t, rows, filepath.Join(dir, "arrow"), rdd.SaveArrow[event],
			func(g *rdd.Graph, uri string) rdd.Dataset[event] { return rdd.Arrow[event](g, uri) })
	})
}

// TestTimesThatAColumnWouldCutAreRefused where the field has no unit, rather than cut.
func TestTimesThatAColumnWouldCutAreRefused(t *testing.T) {
	type event struct{ At *time.Time }
	at := time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC)
	type far struct {
		At time.Time `unit:"ns"`
	}
	dir := filepath.Join(t.TempDir(), "out")
	for name, save := range map[string]func(g *rdd.Graph) rdd.Action[int64]{
		"parquet": func(g *rdd.Graph) rdd.Action[int64] {
			return rdd.SaveParquet(rdd.Parallelize(g, 1, event{&at}), dir)
		},
		"arrow beyond its range": func(g *rdd.Graph) rdd.Action[int64] {
			return rdd.SaveArrow(rdd.Parallelize(g, 1, far{time.Time{}}), dir)
		},
	} {
		err := failure(t, save, func(ctx context.Context, s *rdd.Session, a rdd.Action[int64]) error {
			_, err := a.Run(ctx, s)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), `"At"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
