package kmeans

import (
	"math"
	"sync"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
)

// centres are the parameter of a pass over rows: K centres of D columns, and what
// distances are taken about (nil is zero), which keeps rounding small where rows
// lie far from zero.
type centres struct {
	K, D  int
	At    []float64 // row-major
	Shift []float64
}

// MarshalBinary lays the centres out as floats.
func (c centres) MarshalBinary() ([]byte, error) {
	return num.PutFloats(nil, []float64{float64(c.K), float64(c.D)}, c.At, c.Shift), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (c *centres) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, 2)
	if err != nil {
		return err
	}
	c.K, c.D = int(v[0]), int(v[1])
	v = v[2:]
	if c.K < 0 || c.D < 0 || c.K*c.D > len(v) {
		return num.ErrCutShort
	}
	if c.At, v = v[:c.K*c.D], v[c.K*c.D:]; len(v) == c.D {
		c.Shift = v
	}
	return nil
}

// clusters are what rows come to under some centres: their cost, and, by centre,
// the rows nearest to it: their number by weight, and their sum.
type clusters struct {
	Cost, CostSq float64
	N            []float64
	Sum          []float64 // row-major
}

// MarshalBinary lays the sums out as floats.
func (c clusters) MarshalBinary() ([]byte, error) {
	out := make([]byte, 0, 8*(len(c.Sum)+len(c.N)+3))
	return num.PutFloats(out, []float64{c.Cost, c.CostSq, float64(len(c.N))}, c.N, c.Sum), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (c *clusters) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, 3)
	if err != nil {
		return err
	}
	k := int(v[2])
	if k < 0 || len(v) < 3+k {
		return num.ErrCutShort
	}
	c.Cost, c.CostSq, c.N, c.Sum = v[0], v[1], v[3:3+k], v[3+k:]
	return nil
}

// assigner folds rows under centres. It is used by several goroutines.
type assigner struct {
	cosine bool
	pool   sync.Pool // of *assignWork
	sets   centreSets
}

// assignWork is what an assigner keeps from one batch to the next.
type assignWork struct {
	near    kernel.Nearest
	at      []int32
	squared []float64
	scale   []float64
	dots    []float64
	bounds  bounds
}

func (a *assigner) work(n int) *assignWork {
	w, _ := a.pool.Get().(*assignWork)
	if w == nil {
		w = &assignWork{}
	}
	if cap(w.at) < n {
		w.at, w.squared, w.scale, w.dots = make([]int32, n), make([]float64, n), make([]float64, n), make([]float64, n)
	}
	w.at, w.squared, w.scale, w.dots = w.at[:n], w.squared[:n], w.scale[:n], w.dots[:n]
	return w
}

// assign finds the nearest centre of each row of a batch.
func (a *assigner) assign(w *assignWork, c *centres, b *rdd.Batch) {
	scale := a.scales(w, b)
	switch {
	case b.Dense() && b.X32 != nil:
		findBounded(a, w, c, b, b.X32, scale)
	case b.Dense():
		findBounded(a, w, c, b, b.X64, scale)
	default:
		w.assignSparse(c, b, scale)
	}
}

// assignSparse compares sparse rows with one centre after the other.
func (w *assignWork) assignSparse(c *centres, b *rdd.Batch, scale []float64) {
	own := make([]float64, len(b.Rows))
	for i, r := range b.Rows {
		w.at[i], w.squared[i], own[i] = 0, math.Inf(1), squaredLength(b, int(r))
		if scale != nil {
			own[i] = float64(float64(own[i]*scale[i]) * scale[i])
		}
	}
	for k := range c.K {
		centre := c.At[k*c.D : (k+1)*c.D]
		norm := kernel.Dot(centre, centre)
		fold.Dots(w.dots, centre, b, b.Rows)
		for i, z := range w.dots {
			if scale != nil {
				z = float64(z * scale[i])
			}
			if v := math.FMA(-2, z, norm); v < w.squared[i] {
				w.squared[i], w.at[i] = v, int32(k)
			}
		}
	}
	for i, v := range own {
		w.squared[i] = max(0, w.squared[i]+v)
	}
}

