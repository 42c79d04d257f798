package kernel

// gradientBlock is how many rows are in work at a time: two blocks, the one
// whose dots are computed and the one that is accumulated, stay in the
// nearest cache.
const gradientBlock = 16

// Gradient folds dense rows, in their order, into the gradient of a loss: with
// coef as the loss derives it from w · x and the label y[i] of row rows[i],
// sum += coef·x; losses go to acc. Lengths: y as rows; sum and w one entry a
// column.
func Gradient[T Float](acc *Losses, f Loss, sum, w []float64, bias float64, x []T, rows []int32, y []float64) {
	n := len(rows)
	check(x, rows, len(w))
	var now, then, coef, loss [gradientBlock]float64 // dots of this block and the next
	first := min(gradientBlock, n)
	Dots(now[:first], w, x, rows[:first])
	for from := 0; from < n; from += gradientBlock {
		to := min(from+gradientBlock, n)
		next := min(to+gradientBlock, n)
		part := f.Of(from, to)
		part.Derive(coef[:to-from], loss[:to-from], now[:to-from], bias, y[from:to])
		acc.Gap = part.Smoothing(acc.Gap, now[:to-from], bias, y[from:to])
		m := pipelineVector(then[:next-to], w, sum, coef[:], x, rows[to:next], rows[from:to])
		Accumulate(sum, coef[m:to-from], x, rows[from+m:to])
		Dots(then[m:next-to], w, x, rows[to+m:next])
		acc.add(coef[:to-from], loss[:to-from]) // here, it overlaps with the next block's losses
		now = then
	}
}

// SparseGradient does what Gradient does, for sparse rows.
func SparseGradient[T Float](acc *Losses, f Loss, sum, w []float64, bias float64, m Sparse[T], rows []int32,
	y []float64) {
	var z, coef, loss [sparseBlock]float64
	for from := 0; from < len(rows); from += sparseBlock {
		block := rows[from:min(from+sparseBlock, len(rows))]
		n := len(block)
		SparseDots(z[:n], w, m, block)
		part := f.Of(from, from+n)
		part.Derive(coef[:n], loss[:n], z[:n], bias, y[from:from+n])
		acc.Gap = part.Smoothing(acc.Gap, z[:n], bias, y[from:from+n])
		acc.add(coef[:n], loss[:n])
		SparseAccumulate(sum, coef[:n], m, block)
	}
}

// sparseBlock is how many sparse rows are in work between the two times that
// each is read.
const sparseBlock = 64

// Add folds the losses of rows whose dots with w are z, and nothing else.
func (l *Losses) Add(f Loss, z []float64, bias float64, y []float64) {
	var coef, loss [sparseBlock]float64
	for from := 0; from < len(z); from += sparseBlock {
		to := min(from+sparseBlock, len(z))
		part := f.Of(from, to)
		part.Derive(coef[:to-from], loss[:to-from], z[from:to], bias, y[from:to])
		l.AddDerived(part, coef[:to-from], loss[:to-from], z[from:to], bias, y[from:to])
	}
}

// AddDerived does what Add does, for derivatives already computed.
func (l *Losses) AddDerived(f Loss, coef, loss, z []float64, bias float64, y []float64) {
	l.Gap = f.Smoothing(l.Gap, z, bias, y)
	l.add(coef, loss)
}
