package rdd

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/volley-engine/volley/storage/input/rows"
)

// TestMatrixIsItsEntries holds both sides of a matrix against its definition: rows of
// numbers that lie near and far, columns in order, entries of one place in theirs, of
// values that are all the same or not.
func TestMatrixIsItsEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int64Range(-3, 30), rapid.Int64Range(1<<40, 1<<40+5))
		value := rapid.SampledFrom([]*rapid.Generator[float64]{rapid.Float64Range(-1, 1), rapid.Just(2.5)}).
			Draw(t, "values")
		entries := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Entry {
			return Entry{Row: number.Draw(t, "row"), Col: number.Draw(t, "column"),
				Value: value.Draw(t, "value")}
		}), 1, 200).Draw(t, "entries")
		g := NewGraph()
		m := &matrix{ds: Parallelize(g, rapid.IntRange(1, 4).Draw(t, "partitions"), entries...)}
		ordered(t, matrixRows{m.byRow}, entries, func(e Entry) (row, column int64) { return e.Row, e.Col })
		ordered(t, matrixRows{m.byColumn}, entries, func(e Entry) (row, column int64) { return e.Col, e.Row })
	})
}

// TestMatrixOfManyRows is the same of more rows than there are buckets to sort them in, and of
// splits that have more entries than are handed on at a time.
func TestMatrixOfManyRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i, many := range []int64{mostBuckets - 1, mostBuckets, 2*mostBuckets + 1, 9 * mostBuckets, 1 << 52,
		mostBuckets, 9 * mostBuckets} {
		var entries []Entry
		for range 20 * cellBlock {
			// Low numbers have more entries than high ones.
			row, column := rng.Int64N(many), rng.Int64N(rng.Int64N(many)+1)
			e := Entry{Row: row, Col: column, Value: 1}
			if i < 5 {
				e.Value = rng.Float64()
			}
			entries = append(entries, e)
		}
		g := NewGraph()
		m := &matrix{ds: Parallelize(g, 3, entries...)}
		ordered(t, matrixRows{m.byRow}, entries, func(e Entry) (row, column int64) { return e.Row, e.Col })
		ordered(t, matrixRows{m.byColumn}, entries, func(e Entry) (row, column int64) { return e.Col, e.Row })
	}
}

// ordered wants all entries, by rows that come once each.
func ordered(t rapid.TB, m matrixRows, entries []Entry, of func(Entry) (row, column int64)) {
	var columns []int64
	wanted := map[int64][]Entry{}
	for _, e := range entries {
		row, column := of(e)
		wanted[row] = append(wanted[row], e)
		columns = append(columns, column)
	}
	slices.Sort(columns)
	columns = slices.Compact(columns)
	got := 0
	for part := range m.Len() {
		err := m.Read(context.Background(), part, func(c *rows.Chunk) error {
			for r, label := range c.Labels {
				row := wanted[int64(label)]
				delete(wanted, int64(label))
				slices.SortStableFunc(row, func(a, b Entry) int {
					_, x := of(a)
					_, y := of(b)
					return int(max(-1, min(1, x-y)))
				})
				from, to := c.Offsets[r], c.Offsets[r+1]
				if int(to-from) != len(row) {
					t.Fatalf("row %v has %d entries, not %d", label, to-from, len(row))
				}
				for k, e := range row {
					if _, column := of(e); columns[c.Indices[int(from)+k]] != column ||
						c.Value(from+int64(k)) != e.Value {
						t.Fatalf("entry %d of row %v is not %v", k, label, e)
					}
				}
				got++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(wanted) > 0 || got == 0 {
		t.Fatalf("%d rows are not there", len(wanted))
	}
}

// TestRowsAloneHaveCountsOfColumns: rows as PackEntries has them, and of each column how many entries it has, in how
// many rows.
func TestRowsAloneHaveCountsOfColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int64Range(-3, 30), rapid.Int64Range(1<<40, 1<<40+5))
		entries := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Entry {
			return Entry{Row: number.Draw(t, "row"), Col: number.Draw(t, "column"), Value: 1}
		}), 1, 200).Draw(t, "entries")
		g := NewGraph()
		m := &matrix{ds: Parallelize(g, 2, entries...), rowsOnly: true}
		ordered(t, matrixRows{m.byRow}, entries, func(e Entry) (row, column int64) { return e.Row, e.Col })
		want, in := map[int64][2]float64{}, map[[2]int64]bool{}
		for _, e := range entries {
			counts := want[e.Col]
			counts[0]++
			if at := [2]int64{e.Row, e.Col}; !in[at] {
				in[at], counts[1] = true, counts[1]+1
			}
			want[e.Col] = counts
		}
		got := map[int64][2]float64{}
		err := columnCounts{m.byRow}.Read(context.Background(), 0, func(c *rows.Chunk) error {
			for i, column := range c.Labels {
				got[int64(column)] = [2]float64(c.Values[2*i:])
			}
			return nil
		})
		if err != nil || !maps.Equal(got, want) {
			t.Fatalf("%v, %v, want %v", got, err, want)
		}
	})
}
