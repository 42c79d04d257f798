package rdd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTextsAreSortedAsGoDoes, whatever they begin with, end in or repeat; equal ones keep
// their order.
func TestTextsAreSortedAsGoDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"", "a", "b", "\x00", "https://www.", "zzzzzzzz", "\xff"})
		keys := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return "common/prefix/" + strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(t, "pieces"), "")
		}), 0, 600).Draw(t, "keys")
		down := rapid.Bool().Draw(t, "down")
		at, want := make([]ranked, len(keys)), make([]ranked, len(keys))
		for i := range at {
			at[i].row, want[i].row = uint32(i), uint32(i)
		}
		(&textSorter{keys: keys, down: down, spare: make([]ranked, len(keys))}).sort(at, 0)
		slices.SortStableFunc(want, func(a, b ranked) int {
			if down {
				a, b = b, a
			}
			return cmp.Compare(keys[a.row], keys[b.row])
		})
		for i := range at {
			if at[i].row != want[i].row {
				t.Fatalf("place %d has %q, want %q (down %v)", i, keys[at[i].row], keys[want[i].row], down)
			}
		}
	})
}

// BenchmarkSortedTexts are those whose first bytes tell them apart, and URLs.
func BenchmarkSortedTexts(b *testing.B) {
	for name, prefix := range map[string]string{"plain": "", "urls": "https://www.example.com/articles/"} {
		keys := make([]string, 200_000)
		for i := range keys {
			keys[i] = fmt.Sprintf("%s%016x", prefix, uint64(i)*0x9E3779B97F4A7C15)
		}
		b.Run(name, func(b *testing.B) {
			at := make([]ranked, len(keys))
			t := &textSorter{keys: keys, spare: make([]ranked, len(keys))}
			for b.Loop() {
				for i := range at {
					at[i] = ranked{row: uint32(i)}
				}
				t.sort(at, 0)
			}
		})
	}
}

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
