package rdd_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// lineOf is a row or a column of a matrix: places and values of its entries.
type lineOf struct {
	At     []int32
	Values []float64
}

// matrixLines are the lines of entries by their numbers, with others by their places among all others in order.
func matrixLines(entries []rdd.Entry, number, other func(rdd.Entry) int64) map[float64]lineOf {
	others := map[int64]bool{}
	for _, e := range entries {
		others[other(e)] = true
	}
	order := slices.Sorted(maps.Keys(others))
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b rdd.Entry) int { return int(other(a) - other(b)) })
	out := map[float64]lineOf{}
	for _, e := range sorted {
		at, _ := slices.BinarySearch(order, other(e))
		l := out[float64(number(e))]
		out[float64(number(e))] = lineOf{append(l.At, int32(at)), append(l.Values, e.Value)}
	}
	return out
}

func rowOf(e rdd.Entry) int64 { return e.Row }

func columnOf(e rdd.Entry) int64 { return e.Col }

// addLines adds the lines of a batch.
func addLines(all map[float64]lineOf, _ int, b *rdd.Batch) map[float64]lineOf {
	if all == nil {
		all = map[float64]lineOf{}
	}
	for _, r := range b.Rows {
		from, to := b.Offsets[r], b.Offsets[r+1]
		all[b.Labels[r]] = lineOf{slices.Clone(b.Indices[from:to]), slices.Clone(b.X64[from:to])}
	}
	return all
}

// TestAMatrixHasItsEntriesBothWays, those of one place in their order: of more rows than columns and of fewer, of
// numbers close by and far apart, and of values that are all the same or not.
func TestAMatrixHasItsEntriesBothWays(t *testing.T) {
	for _, size := range [][2]int64{{200, 30}, {30, 200}, {1, 90}} {
		for _, apart := range []int64{1, 1 << 40} {
			for _, values := range []int{1, 3} {
				rng := rand.New(rand.NewPCG(uint64(apart), uint64(values)))
				var entries []rdd.Entry
				for range 4000 {
					entries = append(entries, rdd.Entry{Row: apart * (rng.Int64N(size[0]) - 5),
						Col: apart * rng.Int64N(size[1]), Value: float64(2 + rng.IntN(values))})
				}
				checkMatrix(t, fmt.Sprint(size, " ", apart, " apart, ", values, " values"), entries)
			}
		}
	}
}

func checkMatrix(t *testing.T, name string, entries []rdd.Entry) {
	t.Helper()
	type plan struct {
		rows, columns rdd.Scan[int, map[float64]lineOf]
	}
	build := func(g *rdd.Graph, _ struct{}) plan {
		rows, columns := rdd.PackEntries(rdd.Parallelize(g, 7, entries...), rdd.Splits(3))
		return plan{rdd.ScanBatches(rows, addLines), rdd.ScanBatches(columns, addLines)}
	}
	cfg := volley.Config{Executors: 2, DataDir: t.TempDir()}
	_, err := volley.Run(context.Background(), cfg, "matrix", struct{}{}, build,
		func(ctx context.Context, s *rdd.Session, _ struct{}, p plan) (string, error) {
			for _, side := range []struct {
				scan rdd.Scan[int, map[float64]lineOf]
				want map[float64]lineOf
			}{{p.rows, matrixLines(entries, rowOf, columnOf)}, {p.columns, matrixLines(entries, columnOf, rowOf)}} {
				got, err := side.scan.Run(ctx, s, 0)
				if err != nil {
					return "", err
				}
				all := map[float64]lineOf{}
				for _, part := range got {
					maps.Copy(all, part)
				}
				if !reflect.DeepEqual(all, side.want) {
					t.Errorf("%s: %d lines, want %d, or others", name, len(all), len(side.want))
				}
			}
			return "", nil
		})
	if err != nil {
		t.Fatal(err)
	}
}
