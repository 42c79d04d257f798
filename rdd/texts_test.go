package rdd

import (
	"fmt"
	"slices"
	"testing"
)

// TestTextsAreSortedIntoPartitions: the partitions of texts that begin alike, one after
// the other, are those texts in order; few or many of them, either way.
func TestTextsAreSortedIntoPartitions(t *testing.T) {
	for _, n := range []int{1, 3, 40, 200} {
		for _, options := range [][]ShuffleOption{{Partitions(n)}, {Partitions(n), Descending()}} {
			g := NewGraph()
			texts := Map(Range(g, 0, 20_000, 5), func(i int64) string {
				return fmt.Sprintf("https://www.example.com/%d", uint64(i)*0x9E3779B97F4A7C15%30_000)
			})
			got, err := Collect(SortBy(texts, func(s string) string { return s }, options...)).Run(t.Context(),
				NewSession(g, newFrail(t, g, 3, 1), Config{}))
			if err != nil {
				t.Fatal(err)
			}
			if len(options) == 2 {
				slices.Reverse(got)
			}
			if len(got) != 20_000 || !slices.IsSorted(got) {
				t.Errorf("%d partitions, %d options: %d rows, in order: %v", n, len(options), len(got),
					slices.IsSorted(got))
			}
		}
	}
}
