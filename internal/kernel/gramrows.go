package kernel

import "math"

// GramSlack is how many numbers must follow the last row of a matrix that GramRows
// reads; they may be anything.
const GramSlack = 32

// GramRows adds Σ_k weight[k]·x_k·x_kᵀ to the upper triangle of a d×d matrix, x_k
// being row rows[k] of a matrix of d columns, which GramSlack numbers follow: a row
// after the other, entry (i, j) by one fused multiply-add of weight[k]·x_ki
// (rounded) and x_kj. A nil weight is all ones. For few rows that lie far apart;
// Gram copies them first.
func GramRows(h, weight, x []float64, rows []int32, d int) {
	_ = h[:d*d]
	if len(rows) == 0 || d == 0 {
		return
	}
	_ = x[:(int(maxRow(rows))+1)*d+GramSlack]
	tall, wide := tile()
	var c [8 * 24]float64
	for j := 0; j < d; j += wide {
		for i := 0; i < d && i <= j+wide-1; i += tall {
			high, cols := min(tall, d-i), min(wide, d-j)
			for r := range high {
				copy(c[r*wide:r*wide+cols], h[(i+r)*d+j:])
			}
			if !gramRowsVector(c[:], x[i:], x[j:], rows, d, weight) {
				gramRowsPlain(c[:], x[i:], x[j:], rows, d, weight, high, cols, wide)
			}
			for r := range high {
				copy(h[(i+r)*d+j:(i+r)*d+j+cols], c[r*wide:])
			}
		}
	}
}

// maxRow panics where a row is negative.
func maxRow(rows []int32) int32 {
	var top uint32
	for _, r := range rows {
		top = max(top, uint32(r))
	}
	if top > math.MaxInt32 {
		panic("kernel: a row has a negative number")
	}
	return int32(top)
}

func gramRowsPlain(c, left, right []float64, rows []int32, d int, weight []float64, high, cols, wide int) {
	for k, r := range rows {
		at := int(r) * d
		for i := range high {
			v := left[at+i]
			if weight != nil {
				v = float64(v * weight[k])
			}
			for j := range cols {
				c[i*wide+j] = math.FMA(v, right[at+j], c[i*wide+j])
			}
		}
	}
}
