package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestExpNegAndLog1pAgainstTheLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		x := -rng.Float64() * 50
		if got, want := ExpNeg(x), math.Exp(x); math.Abs(got-want) > 4e-16*want {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
		u := rng.Float64()
		if got, want := Log1p(u), math.Log1p(u); math.Abs(got-want) > 1e-15*want {
			t.Fatalf("log1p(%v) = %v, want %v", u, got, want)
		}
		v := math.Exp(rng.Float64()*80 - 40)
		if got, want := Log(v), math.Log(v); math.Abs(got-want) > 1e-15*(1+math.Abs(want)) {
			t.Fatalf("log(%v) = %v, want %v", v, got, want)
		}
	}
}

func TestLogisticAtTheEdges(t *testing.T) {
	for _, z := range []float64{0, 1e-300, -1e-300, 40, -40, 800, -800, 1e6, -1e6} {
		coef, loss := logisticPlain(z, 1)
		wantLoss := math.Max(-z, 0) + math.Log1p(math.Exp(-math.Abs(z)))
		if math.Abs(loss-wantLoss) > 1e-15*(1+wantLoss) {
			t.Errorf("loss(%v) = %v, want %v", z, loss, wantLoss)
		}
		if coef < -1 || coef > 0 {
			t.Errorf("coef(%v) = %v", z, coef)
		}
	}
	if c, l := logisticPlain(math.NaN(), 0); !math.IsNaN(c) || !math.IsNaN(l) {
		t.Error("NaN must stay NaN")
	}
}

// data makes a matrix, a vector and some rows of it in no order.
func data[T Float](rng *rand.Rand, n, d int) (x []T, w []float64, rows []int32) {
	x, w = make([]T, n*d), make([]float64, d)
	for i := range x {
		x[i] = T(rng.NormFloat64())
	}
	for j := range w {
		w[j] = rng.NormFloat64()
	}
	for range n {
		rows = append(rows, int32(rng.IntN(n)))
	}
	return x, w, rows
}

func sameBits(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			t.Fatalf("%s: entry %d is %v, want %v (by bits)", what, i, got[i], want[i])
		}
	}
}

func checkDense[T Float](t *testing.T, rng *rand.Rand, n, d int) {
	x, w, rows := data[T](rng, n, d)
	z, want := make([]float64, n), make([]float64, n)
	Dots(z, w, x, rows)
	dotsPlain(want, w, x, rows)
	sameBits(t, "dots", z, want)
	sum, wantSum := append([]float64(nil), w...), append([]float64(nil), w...)
	Accumulate(sum, z, x, rows)
	accumulatePlain(wantSum, z, x, rows)
	sameBits(t, "accumulate", sum, wantSum)
	checkGradient(t, rng, x, w, rows)
	for i, r := range rows { // a naive loop within rounding
		var naive, scale float64
		for j := range w {
			naive += w[j] * float64(x[int(r)*d+j])
			scale += math.Abs(w[j] * float64(x[int(r)*d+j]))
		}
		if math.Abs(naive-z[i]) > 1e-15*float64(d+1)*scale {
			t.Fatalf("dots: row %d is %v, naive %v", i, z[i], naive)
		}
	}
}

func TestEveryPathGivesTheBitsOfTheDefinition(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 4))
		for _, d := range []int{1, 2, 3, 4, 5, 7, 8, 9, 13, 28, 31, 32, 33, 64, 100, 123, 250} {
			for _, n := range []int{1, 3, 4, 5, 31, 70} {
				checkDense[float64](t, rng, n, d)
				checkDense[float32](t, rng, n, d)
			}
		}
		checkLogistic(t, rng)
		checkSparse[float64](t, rng)
		checkSparse[float32](t, rng)
	})
}

