package als

import (
	"math"
	"math/rand/v2"
	"testing"
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

// TestStepIsByItsDefinition: what a step adds is what one number after another would have it.
func TestStepIsByItsDefinition(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for rank := 1; rank < 12; rank++ {
		for _, biases := range []bool{false, true} {
			d := &descent{Rank: rank, Reg: 0.2, Biases: biases}
			u, i := make([]float64, rank+ownNumbers), make([]float64, rank+ownNumbers)
			for k := range u {
				u[k], i[k] = rng.Float64(), rng.Float64()
			}
			off := 2.5 - u[rank] - i[rank]
			for k := range rank {
				off -= u[k] * i[k]
			}
			wantU, wantI := want(u, i, off, d), want(i, u, off, d)
			if got := d.step(u, i, 2.5, 0.3); math.Abs(got-off*off) > 1e-12 {
				t.Errorf("rank %d: a squared error of %v, want %v", rank, got, off*off)
			}
			for k := range u {
				if math.Abs(u[k]-wantU[k]) > 1e-12 || math.Abs(i[k]-wantI[k]) > 1e-12 {
					t.Errorf("rank %d, number %d: %v and %v, want %v and %v", rank, k, u[k], i[k], wantU[k], wantI[k])
				}
			}
		}
	}
}

// want returns numbers after a step by the other's.
func want(own, other []float64, off float64, d *descent) []float64 {
	out, rate, squares := append([]float64(nil), own...), 0.3/math.Sqrt(1+own[d.Rank+1]), 0.0
	for k := range d.Rank {
		g := off*other[k] - d.Reg*own[k]
		out[k] += rate * g
		squares += g * g
	}
	if d.Biases {
		out[d.Rank] += rate * (off - d.Reg*own[d.Rank])
	}
	out[d.Rank+1] += squares / float64(d.Rank)
	return out
}