// scales returns what rows are brought to length 1 by, under cosine; a row of
// zeros stays one.
func (a *assigner) scales(w *assignWork, b *rdd.Batch) []float64 {
	if !a.cosine {
		return nil
	}
	for i, r := range b.Rows {
		w.scale[i] = 0
		if sq := squaredLength(b, int(r)); sq > 0 {
			w.scale[i] = 1 / math.Sqrt(sq)
		}
	}
	return w.scale
}

// squaredLength of a row.
func squaredLength(b *rdd.Batch, r int) float64 {
	from, to := r*b.Features, (r+1)*b.Features
	if !b.Dense() {
		from, to = int(b.Offsets[r]), int(b.Offsets[r+1])
	}
	if b.X32 != nil {
		return num.SumOfSquares(b.X32[from:to])
	}
	return num.SumOfSquares(b.X64[from:to])
}

// clusters folds rows into clusters.
func (a *assigner) clusters() rdd.Aggregator[centres, rdd.Point, clusters] {
	return rdd.Aggregator[centres, rdd.Point, clusters]{
		Zero: func(c centres) clusters {
			return clusters{N: make([]float64, c.K), Sum: make([]float64, c.K*c.D)}
		},
		AddBatch: a.addClusters,
		Merge: func(x, y clusters) clusters {
			x.Cost, x.CostSq = x.Cost+y.Cost, x.CostSq+y.CostSq
			kernel.Add(y.N, x.N)
			kernel.Add(y.Sum, x.Sum)
			return x
		},
		Scale: func(x clusters, f float64) clusters {
			x.Cost, x.CostSq = x.Cost*f, x.CostSq*f
			kernel.Scale(f, x.N)
			kernel.Scale(f, x.Sum)
			return x
		},
		Weighted: true,
	}
}

func (a *assigner) addClusters(s clusters, c centres, b *rdd.Batch) clusters {
	w := a.work(len(b.Rows))
	defer a.pool.Put(w)
	a.assign(w, &c, b)
	return a.addAssigned(s, w, b)
}

// addAssigned adds rows whose nearest centres are known.
func (a *assigner) addAssigned(s clusters, w *assignWork, b *rdd.Batch) clusters {
	half := 1.0
	if a.cosine {
		half = 0.5
	}
	for i, at := range w.at {
		weight := b.WeightOf(b.Rows[i])
		cost := float64(float64(half*w.squared[i]) * weight)
		s.Cost += cost
		s.CostSq = math.FMA(cost, cost, s.CostSq)
		s.N[at] += weight
	}
	a.addRows(s.Sum, w, b)
	return s
}

// addRows adds each row, times its weight and what it is scaled by, to the sum of its
// centre.
func (a *assigner) addRows(sums []float64, w *assignWork, b *rdd.Batch) {
	plain, d := !a.cosine && b.Weights == nil, b.Features
	switch {
	case plain && b.Dense() && b.X32 != nil:
		kernel.AddRows(sums, w.at, b.X32, b.Rows, d)
		return
	case plain && b.Dense():
		kernel.AddRows(sums, w.at, b.X64, b.Rows, d)
		return
	}
	for i, at := range w.at {
		times := b.WeightOf(b.Rows[i])
		if a.cosine {
			times = float64(w.scale[i] * times)
		}
		if times != 0 {
			addTimes(sums[int(at)*d:(int(at)+1)*d], times, b, int(b.Rows[i]))
		}
	}
}

// addTimes adds a row, times a factor, to a sum.
func addTimes(sum []float64, times float64, b *rdd.Batch, r int) {
	switch {
	case b.Dense() && b.X32 != nil:
		addDense(sum, times, b.X32[r*len(sum):(r+1)*len(sum)])
	case b.Dense():
		addDense(sum, times, b.X64[r*len(sum):(r+1)*len(sum)])
	case b.X32 != nil:
		addSparse(sum, times, b.Indices[b.Offsets[r]:b.Offsets[r+1]], b.X32[b.Offsets[r]:b.Offsets[r+1]])
	default:
		addSparse(sum, times, b.Indices[b.Offsets[r]:b.Offsets[r+1]], b.X64[b.Offsets[r]:b.Offsets[r+1]])
	}
}

func addDense[T kernel.Float](sum []float64, times float64, x []T) {
	for j, v := range x[:len(sum)] {
		sum[j] += float64(float64(v) * times)
	}
}

func addSparse[T kernel.Float](sum []float64, times float64, indices []int32, x []T) {
	for k, j := range indices {
		sum[j] += float64(float64(x[k]) * times)
	}
}
