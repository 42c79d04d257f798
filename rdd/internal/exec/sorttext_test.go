package exec

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
		at, want := make([]Ranked, len(keys)), make([]Ranked, len(keys))
		for i := range at {
			at[i].row, want[i].row = uint32(i), uint32(i)
		}
		(&textSorter{keys: keys, down: down, spare: make([]Ranked, len(keys))}).sort(at, 0)
		slices.SortStableFunc(want, func(a, b Ranked) int {
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
			at := make([]Ranked, len(keys))
			t := &textSorter{keys: keys, spare: make([]Ranked, len(keys))}
			for b.Loop() {
				for i := range at {
					at[i] = Ranked{row: uint32(i)}
				}
				t.sort(at, 0)
			}
		})
	}
}
