package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:generate go -C gen run . -out ../kernel_amd64.s -stubs ../stubs_amd64.go -pkg kernel

// path is the assembly that this CPU runs; GODEBUG=cpu.avx512=off and the like
// turn it off.
var path = func() string {
	switch {
	case !cpu.X86.HasAVX2 || !cpu.X86.HasFMA:
		return "go"
	case cpu.X86.HasAVX512 && cpu.X86.HasAVX512F:
		return "avx512"
	}
	return "avx2"
}()

// Path names the code that the kernels run on this machine: go, avx2 or
// avx512.
func Path() string { return path }

// group is how many rows' offsets are computed for one call of the assembly.
const group = 64

// offsets computes the byte offsets of rows of d columns.
func offsets[T Float](out *[group]int64, rows []int32, d int) {
	var zero T
	size := int64(d) * int64(unsafe.Sizeof(zero))
	for i, r := range rows {
		out[i] = int64(r) * size
	}
}

// check panics where a row lies outside the matrix, as slicing would: the
// assembly does not look.
func check[T Float](x []T, rows []int32, d int) {
	if len(rows) == 0 {
		return
	}
	var a, b, c, e uint32 // negative ones come out on top
	k := 0
	for ; k+4 <= len(rows); k += 4 {
		four := rows[k : k+4 : k+4]
		a, b, c, e = max(a, uint32(four[0])), max(b, uint32(four[1])), max(c, uint32(four[2])), max(e, uint32(four[3]))
	}
	for _, r := range rows[k:] {
		a = max(a, uint32(r))
	}
	top := int(int32(max(a, b, c, e)))
	_ = x[top*d : (top+1)*d]
}

func dotsVector[T Float](z, w []float64, x []T, rows []int32) bool {
	if path == "go" || len(w) == 0 || len(rows) == 0 {
		return false
	}
	d := len(w)
	check(x, rows, d)
	_ = z[:len(rows)]
	var off [group]int64
	for from := 0; from < len(rows); from += group {
		some := rows[from:min(from+group, len(rows))]
		offsets[T](&off, some, d)
		callDots(&z[from], &w[0], unsafe.Pointer(unsafe.SliceData(x)), &off[0], len(some), d, unsafe.Sizeof(x[0]) == 4)
	}
	return true
}

func callDots(z, w *float64, x unsafe.Pointer, off *int64, n, d int, single bool) {
	switch {
	case path == "avx512" && single:
		dotsF32AVX512(z, w, (*float32)(x), off, n, d)
	case path == "avx512":
		dotsF64AVX512(z, w, (*float64)(x), off, n, d)
	case single:
		dotsF32AVX2(z, w, (*float32)(x), off, n, d)
	default:
		dotsF64AVX2(z, w, (*float64)(x), off, n, d)
	}
}

func accumulateVector[T Float](sum, coef []float64, x []T, rows []int32) bool {
	if path == "go" || len(sum) == 0 || len(rows) == 0 {
		return false
	}
	d := len(sum)
	check(x, rows, d)
	_ = coef[:len(rows)]
	var off [group]int64
	for from := 0; from < len(rows); from += group {
		some := rows[from:min(from+group, len(rows))]
		offsets[T](&off, some, d)
		callAccumulate(&sum[0], &coef[from], unsafe.Pointer(unsafe.SliceData(x)), &off[0], len(some), d,
			unsafe.Sizeof(x[0]) == 4)
	}
	return true
}

func callAccumulate(sum, coef *float64, x unsafe.Pointer, off *int64, n, d int, single bool) {
	switch {
	case path == "avx512" && single:
		accumulateF32AVX512(sum, coef, (*float32)(x), off, n, d)
	case path == "avx512":
		accumulateF64AVX512(sum, coef, (*float64)(x), off, n, d)
	case single:
		accumulateF32AVX2(sum, coef, (*float32)(x), off, n, d)
	default:
		accumulateF64AVX2(sum, coef, (*float64)(x), off, n, d)
	}
}

// logisticVector does as many rows as fill whole registers and returns how
// many those are.
func logisticVector(coef, loss, z []float64, bias float64, y []float64) int {
	n := len(z)
	_, _, _ = coef[:n], loss[:n], y[:n]
	switch {
	case path == "avx512" && n >= 8:
		logisticAVX512(&coef[0], &loss[0], &z[0], &y[0], bias, n&^7)
		return n &^ 7
	case path == "avx2" && n >= 4:
		logisticAVX2(&coef[0], &loss[0], &z[0], &y[0], bias, n&^3)
		return n &^ 3
	}
	return 0
}

