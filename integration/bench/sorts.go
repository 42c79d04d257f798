package main

import (
	"context"
	"fmt"
	"path/filepath"

	volley "github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// sortedRows is how many rows the sorts have.
const sortedRows = 2_000_000

// sortPlan are sorts of as many rows: an easy one, and those that are to take about as
// long.
type sortPlan struct {
	few, many, texts, urls rdd.Action[int64]
}

func buildSorts(g *rdd.Graph, _ struct{}) sortPlan {
	numbers := rdd.Map(rdd.Range(g, 0, sortedRows, 8),
		func(i int64) int64 { return int64(uint64(i) * 0x9E3779B97F4A7C15) })
	const site = "https://www.example.com/articles/"
	sorted := func(partitions int) rdd.Dataset[int64] {
		return rdd.SortBy(numbers, func(n int64) int64 { return n }, rdd.Partitions(partitions))
	}
	byText := func(text func(n int64) string) rdd.Action[int64] {
		return rdd.Count(rdd.SortBy(rdd.Map(numbers, text), func(s string) string { return s }, rdd.Partitions(16)))
	}
	return sortPlan{few: rdd.Count(sorted(8)), many: rdd.Count(sorted(250)),
		texts: byText(func(n int64) string { return fmt.Sprintf("%016x%s", uint64(n), site) }),
		urls:  byText(func(n int64) string { return fmt.Sprintf("%s%016x", site, uint64(n)) })}
}

// sorts: processor time of sorts to many partitions, and of texts that begin alike, beside
// what the same takes to few partitions, and of texts whose first bytes differ.
func sorts(ctx context.Context, dir string, _ int64) error {
	cfg, err := volley.ParseConfig("--executors", "2", "--data-dir", filepath.Join(dir, "cache"))
	if err != nil {
		return err
	}
	_, err = volley.Run(ctx, cfg, "sorts", struct{}{}, buildSorts,
		func(ctx context.Context, s *rdd.Session, _ struct{}, p sortPlan) (string, error) {
			var took [4]float64
			for k, a := range []rdd.Action[int64]{p.few, p.many, p.texts, p.urls} {
				began := cpuSeconds()
				n, err := a.Run(ctx, s)
				if err != nil || n != sortedRows {
					return "", fmt.Errorf("%d rows are sorted: %w", n, err)
				}
				took[k] = cpuSeconds() - began
			}
			fmt.Printf("sorts of 2 m rows, CPU-s: int64 to 8 partitions %.2f, to 250 %.2f (%.2f of it); texts as "+
				"long that differ at once %.2f, URLs %.2f (%.2f of it)\n",
				took[0], took[1], took[1]/took[0], took[2], took[3], took[3]/took[2])
			return "end", nil
		})
	return err
}
