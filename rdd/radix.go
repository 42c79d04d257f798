package rdd

import (
	"cmp"
	"math/bits"
	"slices"
)

// ranked is a row by its number or place, with a rank that decides most of its
// order.
type ranked struct {
	rank uint64
	row  uint32
}

// fewRanked is how many rows are sorted by comparing.
const fewRanked = 512

// sortRanked sorts by rank, and keeps the order of what has one rank: a radix sort by
// the uppermost bits in which ranks differ, as many as tell most of them apart, and
// then of each run that they do not tell apart. It uses up its argument.
func sortRanked(rows []ranked) []ranked { return sortRankedIn(rows, make([]ranked, len(rows))) }

// sortRankedIn is sortRanked with the memory that it needs: what is sorted lies in
// one of the two.
func sortRankedIn(rows, spare []ranked) []ranked {
	if len(rows) < fewRanked {
		slices.SortStableFunc(rows, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
		return rows
	}
	var differ uint64
	for i := range rows {
		differ |= rows[i].rank ^ rows[0].rank
	}
	top := bits.Len64(differ)
	digits := (min(top, bits.Len(uint(len(rows)))+4) + 7) / 8
	low := max(0, top-8*digits)
	for d := range digits {
		dealByDigit(spare, rows, low+8*d)
		rows, spare = spare, rows
	}
	if low > 0 {
		sortRuns(rows, spare, low)
	}
	return rows
}

// dealByDigit puts rows in the order of eight bits of their ranks.
func dealByDigit(out, rows []ranked, shift int) {
	var at [256]uint32
	for i := range rows {
		at[byte(rows[i].rank>>shift)]++
	}
	sum := uint32(0)
	for i, n := range at {
		at[i], sum = sum, sum+n
	}
	out = out[:len(rows)]
	for i := range rows {
		b := byte(rows[i].rank >> shift)
		out[at[b]] = rows[i]
		at[b]++
	}
}

// sortRuns sorts each run whose ranks are alike but for their low bits.
func sortRuns(rows, spare []ranked, low int) {
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && rows[to].rank>>low == rows[from].rank>>low {
			to++
		}
		if run := rows[from:to]; len(run) > 1 {
			copy(run, sortRankedIn(run, spare[from:to]))
		}
		from = to
	}
}