// ReadStreams reads x in four distant streams and adds it up: what memory
// delivers at its best, for the benchmarks to be held against.
func ReadStreams(x []float64) float64 {
	n := len(x) / 4 &^ 15
	if path == "go" || n == 0 {
		return readPlain(x)
	}
	return readStreams(&x[0], &x[n], &x[2*n], &x[3*n], n)
}

// pipelineVector computes the dots of the next rows between the accumulation
// of the current ones and returns how many of each it did. The rows have been
// checked.
func pipelineVector[T Float](z, w, sum, coef []float64, x []T, next, current []int32) int {
	n := min(len(next), len(current)) &^ 3
	if path == "go" || n == 0 || len(w) == 0 {
		return 0
	}
	d, base := len(w), unsafe.Pointer(unsafe.SliceData(x))
	_, _, _ = z[:n], sum[:d], coef[:n]
	switch single := unsafe.Sizeof(x[0]) == 4; {
	case path == "avx512" && single:
		pipelineF32AVX512(&z[0], &w[0], &sum[0], &coef[0], (*float32)(base), &next[0], &current[0], n, d)
	case path == "avx512":
		pipelineF64AVX512(&z[0], &w[0], &sum[0], &coef[0], (*float64)(base), &next[0], &current[0], n, d)
	case single:
		pipelineF32AVX2(&z[0], &w[0], &sum[0], &coef[0], (*float32)(base), &next[0], &current[0], n, d)
	default:
		pipelineF64AVX2(&z[0], &w[0], &sum[0], &coef[0], (*float64)(base), &next[0], &current[0], n, d)
	}
	return n
}

// Prefetch asks memory for what Gradient and Match will read first of
// a matrix with d columns and of its labels.
func Prefetch[T Float](x []T, labels []float64, rows []int32, d int) {
	n := min(len(rows), 2*gradientBlock)
	if path == "go" || n == 0 || d == 0 {
		return
	}
	prefetchLabels(unsafe.SliceData(labels), &rows[0], len(rows))
	prefetchRows((*byte)(unsafe.Pointer(unsafe.SliceData(x))), &rows[0], n, d*int(unsafe.Sizeof(x[0])))
}

// PrefetchAt asks memory for elements of x, which may be of any type, given by number
// as far as they fit into 31 bits: the greatest number of 32 bits is none.
func PrefetchAt[T any](x []T, at []uint32) {
	if path == "go" || len(at) == 0 || len(x) == 0 {
		return
	}
	prefetchAt((*byte)(unsafe.Pointer(unsafe.SliceData(x))), &at[0], len(at), int(unsafe.Sizeof(x[0])))
}

func sparseDotsVector[T Float](z, w []float64, m Sparse[T], rows []int32) bool {
	if path == "go" || len(rows) == 0 || len(w) == 0 || len(m.Indices) == 0 {
		return false
	}
	_ = z[:len(rows)]
	m.check(rows)
	switch values := unsafe.Pointer(unsafe.SliceData(m.Values)); unsafe.Sizeof(m.Values[0]) {
	case 4:
		sparseDotsF32AVX2(&z[0], &w[0], &m.Offsets[0], &m.Indices[0], (*float32)(values), &rows[0], len(rows))
	default:
		sparseDotsF64AVX2(&z[0], &w[0], &m.Offsets[0], &m.Indices[0], (*float64)(values), &rows[0], len(rows))
	}
	return true
}

func sparseAccumulateVector[T Float](sum, coef []float64, m Sparse[T], rows []int32) bool {
	if path == "go" || len(rows) == 0 || len(m.Indices) == 0 {
		return false
	}
	_ = coef[:len(rows)]
	m.check(rows)
	switch values := unsafe.Pointer(unsafe.SliceData(m.Values)); unsafe.Sizeof(m.Values[0]) {
	case 4:
		sparseAccumulateF32AVX2(&sum[0], &coef[0], &m.Offsets[0], &m.Indices[0], (*float32)(values), &rows[0],
			len(rows))
	default:
		sparseAccumulateF64AVX2(&sum[0], &coef[0], &m.Offsets[0], &m.Indices[0], (*float64)(values), &rows[0],
			len(rows))
	}
	return true
}

