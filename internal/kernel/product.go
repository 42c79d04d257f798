package kernel

import "math"

// Matrix is a view of numbers: entry (i, j) is Data[i·RowStep + j·ColStep].
type Matrix struct {
	Data             []float64
	Rows, Cols       int
	RowStep, ColStep int
}

// RowMajor returns a matrix whose rows lie one after the other.
func RowMajor(data []float64, rows, cols int) Matrix {
	return Matrix{Data: data, Rows: rows, Cols: cols, RowStep: cols, ColStep: 1}
}

// T returns the transposed view of the same numbers.
func (m Matrix) T() Matrix {
	return Matrix{Data: m.Data, Rows: m.Cols, Cols: m.Rows, RowStep: m.ColStep, ColStep: m.RowStep}
}

// depth is how many terms of a sum are added between two times that an entry
// of the result is loaded and stored.
const depth = 256

// Product is the workspace of matrix products: it grows to what they need and
// is kept from one to the next. Not for use by several goroutines.
type Product struct {
	left, right []float64 // packed by panels
	edge        [8 * 24]float64
}

// Add computes C += A·B. Shapes: A m×k, B k×n, C m×n with rows that lie in one
// piece (ColStep 1). Entry (i, j) is one fused multiply-add a term, in the order
// of k.
func (p *Product) Add(c, a, b Matrix) { p.add(c, a, b, false) }

// AddUpper does what Add does for a square C, of which only the entries on and
// above the diagonal are computed; those below may hold anything.
func (p *Product) AddUpper(c, a, b Matrix) { p.add(c, a, b, true) }

func (p *Product) add(c, a, b Matrix, upper bool) {
	if c.Rows == 0 || c.Cols == 0 || a.Cols == 0 {
		return
	}
	_ = c.Data[(c.Rows-1)*c.RowStep+c.Cols-1]
	tall, wide := tile()
	for from := 0; from < a.Cols; from += depth {
		k := min(depth, a.Cols-from)
		p.left = pack(p.left, a.T(), from, k, tall)
		p.right = pack(p.right, b, from, k, wide)
		for j := 0; j < c.Cols; j += wide {
			for i := 0; i < c.Rows && !(upper && i > j+wide-1); i += tall {
				p.tile(c, i, j, p.left[i*k:], tall, p.right[j*k:], k)
			}
		}
	}
}

// pack lays k rows of a matrix out in panels of a number of columns, each panel's
// rows one after the other; columns beyond the matrix are zeros.
func pack(out []float64, m Matrix, from, k, width int) []float64 {
	out = room(out, (m.Cols+width-1)/width*width*k)
	for j := 0; j < m.Cols; j += width {
		n := min(width, m.Cols-j)
		panel := out[j*k : (j+width)*k]
		for r := range k {
			packRow(panel[r*width:(r+1)*width], m, from+r, j, n)
		}
	}
	return out
}

// room returns a slice of n numbers, in the memory of the old one where it is enough.
func room(old []float64, n int) []float64 {
	if cap(old) < n {
		return make([]float64, n)
	}
	return old[:n]
}

// packRow copies n entries of row r from column j on, and zeros after them.
func packRow(to []float64, m Matrix, r, j, n int) {
	at := r*m.RowStep + j*m.ColStep
	if m.ColStep == 1 {
		copy(to[:n], m.Data[at:])
	} else {
		for i := range n {
			to[i] = m.Data[at+i*m.ColStep]
		}
	}
	clear(to[n:])
}

// tile adds Σ_k left[k·step+i]·right[k·wide+j] to the tile of C at (i, j); at C's
// edges by way of a whole tile aside.
func (p *Product) tile(c Matrix, i, j int, left []float64, step int, right []float64, k int) {
	tall, wide := tile()
	rows, cols := min(tall, c.Rows-i), min(wide, c.Cols-j)
	at := c.Data[i*c.RowStep+j:]
	if rows == tall && cols == wide {
		multiply(at, c.RowStep, left, step, right, k)
		return
	}
	clear(p.edge[:])
	for r := range rows {
		copy(p.edge[r*wide:r*wide+cols], at[r*c.RowStep:])
	}
	multiply(p.edge[:], wide, left, step, right, k)
	for r := range rows {
		copy(at[r*c.RowStep:r*c.RowStep+cols], p.edge[r*wide:])
	}
}