// checkSparse holds rows of 0 to 9 nonzeros against the plain code.
func checkSparse[T Float](t *testing.T, rng *rand.Rand) {
	const n, d = 150, 40
	m := Sparse[T]{Offsets: []int32{0}}
	for r := range n {
		column := int32(0)
		for range r % 10 {
			column += int32(1 + rng.IntN(4))
			m.Indices, m.Values = append(m.Indices, column-1), append(m.Values, T(rng.NormFloat64()))
		}
		m.Offsets = append(m.Offsets, int32(len(m.Indices)))
	}
	_, w, rows := data[float64](rng, n, d)
	y := make([]float64, n)
	for i := range y {
		y[i] = float64(rng.IntN(2))
	}
	run := func(p string) (sum, z []float64, acc Losses) {
		machine := path
		defer func() { path = machine }()
		path = p
		sum, z = append([]float64(nil), w...), make([]float64, n)
		SparseDots(z, w, m, rows)
		SparseGradient(&acc, Loss{}, sum, w, 0.25, m, rows, y)
		return sum, z, acc
	}
	sum, z, acc := run(path)
	wantSum, wantZ, wantAcc := run("go")
	sameBits(t, "sparse dots", z, wantZ)
	sameBits(t, "sparse gradient", sum, wantSum)
	sameLosses(t, &acc, &wantAcc)
}

func checkLogistic(t *testing.T, rng *rand.Rand) {
	var z, y []float64
	for i := range 10_003 {
		z = append(z, rng.NormFloat64()*math.Pow(10, float64(i%7)-3))
		y = append(y, float64(rng.IntN(2)))
	}
	z = append(z, 0, math.Copysign(0, -1), 1e300, -1e300, 708, -708, 709, -745, 5e-324)
	y = append(y, 0, 1, 0, 1, 0, 1, 0, 1, 0)
	coef, loss := make([]float64, len(z)), make([]float64, len(z))
	wantC, wantL := make([]float64, len(z)), make([]float64, len(z))
	Logistic(coef, loss, z, 0.5, y)
	for i := range z {
		wantC[i], wantL[i] = logisticPlain(z[i]+0.5, y[i])
	}
	sameBits(t, "coef", coef, wantC)
	sameBits(t, "loss", loss, wantL)
}

// row adds one row by the definition and returns its derivative.
func (l *Losses) row(margin, y float64) float64 {
	c, loss := logisticPlain(margin, y)
	l.Loss += loss
	l.Squares += float64(loss * loss)
	l.Coef += c
	return c
}

func sameLosses(t *testing.T, got, want *Losses) {
	t.Helper()
	sameBits(t, "sums", []float64{got.Loss, got.Squares, got.Coef}, []float64{want.Loss, want.Squares, want.Coef})
}

func TestSparseAgainstDense(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const n, d = 50, 40
	m := Sparse[float64]{Offsets: []int32{0}}
	dense := make([]float64, n*d)
	for r := range n {
		for j := range d {
			if rng.IntN(3) == 0 {
				v := rng.NormFloat64()
				dense[r*d+j] = v
				m.Indices, m.Values = append(m.Indices, int32(j)), append(m.Values, v)
			}
		}
		m.Offsets = append(m.Offsets, int32(len(m.Indices)))
	}
	_, w, rows := data[float64](rng, n, d)
	z, want := make([]float64, n), make([]float64, n)
	SparseDots(z, w, m, rows)
	Dots(want, w, dense, rows)
	for i := range z {
		if math.Abs(z[i]-want[i]) > 1e-13 {
			t.Fatalf("row %d: %v, dense %v", i, z[i], want[i])
		}
	}
	sum, wantSum := make([]float64, d), make([]float64, d)
	SparseAccumulate(sum, z, m, rows)
	Accumulate(wantSum, z, dense, rows)
	for j := range sum {
		if math.Abs(sum[j]-wantSum[j]) > 1e-12 {
			t.Fatalf("column %d: %v, dense %v", j, sum[j], wantSum[j])
		}
	}
}

// checkGradient holds the pipelined gradient against its parts, one after the
// other.
func checkGradient[T Float](t *testing.T, rng *rand.Rand, x []T, w []float64, rows []int32) {
	n := len(rows)
	y := make([]float64, n)
	for i := range y {
		y[i] = float64(rng.IntN(2))
	}
	sum, want := append([]float64(nil), w...), append([]float64(nil), w...)
	z, coef := make([]float64, n), make([]float64, n)
	var acc, wantAcc Losses
	Gradient(&acc, Loss{}, sum, w, 0.25, x, rows, y)
	dotsPlain(z, w, x, rows)
	for i := range z {
		coef[i] = wantAcc.row(z[i]+0.25, y[i])
	}
	accumulatePlain(want, coef, x, rows)
	sameBits(t, "gradient", sum, want)
	sameLosses(t, &acc, &wantAcc)
}
