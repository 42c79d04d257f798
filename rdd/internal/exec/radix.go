package exec

import (
	"math/bits"
	"slices"
)

// Ranked is the place of a row, with a rank that decides most of its order.
type Ranked struct {
	Rank uint64
	row  uint32
}

// Up to how many rows are put into place one by one, and sorted by comparing: ranks, and texts of equal ranks.
const (
	handful   = 24
	fewRanked = 64
	fewTexts  = 512
)

// sortRanked sorts by rank, and keeps the order of equal ranks: a radix sort by the uppermost bits in which
// ranks differ, as many as tell most of them apart, and then of each run of equal ones. It overwrites its
// argument.
func sortRanked(rows []Ranked) []Ranked { return sortRankedIn(rows, make([]Ranked, len(rows))) }

// sortRankedIn does what sortRanked does, with spare memory for as many rows; the result is in one of the two.
func sortRankedIn(rows, spare []Ranked) []Ranked {
	switch {
	case len(rows) <= handful:
		insertRanked(rows)
		return rows
	case len(rows) < fewRanked:
		slices.SortFunc(rows, byRank)
		return rows
	}
	var differ uint64
	for i := range rows {
		differ |= rows[i].Rank ^ rows[0].Rank
	}
	top := bits.Len64(differ)
	digits := (min(top, bits.Len(uint(len(rows)))+4) + 7) / 8
	low := max(0, top-8*digits)
	for d := range digits {
		scatterByDigit(spare, rows, low+8*d)
		rows, spare = spare, rows
	}
	if low > 0 {
		sortRuns(rows, spare, low)
	}
	return rows
}

// insertRanked sorts a handful of rows as byRank does, without calls.
func insertRanked(rows []Ranked) {
	for i := 1; i < len(rows); i++ {
		r, j := rows[i], i
		for ; j > 0 && (rows[j-1].Rank > r.Rank || rows[j-1].Rank == r.Rank && rows[j-1].row > r.row); j-- {
			rows[j] = rows[j-1]
		}
		rows[j] = r
	}
}

// byRank compares ranks, and of equal ones the places of the rows, which is the order in which they came.
func byRank(a, b Ranked) int {
	switch {
	case a.Rank < b.Rank:
		return -1
	case a.Rank > b.Rank:
		return 1
	}
	return int(int64(a.row) - int64(b.row))
}

// scatterByDigit is one pass of the radix sort: it puts rows in the order of eight bits of their ranks.
func scatterByDigit(out, rows []Ranked, shift int) {
	var at [256]uint32
	for i := range rows {
		at[byte(rows[i].Rank>>shift)]++
	}
	sum := uint32(0)
	for i, n := range at {
		at[i], sum = sum, sum+n
	}
	out = out[:len(rows)]
	for i := range rows {
		b := byte(rows[i].Rank >> shift)
		out[at[b]] = rows[i]
		at[b]++
	}
}

// sortRuns sorts each run of rows whose ranks differ in their low bits only.
func sortRuns(rows, spare []Ranked, low int) {
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && rows[to].Rank>>low == rows[from].Rank>>low {
			to++
		}
		if run := rows[from:to]; len(run) > 1 {
			copy(run, sortRankedIn(run, spare[from:to]))
		}
		from = to
	}
}