// check panics where rows lie outside the matrix: the assembly does not look.
func (m Sparse[T]) check(rows []int32) {
	for _, r := range rows {
		lo, hi := m.Offsets[r], m.Offsets[r+1]
		_, _ = m.Values[lo:hi], m.Indices[lo:hi]
	}
}

// tile returns the size of the part of a product that the registers hold.
func tile() (tall, wide int) {
	if path == "avx512" {
		return 8, 24
	}
	return 4, 12
}

func multiplyVector(c []float64, cStep int, left []float64, step int, right []float64, k int) bool {
	if path == "go" || k == 0 {
		return false
	}
	tall, wide := tile()
	_, _, _ = c[(tall-1)*cStep+wide-1], left[(k-1)*step+tall-1], right[k*wide-1]
	if path == "avx512" {
		productAVX512(&c[0], cStep, &left[0], step, &right[0], k)
	} else {
		productAVX2(&c[0], cStep, &left[0], step, &right[0], k)
	}
	return true
}

// squaresVector sums the squares of all lanes.
func (n *Nearest) squaresVector(wide int) bool {
	if path == "go" || n.d == 0 {
		return false
	}
	_ = n.rows[wide*n.d-1]
	if path == "avx512" {
		squaresAVX512(&n.squares[0], &n.rows[0], n.d)
	} else {
		squaresAVX2(&n.squares[0], &n.rows[0], n.d)
	}
	return true
}

// spreadVector lays rows of double precision out in lanes, eight at a time, the
// columns that are left over one by one.
func spreadVector[T Float](n *Nearest, x []T, rows []int32, wide int, shift, scale []float64) bool {
	x64, double := any(x).([]float64)
	if path != "avx512" || !double || scale != nil || n.d < 8 {
		return false
	}
	by := shift
	if by == nil {
		by = n.zeros
	}
	d, from := n.d, 0
	for ; from+8 <= len(rows); from += 8 {
		eight := rows[from : from+8]
		for _, r := range eight {
			_ = x64[int(r)*d : int(r)*d+d]
		}
		spreadAVX512(&n.rows[from], &x64[0], &by[0], &eight[0], d, wide, d/8)
		for j := d &^ 7; j < d; j++ {
			for i, r := range eight {
				n.rows[j*wide+from+i] = x64[int(r)*d+j] - by[j]
			}
		}
	}
	if from < len(rows) {
		spread(n.rows[from:], x, rows[from:], d, wide, shift, nil)
	}
	return true
}

// compareVector compares the tile of centres from c on with all lanes.
func (n *Nearest) compareVector(c int, two bool) bool {
	tall, wide := tile()
	_, _, _ = n.centres[(c+tall)*n.d-1], n.numbers[c+tall-1], n.rows[wide*n.d-1]
	switch {
	case path == "go":
		return false
	case path == "avx512" && two:
		nearestTwoAVX512(&n.best[0], &n.index[0], &n.centres[c*n.d], &n.norms[c], &n.numbers[c], &n.rows[0], n.d,
			&n.second[0])
	case path == "avx512":
		nearestAVX512(&n.best[0], &n.index[0], &n.centres[c*n.d], &n.norms[c], &n.numbers[c], &n.rows[0], n.d)
	case two:
		nearestTwoAVX2(&n.best[0], &n.index[0], &n.centres[c*n.d], &n.norms[c], &n.numbers[c], &n.rows[0], n.d,
			&n.second[0])
	default:
		nearestAVX2(&n.best[0], &n.index[0], &n.centres[c*n.d], &n.norms[c], &n.numbers[c], &n.rows[0], n.d)
	}
	return true
}

// multiplyVector multiplies all lanes with the centres that begin at first.
func (n *Nearest) multiplyVector() bool {
	if path == "go" || n.d == 0 {
		return false
	}
	tall, wide := tile()
	_ = n.rows[wide*n.d-1]
	for _, at := range n.first[:wide] {
		_ = n.centres[int(at)+(n.d-1)*tall]
	}
	if path == "avx512" {
		productsAVX512(&n.best[0], &n.centres[0], &n.first[0], &n.rows[0], n.d)
	} else {
		productsAVX2(&n.best[0], &n.centres[0], &n.first[0], &n.rows[0], n.d)
	}
	return true
}

