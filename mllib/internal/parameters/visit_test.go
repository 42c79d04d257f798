package parameters

import (
	"slices"
	"testing"
)

// TestItemsAreAllRowsOnce: whatever the position and the batch, in an order of the clock's own; parts of them are
// the same rows, for a worker and for those that help it.
func TestItemsAreAllRowsOnce(t *testing.T) {
	t.Parallel()
	orders := map[string]bool{}
	for _, c := range []struct {
		next, rows, size int64
		batch            int
	}{{0, 10, 10, 3}, {7, 10, 10, 3}, {0, 1, 5, 8}, {4, 3, 5, 1}, {2, 25, 10, 4}, {9, 10, 10, 10}, {0, 64, 64, 8}} {
		for clock := range 3 {
			i := ItemsOf(1, clock, c.next, c.rows, c.size, c.batch)
			seen, before := make([]int64, c.size), int64(0)
			for part := range i.Count() {
				at := int64(0)
				for r := range i.Ranges(part, part+1) {
					if r.Before != at || r.From < 0 || r.To > c.size || r.From >= r.To {
						t.Fatalf("%+v: item %d has %+v", c, part, r)
					}
					for row := r.From; row < r.To; row++ {
						seen[row]++
					}
					at += r.To - r.From
				}
				before += at
			}
			want := make([]int64, c.size)
			for row := range c.rows {
				want[(c.next+row)%c.size]++
			}
			if !slices.Equal(seen, want) || before != c.rows {
				t.Errorf("%+v: rows are visited %v times, want %v", c, seen, want)
			}
			whole := slices.Collect(ItemsOf(1, clock, c.next, c.rows, c.size, c.batch).Ranges(0, i.Count()))
			if again := slices.Collect(i.Ranges(0, i.Count())); !slices.Equal(whole, again) {
				t.Errorf("%+v: another has %v, this one %v", c, again, whole)
			}
			if c.batch == 8 && c.rows == 64 {
				orders[string(rune(whole[0].From))+string(rune(whole[1].From))+string(rune(whole[2].From))] = true
			}
		}
	}
	if len(orders) != 3 {
		t.Errorf("of three clocks %d begin alike", len(orders))
	}
}
