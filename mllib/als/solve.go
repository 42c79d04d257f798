package als

import (
	"math"
	"slices"
	"sync"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
)

// factors are the parameter of a half-sweep: the vectors of the other side, and,
// where ratings are implicit, the sum of their products x·xᵀ.
type factors struct {
	Rank  int
	At    []float64 // row-major; where rows are solved, kernel.GramSlack numbers follow
	Gram  []float64 // Rank × Rank; nil where ratings are explicit
	Count int       // of At's rows
	Own   []float64 // with biases what a rating is less than, of each row: At's last numbers are 1
}

// MarshalBinary lays the factors out as floats.
func (f factors) MarshalBinary() ([]byte, error) {
	out := make([]byte, 0, 8*(len(f.At)+len(f.Own)+len(f.Gram)+kernel.GramSlack+3))
	return num.PutFloats(out, []float64{float64(f.Rank), float64(f.Count), float64(len(f.Own))}, f.At,
		make([]float64, kernel.GramSlack), f.Own, f.Gram), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (f *factors) UnmarshalBinary(raw []byte) error {
	v, err := num.ViewFloats(raw, 3+kernel.GramSlack)
	if err != nil {
		return err
	}
	f.Rank, f.Count = int(v[0]), int(v[1])
	n, own := f.Rank*f.Count, int(v[2])
	if v = v[3:]; n < 0 || own < 0 || n+kernel.GramSlack+own > len(v) {
		return num.ErrCutShort
	}
	f.At, v = v[:n+kernel.GramSlack], v[n+kernel.GramSlack:]
	if f.Own = nil; own > 0 {
		f.Own = v[:own]
	}
	if v = v[own:]; len(v) == f.Rank*f.Rank && len(v) > 0 {
		f.Gram = v
	}
	return nil
}

// solved are rows that were solved, in the order of the tree, and the squared errors
// of their ratings at these.
type solved struct {
	Error, Ratings float64
	Runs           []solvedRun // put in a row, not copied, as results are merged
}

// solvedRun are the numbers of some rows, and their vectors.
type solvedRun struct {
	IDs []float64
	At  []float64 // row-major
}

// A run has room for as many rows as there are before it, within these bounds.
const (
	leastRun = 16
	mostRun  = 1024
)

// add appends a row.
func (s *solved) add(id float64, x []float64) {
	last := len(s.Runs) - 1
	if last < 0 || len(s.Runs[last].IDs) == cap(s.Runs[last].IDs) {
		before, _ := s.rows()
		room := min(mostRun, max(leastRun, before))
		s.Runs = append(s.Runs, solvedRun{make([]float64, 0, room), make([]float64, 0, room*len(x))})
		last++
	}
	r := &s.Runs[last]
	r.IDs, r.At = append(r.IDs, id), append(r.At, x...)
}

// rows returns how many there are, of n numbers together.
func (s *solved) rows() (rows, numbers int) {
	for _, r := range s.Runs {
		rows, numbers = rows+len(r.IDs), numbers+len(r.At)
	}
	return rows, numbers
}

// MarshalBinary lays the rows out as floats: all numbers of rows, then all vectors.
func (s solved) MarshalBinary() ([]byte, error) {
	rows, numbers := s.rows()
	out := num.PutFloats(make([]byte, 0, 8*(rows+numbers+3)), []float64{s.Error, s.Ratings, float64(rows)})
	for _, r := range s.Runs {
		out = num.PutFloats(out, r.IDs)
	}
	for _, r := range s.Runs {
		out = num.PutFloats(out, r.At)
	}
	return out, nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *solved) UnmarshalBinary(raw []byte) error {
	v, err := num.ViewFloats(raw, 3)
	if err != nil {
		return err
	}
	n := int(v[2])
	if n < 0 || n > len(v)-3 {
		return num.ErrCutShort
	}
	s.Error, s.Ratings, s.Runs = v[0], v[1], nil
	if n > 0 {
		s.Runs = []solvedRun{{v[3 : 3+n : 3+n], v[3+n:]}}
	}
	return nil
}

// rowSolver solves rows of ratings. It is used by several goroutines.
type rowSolver struct {
	config  Config
	measure bool      // errors are wanted
	pool    sync.Pool // of *solveWork
}

// solveWork is what a rowSolver keeps from one batch to the next.
type solveWork struct {
	systems *kernel.Systems
	trust   [][]float64 // of each system; nil where ratings are explicit
	left    []float64   // of ratings, less what their other sides make of them
	x, dots []float64
}

// aggregator collects solved rows. A row is solved from all its ratings or not at
// all, so that Scale has nothing to do: those a cut leaves out keep their vectors
// (SEMANTICS section 3).
func (s *rowSolver) aggregator() rdd.Aggregator[factors, rdd.Point, solved] {
	return rdd.Aggregator[factors, rdd.Point, solved]{
		Zero:     func(factors) solved { return solved{} },
		AddBatch: s.addRows,
		Merge: func(a, b solved) solved {
			return solved{a.Error + b.Error, a.Ratings + b.Ratings, append(a.Runs, b.Runs...)}
		},
		Scale: func(a solved, _ float64) solved { return a },
		// A row's cost goes by its ratings.
		Entries: true,
	}
}

func (s *rowSolver) addRows(out solved, p factors, b *rdd.Batch) solved {
	w, _ := s.pool.Get().(*solveWork)
	if w == nil || w.systems.Unknowns() != p.Rank {
		w = &solveWork{systems: kernel.NewSystems(p.Rank, s.config.NonNegative), x: make([]float64, p.Rank)}
		w.trust = make([][]float64, w.systems.Together())
	}
	defer s.pool.Put(w)
	for some := range slices.Chunk(b.Rows, w.systems.Together()) {
		s.solve(w, &p, b, some)
		for i, r := range some {
			w.systems.Solution(i, w.x)
			indices, ratings := ratingsOf(b, r)
			if s.measure {
				out.Error += w.squaredError(&p, indices, w.less(&p, indices, ratings), w.trust[i])
			}
			out.Ratings += float64(len(ratings))
			out.add(b.Labels[r], w.x)
		}
	}
	return out
}

// ratingsOf returns the ratings of a row, and the indexes of their other sides.
func ratingsOf(b *rdd.Batch, row int32) (indices []int32, ratings []float64) {
	from, to := b.Offsets[row], b.Offsets[row+1]
	return b.Indices[from:to], b.X64[from:to]
}

// solve finds the vectors that fit some rows' ratings best; where these are implicit,
// each counts by how far its confidence is above 1.
func (s *rowSolver) solve(w *solveWork, p *factors, b *rdd.Batch, rows []int32) {
	w.systems.Begin()
	for i, r := range rows {
		indices, ratings := ratingsOf(b, r)
		wanted := w.less(p, indices, ratings)
		if s.config.Implicit {
			w.trust[i], wanted = confidence(w.trust[i], ratings, s.config.Alpha)
		}
		w.systems.Next(p.Gram, w.trust[i], wanted, p.At, indices, float64(s.config.Reg*float64(len(ratings))))
	}
	if s.config.NonNegative {
		solveNonNegative(w.systems.A, w.systems.B, p.Rank)
	} else {
		w.systems.Solve()
	}
}

// less returns ratings without what is their other sides' own, until it is called again.
func (w *solveWork) less(p *factors, indices []int32, ratings []float64) []float64 {
	if p.Own == nil {
		return ratings
	}
	w.left = append(w.left[:0], ratings...)
	for i, at := range indices {
		w.left[i] -= p.Own[at]
	}
	return w.left
}

// confidence returns Alpha·|r| for each rating, in the space of an earlier one, and
// what is to be met times the confidence: 1 + Alpha·|r| where a rating is above 0,
// else 0.
func confidence(space, ratings []float64, alpha float64) (trust, wanted []float64) {
	k := len(ratings)
	if cap(space) < 2*k {
		space = make([]float64, 2*k)
	}
	trust, wanted = space[:k], space[k:2*k]
	for i, r := range ratings {
		trust[i], wanted[i] = float64(alpha*math.Abs(r)), 0
		if r > 0 {
			wanted[i] = 1 + trust[i]
		}
	}
	return trust, wanted
}

// squaredError returns Σ (r − x·y)² of a row's ratings; of implicit ones it is Σ
// trust· (liked − x·y)², liked being 1 where the rating is above 0, else 0.
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
// coordinate descent from zero, in place of b; a has the upper triangle of A.
func solveNonNegative(a, b []float64, f int) {
	for i := range f { // whole rows
		for j := range i {
			a[i*f+j] = a[j*f+i]
		}
	}
	slope := append([]float64(nil), b[:f]...) // of (x·A·x)/2 − b·x, which is A·x − b
	kernel.Scale(-1, slope)
	x := b[:f]
	clear(x)
	for range 100 * f {
		var most float64
		for i := range f {
			row := a[i*f : (i+1)*f]
			if row[i] <= 0 {
				continue
			}
			to := max(0, x[i]-slope[i]/row[i])
			if move := to - x[i]; move != 0 {
				x[i] = to
				kernel.Axpy(move, row, slope)
				most = max(most, float64(math.Abs(move)*math.Sqrt(row[i])))
			}
		}
		if most <= 1e-10 {
			return
		}
	}
}