// multiply adds Σ_k left[k·step+i]·right[k·wide+j] to every c[i·cStep+j] of a
// tile.
func multiply(c []float64, cStep int, left []float64, step int, right []float64, k int) {
	tall, wide := tile()
	if multiplyVector(c, cStep, left, step, right, k) {
		return
	}
	for i := range tall {
		row := c[i*cStep : i*cStep+wide]
		for t := range k {
			l, r := left[t*step+i], right[t*wide:(t+1)*wide]
			for j, v := range r {
				row[j] = math.FMA(l, v, row[j])
			}
		}
	}
}

// Gram adds Σ_i weight[i]·x̃_i·x̃_iᵀ over the rows of a batch to the upper triangle
// of a matrix of d+1 rows and columns: x̃_i is row rows[i] of x, which has d
// columns, minus shift (nil: nothing), and a 1 after it. Rows are added one
// after the other, entry (p, q) by one fused multiply-add of weight[i]·x̃_ip
// (rounded) and x̃_iq. A nil weight is all ones.
func Gram[T Float](p *Product, h []float64, weight []float64, x []T, rows []int32, shift []float64, d int) {
	tall, wide := tile()
	n := d + 1
	panels := (n + wide - 1) / wide
	_ = h[:n*n]
	c := RowMajor(h, n, n)
	for from := 0; from < len(rows); from += gramRows {
		block := rows[from:min(from+gramRows, len(rows))]
		k := len(block)
		p.right = gather(p.right, x, block, shift, d, wide)
		left := p.right
		if weight != nil {
			p.left = scaled(p.left, p.right, weight[from:from+k], wide)
			left = p.left
		}
		for q := range panels {
			for i := 0; i < n && i <= (q+1)*wide-1; i += tall {
				// the left side lies in panels as wide as the right one's
				p.tile(c, i, q*wide, left[(i/wide)*wide*k+i%wide:], wide, p.right[q*wide*k:], k)
			}
		}
	}
}

// gramRows is how many rows Gram has in work: their panels stay in the cache
// that is nearest but one.
const gramRows = 128

// gather lays rows of a matrix with d columns out in panels, minus shift, with a
// 1 after their last column and zeros after that.
func gather[T Float](out []float64, x []T, rows []int32, shift []float64, d, wide int) []float64 {
	k, panels := len(rows), (d+wide)/wide
	out = room(out, panels*wide*k)
	for q := range panels {
		low, high := q*wide, min(d, (q+1)*wide)
		for i, r := range rows {
			to := out[(q*k+i)*wide : (q*k+i+1)*wide]
			some := x[int(r)*d+low : int(r)*d+max(low, high)]
			if shift == nil {
				for j, v := range some {
					to[j] = float64(v)
				}
			} else {
				by := shift[low:high]
				for j, v := range some {
					to[j] = float64(v) - by[j]
				}
			}
			clear(to[len(some):])
			if low+len(some) == d && len(some) < wide {
				to[len(some)] = 1
			}
		}
	}
	return out
}

// scaled returns the panels of gather with each row times its weight.
func scaled(out, panels, weight []float64, wide int) []float64 {
	out = room(out, len(panels))
	k := len(weight)
	for at := 0; at < len(panels); at += wide {
		w := weight[at/wide%k]
		from, to := panels[at:at+wide], out[at:at+wide]
		for j, v := range from {
			to[j] = float64(w * v)
		}
	}
	return out
}

// SparseGram does what Gram does for sparse rows, without a shift. No column
// may occur twice in a row.
func SparseGram[T Float](h []float64, weight []float64, m Sparse[T], rows []int32, d int) {
	n := d + 1
	for i, r := range rows {
		idx, val := m.Indices[m.Offsets[r]:m.Offsets[r+1]], m.Values[m.Offsets[r]:m.Offsets[r+1]]
		w := weight[i]
		for k, a := range idx {
			v := float64(w * float64(val[k]))
			row := h[int(a)*n : int(a)*n+n]
			for l, b := range idx[k:] {
				if b >= a {
					row[b] = math.FMA(v, float64(val[k+l]), row[b])
				} else {
					h[int(b)*n+int(a)] = math.FMA(v, float64(val[k+l]), h[int(b)*n+int(a)])
				}
			}
			row[d] += v
		}
		h[d*n+d] += w
	}
}
