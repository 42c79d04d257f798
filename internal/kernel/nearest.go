package kernel

import "math"

// Nearest finds the nearest of some centres. Distances are squared Euclidean
// ones, as norm(x) + (norm(c) − 2·x·c): in x·c the columns are added one after the
// other by fused multiply-adds, in a norm as well; −2·x·c is fused with norm(c). Of
// equal distances the first centre's counts, and none is below 0. Not for use by
// several goroutines.
type Nearest struct {
	k, d    int
	centres []float64 // in panels of as many as a tile has rows, columns after columns
	norms   []float64
	numbers []float64 // 0, 1, 2, …
	rows    []float64 // a panel, rows in lanes
	zeros   []float64
	best    [24]float64
	second  [24]float64
	index   [24]float64
	squares [24]float64
	first   [24]int64 // where in centres the one of each lane begins
}

// Set gives the k centres, rows of d columns, minus shift (nil: nothing).
func (n *Nearest) Set(centres []float64, k, d int, shift []float64) {
	tall, wide := tile()
	tiles := (k + tall - 1) / tall
	n.k, n.d = k, d
	n.centres, n.rows = room(n.centres, tiles*tall*d), room(n.rows, wide*d)
	n.zeros = room(n.zeros, d)
	clear(n.zeros)
	n.norms, n.numbers = room(n.norms, tiles*tall), room(n.numbers, tiles*tall)
	clear(n.centres)
	for c := range n.norms {
		if n.norms[c], n.numbers[c] = math.Inf(1), float64(c); c >= k {
			continue
		}
		var norm float64
		panel := n.centres[c/tall*tall*d:]
		for j, v := range centres[c*d : (c+1)*d] {
			if shift != nil {
				v -= shift[j]
			}
			panel[j*tall+c%tall] = v
			norm = math.FMA(v, v, norm)
		}
		n.norms[c] = norm
	}
}

// FindNearest sets at[i] to the centre that is nearest to row rows[i] of x, minus
// shift (nil: nothing) and times scale[i] (nil: 1), and squared[i] to its squared
// distance. Lengths: all alike.
func FindNearest[T Float](n *Nearest, at []int32, squared []float64, x []T, rows []int32, shift, scale []float64) {
	FindNearestTwo(n, at, squared, nil, x, rows, shift, scale)
}

// FindNearestTwo does what FindNearest does, and also sets second[i] (unless nil) to
// the squared distance of the nearest of the other centres, infinite where there is
// none.
func FindNearestTwo[T Float](n *Nearest, at []int32, squared, second []float64, x []T, rows []int32, shift,
	scale []float64) {
	_, wide := tile()
	for from := 0; from < len(rows); from += wide {
		to := min(from+wide, len(rows))
		fill(n, x, rows, from, to, shift, scale)
		n.compare(wide, second != nil)
		for i := range to - from {
			at[from+i] = int32(n.index[i])
			squared[from+i] = max(0, n.squares[i]+n.best[i])
			if second != nil {
				second[from+i] = max(0, n.squares[i]+n.second[i])
			}
		}
	}
}

// FindDistances sets squared[i] to what FindNearest would if centre at[i] were the
// nearest to row rows[i] of x.
func FindDistances[T Float](n *Nearest, at []int32, squared []float64, x []T, rows []int32, shift, scale []float64) {
	tall, wide := tile()
	for from := 0; from < len(rows); from += wide {
		to := min(from+wide, len(rows))
		fill(n, x, rows, from, to, shift, scale)
		n.square(wide)
		for i := range n.first[:wide] {
			c := 0
			if i < to-from {
				c = int(at[from+i])
			}
			n.first[i] = int64(c/tall*tall*n.d + c%tall)
		}
		n.multiply(tall, wide)
		for i := range to - from {
			squared[from+i] = max(0, n.squares[i]+math.FMA(-2, n.best[i], n.norms[at[from+i]]))
		}
	}
}

// fill lays some rows out in lanes.
func fill[T Float](n *Nearest, x []T, rows []int32, from, to int, shift, scale []float64) {
	_, wide := tile()
	var by []float64
	if scale != nil {
		by = scale[from:to]
	}
	if !spreadVector(n, x, rows[from:to], wide, shift, by) {
		spread(n.rows, x, rows[from:to], n.d, wide, shift, by)
	}
}

// spread lays rows out in lanes, one column after the other; lanes without a row
// keep what is in them.
func spread[T Float](out []float64, x []T, rows []int32, d, wide int, shift, scale []float64) {
	for i, r := range rows {
		row := x[int(r)*d : int(r)*d+d]
		lane := out[i:]
		switch {
		case scale != nil:
			for j, v := range row {
				lane[j*wide] = float64(float64(v) * scale[i])
			}
		case shift != nil:
			for j, v := range row {
				lane[j*wide] = float64(v) - shift[j]
			}
		default:
			for j, v := range row {
				lane[j*wide] = float64(v)
			}
		}
	}
}

// compare finds the best centre of each lane, and how good the second best is.
func (n *Nearest) compare(wide int, two bool) {
	tall, _ := tile()
	for i := range wide {
		n.best[i], n.second[i], n.index[i] = math.Inf(1), math.Inf(1), 0
	}
	n.square(wide)
	for c := 0; c < len(n.norms); c += tall {
		if n.compareVector(c, two) {
			continue
		}
		for i := range tall {
			n.comparePlain(c, i, tall, wide)
		}
	}
}

// square sums the squares of each lane.
func (n *Nearest) square(wide int) {
	clear(n.squares[:wide])
	if n.squaresVector(wide) {
		return
	}
	for j := range n.d {
		for i, v := range n.rows[j*wide : (j+1)*wide] {
			n.squares[i] = math.FMA(v, v, n.squares[i])
		}
	}
}

// multiply makes best the product of each lane with the centre that begins at first.
func (n *Nearest) multiply(tall, wide int) {
	if n.multiplyVector() {
		return
	}
	clear(n.best[:wide])
	for j := range n.d {
		for i, v := range n.rows[j*wide : (j+1)*wide] {
			n.best[i] = math.FMA(n.centres[int(n.first[i])+j*tall], v, n.best[i])
		}
	}
}

func (n *Nearest) comparePlain(c, i, tall, wide int) {
	panel := n.centres[c*n.d:]
	for lane := range wide {
		var p float64
		for j := range n.d {
			p = math.FMA(panel[j*tall+i], n.rows[j*wide+lane], p)
		}
		v := math.FMA(-2, p, n.norms[c+i])
		n.second[lane] = min(n.second[lane], max(n.best[lane], v))
		if v < n.best[lane] {
			n.best[lane], n.index[lane] = v, float64(c+i)
		}
	}
}

// AddRows adds rows[i] of x to row at[i] of sums, which have d columns like those of x:
// one row after the other.
func AddRows[T Float](sums []float64, at []int32, x []T, rows []int32, d int) {
	if addRowsVector(sums, at, x, rows, d) {
		return
	}
	for i, r := range rows {
		sum := sums[int(at[i])*d : (int(at[i])+1)*d]
		for j, v := range x[int(r)*d : (int(r)+1)*d] {
			sum[j] += float64(v)
		}
	}
}
