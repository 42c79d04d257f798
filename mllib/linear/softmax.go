package linear

import (
	"sync"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
)

// Models of several classes: a weight for each feature and class, of which row
// j of a matrix has those of feature j, and an intercept for each class. The loss of a
// row with margins m = x·W + b is log Σ_k e^{m_k} − m_y, a multinomial logistic regression, or that of a support vector
// machine for each class against the rest.

// softmaxParam is the parameter of a pass: weights on the scale of the data, and the
// label that each class has in the data.
type softmaxParam struct {
	K, D   int
	W      []float64 // D × K
	Bias   []float64
	Labels []float64
	Counts []float64 // how much a row of each class counts; nil is ones
}

// MarshalBinary lays the parameter out as floats.
func (p softmaxParam) MarshalBinary() ([]byte, error) {
	out := make([]byte, 0, 8*(len(p.W)+3*p.K+3))
	return num.PutFloats(out, []float64{float64(p.K), float64(p.D), float64(len(p.Counts))}, p.Bias, p.Labels, p.Counts,
		p.W), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (p *softmaxParam) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, 3)
	if err != nil {
		return err
	}
	p.K, p.D = int(v[0]), int(v[1])
	counts := int(v[2])
	if v = v[3:]; p.K < 0 || p.D < 0 || counts != 0 && counts != p.K || len(v) != 2*p.K+counts+p.K*p.D {
		return num.ErrCutShort
	}
	if p.Bias, p.Labels, v = v[:p.K], v[p.K:2*p.K], v[2*p.K:]; counts > 0 {
		p.Counts = v[:counts]
	}
	p.W = v[counts:]
	return nil
}

// softmaxFold folds rows. It is used by several goroutines.
type softmaxFold struct {
	rest bool      // by the squared hinge of each class against the rest
	pool sync.Pool // of *softmaxWork
}

// softmaxWork is what a softmaxFold keeps from one batch to the next.
type softmaxWork struct {
	products kernel.Product
	x        []float64 // rows of the block, dense
	z        []float64 // margins, then derivatives
}

// aggregator folds rows into their loss, and, if that is wanted, its derivatives.
func (f *softmaxFold) aggregator(derivatives bool) rdd.Aggregator[softmaxParam, rdd.Point, fold.ClassSums] {
	return rdd.Aggregator[softmaxParam, rdd.Point, fold.ClassSums]{
		Zero: func(p softmaxParam) fold.ClassSums {
			if !derivatives {
				return fold.ClassSums{}
			}
			return fold.ClassSums{Coef: make([]float64, p.K), Sum: make([]float64, p.K*p.D)}
		},
		AddBatch: f.add,
		Merge:    fold.MergeClasses,
		Scale:    fold.ScaleClasses,
		Close:    func(a fold.ClassSums, _ softmaxParam, rows float64) fold.ClassSums { return a.Close(rows) },
		Weighted: true,
	}
}

func (f *softmaxFold) add(s fold.ClassSums, p softmaxParam, b *rdd.Batch) fold.ClassSums {
	w, _ := f.pool.Get().(*softmaxWork)
	if w == nil {
		w = &softmaxWork{}
	}
	defer f.pool.Put(w)
	class := p.classes()
	for from := 0; from < len(b.Rows); from += fold.BlockRows {
		rows := b.Rows[from:min(from+fold.BlockRows, len(b.Rows))]
		w.margins(&p, b, rows)
		w.derive(&s, &p, b, rows, class, f.rest)
		if s.Sum != nil {
			w.accumulate(s.Sum, &p, b, rows)
		}
	}
	return s
}

// classes returns the class of each label.
func (p *softmaxParam) classes() map[float64]int {
	class := make(map[float64]int, p.K)
	for k, l := range p.Labels {
		class[l] = k
	}
	return class
}

// derive turns the margins of a block of rows into derivatives, by weight, and adds their losses.
func (w *softmaxWork) derive(s *fold.ClassSums, p *softmaxParam, b *rdd.Batch, rows []int32, class map[float64]int,
	rest bool) {
	for i, r := range rows {
		k, known := class[b.Labels[r]]
		weight := b.WeightOf(r)
		if !known {
			k = -1 // a label of another class weighs nothing
		} else if p.Counts != nil {
			weight *= p.Counts[k]
		}
		if z := w.z[i*p.K : (i+1)*p.K]; rest {
			s.TakeRest(z, k, weight)
		} else {
			s.Take(z, k, weight)
		}
	}
}

