package synth

import "math"

// Law generates rows, in blocks that can be made in any order.
type Law interface {
	// Columns are the names of the columns; the first is "label" where rows have one.
	Columns() []string
	// Blocks returns how many blocks there are.
	Blocks() int
	// block makes a block.
	block(k int) *block
}

// labelled returns the columns of rows of d features with a label.
func labelled(d int) []string { return append([]string{"label"}, features(d)...) }

// byRows makes blocks of laws whose rows do not depend on each other.
func byRows(k int, rows int64, d int, row func(i int64, x []float64) float64) *block {
	first := int64(k) * blockRows
	n := int(min(blockRows, rows-first))
	b := &block{labels: make([]float64, n), x: make([]float64, n*d)}
	for i := range n {
		b.labels[i] = row(first+int64(i), b.x[i*d:(i+1)*d])
	}
	return b
}

func blocksOf(rows int64) int { return int((rows + blockRows - 1) / blockRows) }

// Logistic is the law of SparkBench's logistic regression data: row i is
// drawn from Random(42+i); its label is i mod 2, and each feature is standard
// normal plus label·eps.
type Logistic struct {
	Rows     int64
	Features int
	Eps      float64
}

// rowSeed is added to the row's number.
const rowSeed = 42

// Columns returns label and features.
func (l Logistic) Columns() []string { return labelled(l.Features) }

// Blocks returns how many blocks there are.
func (l Logistic) Blocks() int { return blocksOf(l.Rows) }

func (l Logistic) block(k int) *block { return byRows(k, l.Rows, l.Features, l.Row) }

// Row fills x with row i and returns its label.
func (l Logistic) Row(i int64, x []float64) (label float64) {
	r := NewRandom(rowSeed + i)
	label = float64(i % 2)
	shift := float64(label * l.Eps)
	for j := range x {
		x[j] = r.NextGaussian() + shift
	}
	return label
}

// Sparse is the law of Logistic in which a feature is 0 but with a probability: the density of the row's part, one of
// 1, 2, 5 and 10 % by Random(42+part).
type Sparse struct {
	Rows     int64
	Features int
	Parts    int
	Eps      float64
}

var densities = []float64{0.01, 0.02, 0.05, 0.10}

// Columns returns label and features.
func (l Sparse) Columns() []string { return labelled(l.Features) }

// Blocks returns how many blocks there are.
func (l Sparse) Blocks() int { return blocksOf(l.Rows) }

func (l Sparse) block(k int) *block { return byRows(k, l.Rows, l.Features, l.row) }

func (l Sparse) row(i int64, x []float64) (label float64) {
	part := i / ((l.Rows + int64(l.Parts) - 1) / int64(l.Parts))
	density := densities[int(NewRandom(rowSeed+part).NextDouble()*float64(len(densities)))]
	r := NewRandom(rowSeed + i)
	label = float64(i % 2)
	shift := float64(label * l.Eps)
	for j := range x {
		if r.NextDouble() < density {
			x[j] = r.NextGaussian() + shift
		}
	}
	return label
}

// Classes is the law of KMeans with the number of a point's centre for its label.
type Classes struct{ KMeans }

// Columns returns label and features.
func (l Classes) Columns() []string { return labelled(l.Features) }

func (l Classes) block(k int) *block {
	b := l.KMeans.block(k)
	for i := range b.labels {
		b.labels[i] = float64((int64(k)*blockRows + int64(i)) % int64(l.K))
	}
	return b
}

// SVM is the law of MLlib's SVM data generator: a plane of normal weights drawn from
// Random(94720); row i is drawn from Random(42+i), its features uniform in [−1, 1),
// its label 1 where x·w + 0.1·N(0, 1) is not negative.
type SVM struct {
	Rows     int64
	Features int
	plane    []float64
}

// NewSVM draws the plane.
func NewSVM(rows int64, features int) SVM {
	r, w := NewRandom(94720), make([]float64, features)
	for j := range w {
		w[j] = r.NextGaussian()
	}
	return SVM{rows, features, w}
}

// Columns returns label and features.
func (l SVM) Columns() []string { return labelled(l.Features) }

// Blocks returns how many blocks there are.
func (l SVM) Blocks() int { return blocksOf(l.Rows) }

func (l SVM) block(k int) *block {
	return byRows(k, l.Rows, l.Features, func(i int64, x []float64) float64 {
		r := NewRandom(rowSeed + i)
		for j := range x {
			x[j] = float64(r.NextDouble()*2) - 1
		}
		if dot(x, l.plane)+float64(r.NextGaussian()*0.1) < 0 {
			return 0
		}
		return 1
	})
}

// dot returns the sum of products, rounded one after the other, as Java has it.
func dot(x, y []float64) (s float64) {
	for j, v := range x {
		s += float64(v * y[j])
	}
	return s
}

