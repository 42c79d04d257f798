package rdd

import "slices"

// ranked is a row by its number or place, with a rank that decides most of its
// order.
type ranked struct {
	rank uint64
	row  uint32
}

// fewRanked is how many rows are sorted by comparing.
const fewRanked = 512

// sortRanked sorts by rank, and keeps the order of what has one rank: a radix
// sort from the last byte to the first, which leaves out the bytes that all
// ranks have in common. It uses up its argument.
func sortRanked(rows []ranked) []ranked {
	if len(rows) < fewRanked {
		slices.SortStableFunc(rows, func(a, b ranked) int {
			switch {
			case a.rank < b.rank:
				return -1
			case a.rank > b.rank:
				return 1
			}
			return 0
		})
		return rows
	}
	var counts [8][256]uint32
	for i := range rows {
		r := rows[i].rank
		for d := range counts {
			counts[d][byte(r>>(8*d))]++
		}
	}
	other := make([]ranked, len(rows))
	for d := range counts {
		c := &counts[d]
		if c[byte(rows[0].rank>>(8*d))] == uint32(len(rows)) {
			continue
		}
		sum := uint32(0)
		for i, n := range c {
			c[i], sum = sum, sum+n
		}
		shift := 8 * d
		for i := range rows {
			b := byte(rows[i].rank >> shift)
			other[c[b]] = rows[i]
			c[b]++
		}
		rows, other = other, rows
	}
	return rows
}
