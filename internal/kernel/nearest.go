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
	index   [24]float64
	squares [24]float64
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
	_, wide := tile()
	for from := 0; from < len(rows); from += wide {
		to := min(from+wide, len(rows))
		var by []float64
		if scale != nil {
			by = scale[from:to]
		}
		if !spreadVector(n, x, rows[from:to], wide, shift, by) {
			spread(n.rows, x, rows[from:to], n.d, wide, shift, by)
		}
		n.compare(wide)
		for i := range to - from {
			at[from+i] = int32(n.index[i])
			squared[from+i] = max(0, n.squares[i]+n.best[i])
		}
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

// compare finds the best centre of each lane.
func (n *Nearest) compare(wide int) {
	tall, _ := tile()
	for i := range wide {
		n.best[i], n.index[i], n.squares[i] = math.Inf(1), 0, 0
	}
	if !n.squaresVector(wide) {
		for j := range n.d {
			column := n.rows[j*wide : (j+1)*wide]
			for i, v := range column {
				n.squares[i] = math.FMA(v, v, n.squares[i])
			}
		}
	}
	for c := 0; c < len(n.norms); c += tall {
		if n.compareVector(c) {
			continue
		}
		for i := range tall {
			n.comparePlain(c, i, tall, wide)
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
		if v := math.FMA(-2, p, n.norms[c+i]); v < n.best[lane] {
			n.best[lane], n.index[lane] = v, float64(c+i)
		}
	}
}
