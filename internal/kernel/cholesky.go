package kernel

import "math"

// lost is the share of a diagonal entry that its rounding is taken for.
const lost = 1e-13

// Cholesky factors a symmetric positive semidefinite matrix A = L·Lᵀ in place.
// Of a, n×n and row-major, only entries on and above the diagonal are read; the
// rows of the upper triangle become those of Lᵀ. A variable whose pivot is lost
// in the rounding of its diagonal entry depends on those before it: its row
// becomes zeros, and Solve leaves it at zero.
func Cholesky(a []float64, n int) {
	var coef [cached]float64
	for i := range n {
		row := a[i*n : (i+1)*n]
		whole := row[i]
		reduce(a, row, coef[:], i, n)
		if !(row[i] > lost*whole) {
			clear(row[i:])
			continue
		}
		pivot := math.Sqrt(row[i])
		row[i] = pivot
		for j := i + 1; j < n; j++ {
			row[j] /= pivot
		}
	}
}

// cached is how wide a matrix stays near the processor: its rows above are then read
// whole, by vectors, though what lies below the diagonal is not wanted.
const (
	cached = 384
	narrow = 24 // not worth it
)

// reduce takes the i rows above off a row, one after the other, to the right of the
// diagonal at the least.
func reduce(a, row, coef []float64, i, n int) {
	if n > cached || n < narrow {
		for k := range i {
			above := a[k*n : (k+1)*n]
			Axpy(-above[i], above[i:], row[i:])
		}
		return
	}
	for k := range i {
		coef[k] = -a[k*n+i]
	}
	Accumulate(row, coef[:i], a, ascending[:i])
}

// ascending are the numbers 0, 1, 2, …
var ascending = func() (out [cached]int32) {
	for i := range out {
		out[i] = int32(i)
	}
	return out
}()

// Solve solves A·x = b in place of b, with what Cholesky has made of A.
func Solve(a, b []float64, n int) {
	for i := range n {
		row := a[i*n : (i+1)*n]
		if row[i] == 0 {
			b[i] = 0
			continue
		}
		b[i] /= row[i]
		Axpy(-b[i], row[i+1:], b[i+1:n])
	}
	for i := n - 1; i >= 0; i-- {
		row := a[i*n : (i+1)*n]
		if row[i] == 0 {
			b[i] = 0
			continue
		}
		b[i] = (b[i] - Dot(row[i+1:], b[i+1:n])) / row[i]
	}
}
