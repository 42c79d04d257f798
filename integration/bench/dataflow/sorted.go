package main

import (
	"strconv"

	"github.com/volley-engine/volley/rdd"
)

func byValue(v float64) float64 { return v }

func valuesOf(rows rdd.Dataset[kv]) rdd.Dataset[rdd.Pair[int64, float64]] {
	return rdd.Map(rows, func(r kv) rdd.Pair[int64, float64] {
		return rdd.Pair[int64, float64]{Key: r.Key, Value: r.Value}
	})
}

// ranked is a value with its rank among those of its key, and by how much it is below the one before it.
type ranked struct {
	Rank  int
	Below float64
}

// window: of each row its rank among those of its key, the greatest value first, and the gap to the one before.
func window(rows rdd.Dataset[kv]) job {
	windows := rdd.WindowByKey(valuesOf(rows), rdd.Desc(byValue), func(w *rdd.Window[float64]) ranked {
		r := ranked{Rank: w.Rank()}
		if before, ok := w.Lag(1); ok {
			r.Below = before - w.Row()
		}
		return r
	})
	total := rdd.Aggregated(windows, func() sums { return sums{} }, func(t sums, p rdd.Pair[int64, ranked]) sums {
		below := p.Value.Below
		return addSums(t, sums{Rows: 1, Groups: int64(p.Value.Rank), Sum: below, Tied: below * float64(p.Key&63)})
	}, addSums)
	return fold(total, sums.show)
}

// secondary: all rows in the order of their keys, and of each key the greatest value first, written as text.
func secondary(rows rdd.Dataset[kv], dir string) job {
	by := rdd.Asc(func(r kv) int64 { return r.Key }).Then(rdd.Desc(func(r kv) float64 { return r.Value }))
	lines := rdd.Map(rdd.OrderBy(rows, by), func(r kv) string {
		text := append(strconv.AppendInt(make([]byte, 0, 32), r.Key, 10), ',')
		return string(strconv.AppendFloat(text, r.Value, 'f', 10, 64))
	})
	return fold(rdd.SaveText(lines, dir), func(n int64) (int64, string) { return n, "output" })
}

// semiJoin: the rows whose key has a name in the first half of the alphabet.
func semiJoin(fact rdd.Dataset[kv], dim rdd.Dataset[named]) job {
	early := rdd.Filter(dim, func(r named) bool { return r.Name < "n" })
	kept := rdd.SemiJoin(valuesOf(fact), rdd.KeyBy(early, func(r named) int64 { return r.Key }))
	total := rdd.Aggregated(kept, func() sums { return sums{} }, func(t sums, p rdd.Pair[int64, float64]) sums {
		return addSums(t, sums{Rows: 1, Sum: p.Value, Tied: p.Value * float64(p.Key&63)})
	}, addSums)
	return fold(total, sums.show)
}