// addRowsVector adds rows of double precision to sums.
func addRowsVector[T Float](sums []float64, at []int32, x []T, rows []int32, d int) bool {
	x64, double := any(x).([]float64)
	if path == "go" || !double || len(rows) == 0 || d == 0 {
		return false
	}
	check(x64, rows, d)
	check(sums, at[:len(rows)], d)
	if path == "avx512" {
		addRowsAVX512(&sums[0], &at[0], &x64[0], &rows[0], len(rows), d)
	} else {
		addRowsAVX2(&sums[0], &at[0], &x64[0], &rows[0], len(rows), d)
	}
	return true
}

// gramRowsVector adds to a tile; the caller has checked that all rows, and what
// follows the last, lie in memory.
func gramRowsVector(c, left, right []float64, rows []int32, d int, weight []float64) bool {
	switch {
	case path == "go":
		return false
	case path == "avx512" && weight != nil:
		_ = weight[:len(rows)]
		gramWeightedAVX512(&c[0], &left[0], &right[0], &rows[0], len(rows), d, &weight[0])
	case path == "avx512":
		gramRowsAVX512(&c[0], &left[0], &right[0], &rows[0], len(rows), d)
	case weight != nil:
		_ = weight[:len(rows)]
		gramWeightedAVX2(&c[0], &left[0], &right[0], &rows[0], len(rows), d, &weight[0])
	default:
		gramRowsAVX2(&c[0], &left[0], &right[0], &rows[0], len(rows), d)
	}
	return true
}

// normalRowsVector takes tiles of up to 16 rows, which lie 16 apart; what rows and
// values point to has been checked.
func normalRowsVector(a, b, weight, value, x []float64, rows []int32, d int) bool {
	if path != "avx512" || len(rows) == 0 {
		return path == "avx512"
	}
	_, _ = a[:tileWidth*tileWidth], b[:tileWidth]
	n, r := len(rows), &rows[0]
	if weight == nil {
		switch {
		case d <= 8:
			normalRows8AVX512(&a[0], &b[0], &x[0], r, n, d, &value[0])
		case d <= 12:
			normalRows12AVX512(&a[0], &b[0], &x[0], r, n, d, &value[0])
		default:
			normalRows16AVX512(&a[0], &b[0], &x[0], r, n, d, &value[0])
		}
		return true
	}
	_ = weight[:n]
	switch {
	case d <= 8:
		normalWeighted8AVX512(&a[0], &b[0], &x[0], r, n, d, &value[0], &weight[0])
	case d <= 12:
		normalWeighted12AVX512(&a[0], &b[0], &x[0], r, n, d, &value[0], &weight[0])
	default:
		normalWeighted16AVX512(&a[0], &b[0], &x[0], r, n, d, &value[0], &weight[0])
	}
	return true
}

// solveLanesVector solves the systems of all lanes.
func solveLanesVector(a, b []float64, n int) bool {
	if n == 0 {
		return true
	}
	_, _ = a[:n*n*lanes], b[:n*lanes]
	switch path {
	case "avx512":
		solveLanesAVX512(&a[0], &b[0], n)
	case "avx2":
		solveLanesAVX2(&a[0], &b[0], n)
		solveLanesAVX2(&a[lanes/2], &b[lanes/2], n)
	default:
		return false
	}
	return true
}

// ruleLength is how many numbers a rule of the assembly has, as gen/descent.go names them.
const ruleLength = 6

func (d *Descent) stepsVector(rows, columns []float64, ratings []Rating) (squares float64, ok bool) {
	if path == "go" || d.Rank < 1 || len(ratings) == 0 {
		return 0, false
	}
	n, lastRow, lastColumn := d.Rank+OwnNumbers, uint32(0), uint32(0) // negative ones come out on top
	for _, r := range ratings {
		lastRow, lastColumn = max(lastRow, uint32(r.Row)), max(lastColumn, uint32(r.Column))
	}
	_ = rows[int(int32(lastRow))*n : (int(int32(lastRow))+1)*n]
	_ = columns[int(int32(lastColumn))*n : (int(int32(lastColumn))+1)*n]
	rule := [ruleLength]float64{d.Mean, d.Rate, d.Reg, 1 / float64(d.Rank)}
	if d.Own {
		rule[4] = 1
	}
	if path == "avx512" {
		descentAVX512(&rule[0], &rows[0], &columns[0], &ratings[0].Row, len(ratings), d.Rank)
	} else {
		descentAVX2(&rule[0], &rows[0], &columns[0], &ratings[0].Row, len(ratings), d.Rank)
	}
	return rule[ruleLength-1], true
}
