package mllib

import (
	"math"
	"sync"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
)

// factors are the parameter of a half-sweep: the vectors of the other side, and,
// where ratings are implicit, the sum of their products x·xᵀ.
type factors struct {
	Rank  int
	At    []float64 // row-major; where rows are solved, kernel.GramSlack numbers follow
	Gram  []float64 // Rank × Rank; nil where ratings are explicit
	Count int       // of At's rows
}

// MarshalBinary lays the factors out as floats.
func (f factors) MarshalBinary() ([]byte, error) {
	out := make([]byte, 0, 8*(len(f.At)+len(f.Gram)+kernel.GramSlack+2))
	return putFloats(out, []float64{float64(f.Rank), float64(f.Count)}, f.At, make([]float64, kernel.GramSlack), f.Gram), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (f *factors) UnmarshalBinary(raw []byte) error {
	v, err := getFloats(raw, 2+kernel.GramSlack)
	if err != nil {
		return err
	}
	f.Rank, f.Count = int(v[0]), int(v[1])
	n := f.Rank * f.Count
	if v = v[2:]; n < 0 || n+kernel.GramSlack > len(v) {
		return errCutShort
	}
	f.At = v[:n+kernel.GramSlack]
	if v = v[n+kernel.GramSlack:]; len(v) == f.Rank*f.Rank && len(v) > 0 {
		f.Gram = v
	}
	return nil
}

// solved are rows that were solved: their numbers and their vectors, in the order
// of the tree, and the squared errors of their ratings at these.
type solved struct {
	Error, Ratings float64
	IDs            []float64
	At             []float64 // row-major
}

// MarshalBinary lays the rows out as floats.
func (s solved) MarshalBinary() ([]byte, error) {
	out := make([]byte, 0, 8*(len(s.At)+len(s.IDs)+3))
	return putFloats(out, []float64{s.Error, s.Ratings, float64(len(s.IDs))}, s.IDs, s.At), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *solved) UnmarshalBinary(raw []byte) error {
	v, err := getFloats(raw, 3)
	if err != nil {
		return err
	}
	n := int(v[2])
	if n < 0 || n > len(v)-3 {
		return errCutShort
	}
	s.Error, s.Ratings, s.IDs, s.At = v[0], v[1], v[3:3+n:3+n], v[3+n:]
	return nil
}

// rowSolver solves rows of ratings. It is used by several goroutines.
type rowSolver struct {
	config  ALSConfig
	measure bool      // errors are wanted
	pool    sync.Pool // of *solveWork
}

// solveWork is what a rowSolver keeps from one batch to the next.
type solveWork struct {
	a, b, x, trust, dots []float64
}

// aggregator collects solved rows. A row is solved from all its ratings or not at
// all, so that Scale has nothing to do: those a cut leaves out keep their vectors
// (SEMANTICS section 3).
func (s *rowSolver) aggregator() rdd.Aggregator[factors, rdd.Point, solved] {
	return rdd.Aggregator[factors, rdd.Point, solved]{
		Zero:     func(factors) solved { return solved{} },
		AddBatch: s.addRows,
		Merge: func(a, b solved) solved {
			return solved{a.Error + b.Error, a.Ratings + b.Ratings, append(a.IDs, b.IDs...), append(a.At, b.At...)}
		},
		Scale: func(a solved, _ float64) solved { return a },
		// A row's cost goes by its ratings.
		Entries: true,
	}
}

func (s *rowSolver) addRows(out solved, p factors, b *rdd.Batch) solved {
	w, _ := s.pool.Get().(*solveWork)
	if w == nil {
		w = &solveWork{}
	}
	defer s.pool.Put(w)
	w.fit(p.Rank)
	for _, r := range b.Rows {
		from, to := b.Offsets[r], b.Offsets[r+1]
		indices, ratings := b.Indices[from:to], b.X64[from:to]
		out.Error += s.solve(w, &p, indices, ratings)
		out.Ratings += float64(len(ratings))
		out.IDs = append(out.IDs, b.Labels[r])
		out.At = append(out.At, w.x...)
	}
	return out
}

func (w *solveWork) fit(rank int) {
	if len(w.x) != rank {
		w.a, w.b, w.x = make([]float64, rank*rank), make([]float64, rank), make([]float64, rank)
	}
}

// solve puts into w.x the vector that fits a row's ratings best, and returns the
// sum of its squared errors, where they are wanted; where ratings are implicit,
// weighted by how far their confidence is above 1.
func (s *rowSolver) solve(w *solveWork, p *factors, indices []int32, ratings []float64) float64 {
	f := p.Rank
	if clear(w.a); p.Gram != nil {
		copy(w.a, p.Gram)
	}
	clear(w.b)
	wanted := ratings
	var trust []float64
	if s.config.Implicit {
		trust, wanted = w.confidence(ratings, s.config.Alpha)
	}
	kernel.GramRows(w.a, trust, p.At, indices, f)
	kernel.Accumulate(w.b, wanted, p.At, indices)
	ridge := float64(s.config.Reg * float64(len(ratings)))
	for i := range f {
		w.a[i*f+i] += ridge
	}
	copy(w.x, w.b)
	if s.config.NonNegative {
		w.solveNonNegative(f)
	} else {
		kernel.Cholesky(w.a, f)
		kernel.Solve(w.a, w.x, f)
	}
	if !s.measure {
		return 0
	}
	return w.squaredError(p, indices, ratings, trust)
}

// confidence is Alpha·|r| for each rating, and what is to be met times the
// confidence: 1 + Alpha·|r| where a rating is above 0, else 0.
func (w *solveWork) confidence(ratings []float64, alpha float64) (trust, wanted []float64) {
	k := len(ratings)
	if len(w.trust) < 2*k {
		w.trust = make([]float64, 2*k)
	}
	trust, wanted = w.trust[:k], w.trust[k:2*k]
	for i, r := range ratings {
		trust[i], wanted[i] = float64(alpha*math.Abs(r)), 0
		if r > 0 {
			wanted[i] = 1 + trust[i]
		}
	}
	return trust, wanted
}

// squaredError is Σ (r − x·y)² of a row's ratings; of implicit ones it is Σ trust·
// (liked − x·y)², liked being 1 where the rating is above 0, else 0.
func (w *solveWork) squaredError(p *factors, indices []int32, ratings, trust []float64) (total float64) {
	if cap(w.dots) < len(ratings) {
		w.dots = make([]float64, 2*len(ratings))
	}
	z := w.dots[:len(ratings)]
	kernel.Dots(z, w.x, p.At, indices)
	for i, r := range ratings {
		if trust == nil {
			total = math.FMA(r-z[i], r-z[i], total)
			continue
		}
		liked := 0.0
		if r > 0 {
			liked = 1
		}
		total = math.FMA(float64(trust[i]*(liked-z[i])), liked-z[i], total)
	}
	return total
}

// solveNonNegative finds the vector without negative entries that is best, by
// coordinate descent from zero; w.x has b at first, w.a the upper triangle of A.
func (w *solveWork) solveNonNegative(f int) {
	for i := range f { // whole rows
		for j := range i {
			w.a[i*f+j] = w.a[j*f+i]
		}
	}
	slope := append([]float64(nil), w.b...) // of (x·A·x)/2 − b·x, which is A·x − b
	kernel.Scale(-1, slope)
	clear(w.x)
	for range 100 * f {
		var most float64
		for i := range f {
			row := w.a[i*f : (i+1)*f]
			if row[i] <= 0 {
				continue
			}
			to := max(0, w.x[i]-slope[i]/row[i])
			if move := to - w.x[i]; move != 0 {
				w.x[i] = to
				kernel.Axpy(move, row, slope)
				most = max(most, float64(math.Abs(move)*math.Sqrt(row[i])))
			}
		}
		if most <= 1e-10 {
			return
		}
	}
}