// margins computes those of a block of rows.
func (w *softmaxWork) margins(p *softmaxParam, b *rdd.Batch, rows []int32) {
	n := len(rows)
	if cap(w.z) < fold.BlockRows*p.K {
		w.z = make([]float64, fold.BlockRows*p.K)
	}
	w.z = w.z[:n*p.K]
	for i := range n {
		copy(w.z[i*p.K:], p.Bias)
	}
	if !b.Dense() {
		for i, r := range rows {
			z := w.z[i*p.K : (i+1)*p.K]
			for at := b.Offsets[r]; at < b.Offsets[r+1]; at++ {
				j := int(b.Indices[at])
				kernel.Axpy(fold.ValueAt(b, int(at)), p.W[j*p.K:(j+1)*p.K], z)
			}
		}
		return
	}
	w.take(p, b, rows)
	w.products.Add(kernel.RowMajor(w.z, n, p.K), kernel.RowMajor(w.x, n, p.D), kernel.RowMajor(p.W, p.D, p.K))
}

// take copies the rows of a block, where they are dense.
func (w *softmaxWork) take(p *softmaxParam, b *rdd.Batch, rows []int32) {
	if !b.Dense() {
		return
	}
	if cap(w.x) < fold.BlockRows*p.D {
		w.x = make([]float64, fold.BlockRows*p.D)
	}
	w.x = w.x[:len(rows)*p.D]
	for i, r := range rows {
		for j := range p.D {
			w.x[i*p.D+j] = fold.ValueAt(b, int(r)*p.D+j)
		}
	}
}

// accumulate adds the derivatives by weight of a block of rows.
func (w *softmaxWork) accumulate(sum []float64, p *softmaxParam, b *rdd.Batch, rows []int32) {
	n := len(rows)
	if b.Dense() {
		x := kernel.RowMajor(w.x, n, p.D)
		w.products.Add(kernel.RowMajor(sum, p.D, p.K), x.T(), kernel.RowMajor(w.z, n, p.K))
		return
	}
	for i, r := range rows {
		z := w.z[i*p.K : (i+1)*p.K]
		for at := b.Offsets[r]; at < b.Offsets[r+1]; at++ {
			j := int(b.Indices[at])
			kernel.Axpy(fold.ValueAt(b, int(at)), z, sum[j*p.K:(j+1)*p.K])
		}
	}
}

// SoftmaxPlan is the plan of a multinomial logistic regression.
type SoftmaxPlan struct {
	Rows     rdd.Packed[rdd.Point]
	Moments  rdd.Step[fold.MomentsParam, fold.Gradient]
	Gradient rdd.Step[softmaxParam, fold.ClassSums]
	Pairs    rdd.Step[pairOf[softmaxParam], pairOf[fold.ClassSums]]
	Loss     rdd.Step[softmaxParam, fold.ClassSums]
	Held     rdd.Packed[rdd.Point] // rows held out to stop by, if any
	HeldLoss rdd.Step[softmaxParam, fold.ClassSums]
	Counts   rdd.Step[softmaxParam, fold.ClassSums]
	Sample   rdd.Action[[]rdd.Point]
	bounded  *boundedPlan // nil where steps train
}

// BuildSoftmax declares the plan.
func BuildSoftmax(g *rdd.Graph, c Config) SoftmaxPlan {
	rows := c.packing().Rows(g)
	f := &softmaxFold{rest: c.Loss == OneVsRest}
	p := SoftmaxPlan{
		Rows:     rows,
		Moments:  rdd.Aggregate(rows, fold.MomentsAggregator(c.regression())),
		Gradient: rdd.Aggregate(rows, f.aggregator(true), rdd.Aggressive(0)),
		Pairs:    rdd.Aggregate(rows, pairsOf(f.aggregator(true)), rdd.Aggressive(0)),
		Loss:     rdd.Aggregate(rows, f.aggregator(false)),
		Counts:   rdd.Aggregate(rows, f.counts()),
		Sample:   rdd.Prefix(rows, train.SampleRows),
	}
	if c.Bounded != nil {
		p.bounded = declareBounded(g, rows, c.Bounded,
			func(q *boundedParam) rowModel { return newClassRows(q, f.rest) })
	}
	if held, any := c.packing().HeldOut(g); any {
		p.Held, p.HeldLoss = held, rdd.Aggregate(held, f.aggregator(false))
	}
	return p
}