// Linear is the law of MLlib's linear data generator: weights uniform in [−½, ½) of
// Random(42); part p has Rows/Parts rows drawn from Random(42+p), their features
// uniform in [−1, 1), the label x·w + Intercept + Eps·N(0, 1).
type Linear struct {
	Rows           int64
	Features       int
	Parts          int
	Eps, Intercept float64
	weights        []float64
}

// NewLinear draws the weights.
func NewLinear(rows int64, features, parts int, eps, intercept float64) Linear {
	r, w := NewRandom(42), make([]float64, features)
	for j := range w {
		w[j] = r.NextDouble() - 0.5
	}
	return Linear{rows, features, parts, eps, intercept, w}
}

// Columns returns label and features.
func (l Linear) Columns() []string { return labelled(l.Features) }

// Blocks returns how many blocks there are: one a part.
func (l Linear) Blocks() int { return l.Parts }

func (l Linear) block(k int) *block {
	n, d := int(l.Rows/int64(l.Parts)), l.Features
	if int64(k) < l.Rows%int64(l.Parts) {
		n++ // what does not divide goes to the first parts
	}
	b, r := &block{labels: make([]float64, n), x: make([]float64, n*d)}, NewRandom(rowSeed+int64(k))
	for i := range n {
		x := b.x[i*d : (i+1)*d]
		for j := range x {
			x[j] = float64((r.NextDouble() - 0.5) * 2)
		}
		b.labels[i] = dot(l.weights, x) + l.Intercept + float64(l.Eps*r.NextGaussian())
	}
	return b
}

// KMeans is the law of MLlib's k-means data generator: K centres of normal numbers
// times R drawn from Random(42); point i lies about centre i mod K, by standard normal
// numbers of Random(42+i).
type KMeans struct {
	Rows        int64
	Features, K int
	R           float64
	centres     [][]float64
}

// NewKMeans draws the centres.
func NewKMeans(rows int64, features, k int, r float64) KMeans {
	rng, centres := NewRandom(42), make([][]float64, k)
	for c := range centres {
		for range features {
			centres[c] = append(centres[c], float64(rng.NextGaussian()*r))
		}
	}
	return KMeans{rows, features, k, r, centres}
}

// Columns returns the features.
func (l KMeans) Columns() []string { return features(l.Features) }

// Blocks returns how many blocks there are.
func (l KMeans) Blocks() int { return blocksOf(l.Rows) }

func (l KMeans) block(k int) *block {
	return byRows(k, l.Rows, l.Features, func(i int64, x []float64) float64 {
		r, c := NewRandom(rowSeed+i), l.centres[i%int64(l.K)]
		for j := range x {
			x[j] = c[j] + r.NextGaussian()
		}
		return 0
	})
}

// Ratings are some cells of a product A·B of normal factors, scaled so that cells
// have variance 1, plus Noise·N(0, 1). Row u of A is drawn from Random(42+u), column
// i of B from Random(2³²+i), the noise of a cell from its number. Which cells there
// are is decided by a permutation of all cell numbers, which have 64 bits.
type Ratings struct {
	Rows         int64 // cells
	Users, Items int64
	Rank         int
	Noise        float64
}

// Columns returns user, item and rating, numbered from 1.
func (l Ratings) Columns() []string { return []string{"user", "item", "rating"} }

// Blocks returns how many blocks there are.
func (l Ratings) Blocks() int { return blocksOf(l.Rows) }

func (l Ratings) block(k int) *block {
	scale := 1 / math.Sqrt(math.Sqrt(float64(l.Rank)))
	a, b := make([]float64, l.Rank), make([]float64, l.Rank)
	return byRows(k, l.Rows, 3, func(i int64, x []float64) float64 {
		cell := l.cell(uint64(i))
		u, v := int64(cell)/l.Items, int64(cell)%l.Items
		l.vector(a, rowSeed+u, scale)
		l.vector(b, 1<<32+v, scale)
		x[0], x[1] = float64(u+1), float64(v+1)
		x[2] = dot(a, b) + float64(l.Noise*NewRandom(int64(scatter(cell))).NextGaussian())
		return 0
	})
}

func (l Ratings) vector(x []float64, seed int64, scale float64) {
	r := NewRandom(seed)
	for j := range x {
		x[j] = float64(r.NextGaussian() * scale)
	}
}

// cell returns the i-th cell of the permutation: four rounds of a Feistel network
// over the least even number of bits that cells need, again and again until the
// number is one of a cell.
func (l Ratings) cell(i uint64) uint64 {
	total, half := uint64(l.Users)*uint64(l.Items), uint(1)
	for half < 32 && uint64(1)<<(2*half) < total {
		half++
	}
	mask := uint64(1)<<half - 1
	for {
		left, right := i>>half, i&mask
		for round := range uint64(4) {
			left, right = right, left^(scatter(right+round<<32)&mask)
		}
		if i = left<<half | right; i < total {
			return i
		}
	}
}

// scatter spreads the bits of x (the finalizer of SplitMix64).
func scatter(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
