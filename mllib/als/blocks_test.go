package als

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volley-engine/volley/internal/kernel"
)

// TestPlacesOfItems: each has a place of its own within the table, and blocks have no row in common.
func TestPlacesOfItems(t *testing.T) {
	t.Parallel()
	for _, size := range [][3]int{{1, 1, 3}, {7, 8, 12}, {1000, 7, 12}, {5000, 3, 2002}, {4097, 4, 1}} {
		p := placesOf(size[0], size[1], size[2])
		rows, columns := p.shape()
		taken, of := map[[2]int]bool{}, map[int]int{}
		for item := range size[0] {
			row, column := p.of(item)
			if taken[[2]int{row, column}] || row >= rows || column+size[2] > columns || column%size[2] != 0 {
				t.Fatalf("%v: item %d is in row %d of %d, column %d of %d", size, item, row, rows, column, columns)
			}
			taken[[2]int{row, column}] = true
			if block, had := of[row]; had && block != item%size[1] {
				t.Fatalf("%v: row %d is of blocks %d and %d", size, row, block, item%size[1])
			}
			of[row] = item % size[1]
		}
	}
}

// TestABlockIsOneDescent: looks between its steps change nothing, as a user's ratings go together.
func TestABlockIsOneDescent(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	const users, items, rank = 9, 30, 5
	of := block{now: make([]float64, items*(rank+kernel.OwnNumbers))}
	at := make([]float64, users*(rank+kernel.OwnNumbers))
	for _, all := range [][]float64{of.now, at} {
		for i := range all {
			all[i] = rng.Float64()
		}
	}
	for i := range 40 * lookRatings {
		of.ratings = append(of.ratings, kernel.Rating{Row: int32(i * users / (40 * lookRatings)),
			Column: int32(rng.IntN(items)), Value: rng.NormFloat64()})
	}
	d := &descent{Rank: rank, Mean: 0.1, Reg: 0.2, Biases: true}
	wantUsers, wantItems, looked := slices.Clone(at), slices.Clone(of.now), 0
	by := kernel.Descent{Rank: rank, Mean: 0.1, Rate: 0.05, Reg: 0.2, Own: true}
	by.Steps(wantUsers, wantItems, of.ratings)
	d.descend(at, of.now, of.ratings, 0.05, func(n int) { looked += n })
	if !slices.Equal(at, wantUsers) || !slices.Equal(of.now, wantItems) || looked != len(of.ratings) {
		t.Errorf("%d of %d ratings, or other numbers", looked, len(of.ratings))
	}
}
