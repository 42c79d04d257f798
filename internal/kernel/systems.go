package kernel

import "math"

// Systems are symmetric positive semidefinite systems of linear equations of n
// unknowns each, from rows given by number: those of narrow rows are solved several at
// a time, side by side in the lanes of vectors. Use: Begin, then Next for up to Together
// systems, Solve, and Solution of each.
type Systems struct {
	n, stride  int
	count      int
	A, B       []float64 // of the system that is being made: A's upper triangle, its rows stride apart
	sideA      []float64 // entry (i, j) of system s at (i·n+j)·lanes+s
	sideB      []float64 // entry i at i·lanes+s
	one, tiled bool
}

// tileWidth is how far the rows of a tile that stays in registers lie apart.
const tileWidth = 16

// NewSystems makes room for systems of n unknowns. One has them made and solved one at
// a time, whatever n is: A, whose rows then lie n apart, and B can be looked at.
func NewSystems(n int, one bool) *Systems {
	s := &Systems{n: n, stride: n, one: one || n > narrow}
	if s.tiled = !s.one && n <= tileWidth && path == "avx512"; s.tiled {
		s.stride = tileWidth
	}
	s.A, s.B = make([]float64, max(n, tileWidth)*s.stride), make([]float64, max(n, tileWidth))
	if !s.one {
		s.sideA, s.sideB = make([]float64, n*n*lanes), make([]float64, n*lanes)
	}
	return s
}

// Unknowns returns n.
func (s *Systems) Unknowns() int { return s.n }

// Together returns how many systems are solved at a time.
func (s *Systems) Together() int {
	if s.one {
		return 1
	}
	return lanes
}

// Begin clears all systems away.
func (s *Systems) Begin() { s.count = 0 }

// Next makes one more system, of a symmetric matrix, n×n and row-major (nil: zeros),
// to which Σ_k weight[k]·x_k·x_kᵀ is added, and ridge on the diagonal; its right side
// is Σ_k value[k]·x_k. x_k is row rows[k] of a matrix x of n columns, which GramSlack
// numbers follow. A nil weight is all ones. Sums are made row after row, by fused
// multiply-adds.
func (s *Systems) Next(from, weight, value, x []float64, rows []int32, ridge float64) {
	if s.count == s.Together() {
		panic("kernel: more systems than are solved together")
	}
	clear(s.A)
	clear(s.B)
	for i := range s.n {
		if from != nil {
			copy(s.A[i*s.stride:i*s.stride+s.n], from[i*s.n:])
		}
	}
	if len(rows) > 0 {
		_, _ = x[:(int(maxRow(rows))+1)*s.n+GramSlack], value[:len(rows)]
	}
	if !s.tiled || !normalRowsVector(s.A, s.B, weight, value, x, rows, s.n) {
		GramRows(s.A[:s.n*s.n], weight, x, rows, s.n)
		Accumulate(s.B[:s.n], value, x, rows)
	}
	for i := range s.n {
		s.A[i*s.stride+i] += ridge
	}
	if !s.one {
		s.putAside()
	}
	s.count++
}

// putAside gives the system that has been made its lane.
func (s *Systems) putAside() {
	for i := range s.n {
		row, to := s.A[i*s.stride:][:s.n], s.sideA[i*s.n*lanes+s.count:]
		for j := i; j < len(row); j++ {
			to[j*lanes] = row[j]
		}
		s.sideB[i*lanes+s.count] = s.B[i]
	}
}

// Solve solves all systems. An unknown whose pivot is lost in the rounding of its
// diagonal entry depends on those before it, and is zero.
func (s *Systems) Solve() {
	switch {
	case s.one:
		Cholesky(s.A[:s.n*s.n], s.n)
		Solve(s.A[:s.n*s.n], s.B[:s.n], s.n)
	case !solveLanesVector(s.sideA, s.sideB, s.n):
		for lane := range s.count {
			s.solvePlain(lane)
		}
	}
}

// Solution puts the unknowns of a system into x.
func (s *Systems) Solution(system int, x []float64) {
	if s.one {
		copy(x, s.B[:s.n])
		return
	}
	for i := range s.n {
		x[i] = s.sideB[i*lanes+system]
	}
}

// solvePlain factors one system, the right side being one more column, and solves it.
func (s *Systems) solvePlain(lane int) {
	n, b := s.n, func(i int) *float64 { return &s.sideB[i*lanes+lane] }
	a := func(i, j int) *float64 { return &s.sideA[(i*n+j)*lanes+lane] }
	for i := range n {
		whole := *a(i, i)
		for j := i; j <= n; j++ {
			column := func(k int) *float64 { return a(k, j) }
			if j == n {
				column = b
			}
			v := *column(i)
			for k := range i {
				v = math.FMA(-*a(k, i), *column(k), v)
			}
			switch {
			case j == i && v > lost*whole:
				v = math.Sqrt(v)
			case j == i || *a(i, i) == 0:
				v = 0
			default:
				v /= *a(i, i)
			}
			*column(i) = v
		}
	}
	for i := n - 1; i >= 0; i-- {
		v := *b(i)
		for j := i + 1; j < n; j++ {
			v = math.FMA(-*a(i, j), *b(j), v)
		}
		if v /= *a(i, i); *a(i, i) == 0 {
			v = 0
		}
		*b(i) = v
	}
}
