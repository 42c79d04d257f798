package kernel

import "math"

// Float is the storage type of a matrix; arithmetic is always in float64.
type Float interface{ float32 | float64 }

// lanes is how many partial sums a dense dot product is spread over: column
// j belongs to lane j mod 8. Columns are padded with zeros to a whole number
// of lanes, as the vector code does with masks.
const lanes = 8

// Dots computes z[i] = w · x[rows[i]] for a row-major matrix x with len(w)
// columns. Lengths: z and rows alike; every row index within x.
func Dots[T Float](z, w []float64, x []T, rows []int32) {
	if !dotsVector(z, w, x, rows) {
		dotsPlain(z, w, x, rows)
	}
}

// Accumulate adds Σ_i coef[i] · x[rows[i]] to sum, one row after the other in
// the order of rows, each column by one fused multiply-add a row.
func Accumulate[T Float](sum, coef []float64, x []T, rows []int32) {
	if !accumulateVector(sum, coef, x, rows) {
		accumulatePlain(sum, coef, x, rows)
	}
}

func dotsPlain[T Float](z, w []float64, x []T, rows []int32) {
	d := len(w)
	for i, r := range rows {
		z[i] = dotPlain(w, x[int(r)*d:int(r)*d+d])
	}
}

// dotPlain returns the definition of a dense dot product.
func dotPlain[T Float](w []float64, x []T) float64 {
	var acc [lanes]float64
	whole := len(w) &^ (lanes - 1)
	for j := 0; j < whole; j += lanes {
		w8, x8 := w[j:j+lanes:j+lanes], x[j:j+lanes:j+lanes]
		for k := range acc {
			acc[k] = math.FMA(w8[k], float64(x8[k]), acc[k])
		}
	}
	if whole < len(w) {
		for k := range acc {
			var a, b float64
			if whole+k < len(w) {
				a, b = w[whole+k], float64(x[whole+k])
			}
			acc[k] = math.FMA(a, b, acc[k])
		}
	}
	return combineLanes(&acc)
}

// combineLanes halves the lanes until one is left: k with k+4, +2, +1.
func combineLanes(a *[lanes]float64) float64 {
	b0, b1, b2, b3 := a[0]+a[4], a[1]+a[5], a[2]+a[6], a[3]+a[7]
	return (b0 + b2) + (b1 + b3)
}

func accumulatePlain[T Float](sum, coef []float64, x []T, rows []int32) {
	d := len(sum)
	for i, r := range rows {
		c, row := coef[i], x[int(r)*d:int(r)*d+d]
		for j := range sum {
			sum[j] = math.FMA(c, float64(row[j]), sum[j])
		}
	}
}

// Axpy adds a·x to y, fused.
func Axpy(a float64, x, y []float64) {
	y = y[:len(x)]
	for j, v := range x {
		y[j] = math.FMA(a, v, y[j])
	}
}

// Add adds x to y.
func Add(x, y []float64) {
	y = y[:len(x)]
	for j, v := range x {
		y[j] += v
	}
}

// Scale multiplies x by a.
func Scale(a float64, x []float64) {
	for j := range x {
		x[j] *= a
	}
}

// Dot returns the dense dot product of two float64 vectors of equal length.
func Dot(x, y []float64) float64 { return dotPlain(x, y) }

// Match sets y[i] to 1 where labels[rows[i]] is the wanted one, else to 0,
// without a branch: labels come in no order that a CPU could guess.
func Match(y, labels []float64, rows []int32, wanted float64) {
	y = y[:len(rows)]
	for i, r := range rows {
		var one uint64
		if labels[r] == wanted {
			one = 0x3ff0000000000000
		}
		y[i] = math.Float64frombits(one)
	}
}

func readPlain(x []float64) float64 {
	var s float64
	for _, v := range x {
		s += v
	}
	return s
}
