package kernel

// gradientBlock is how many rows are in work at a time: two blocks, the one
// whose dots are computed and the one that is accumulated, stay in the
// nearest cache.
const gradientBlock = 16

// LogisticGradient folds dense rows into the gradient of the logistic loss:
// for row i, z[i] = w · x + bias, coef[i] and loss[i] as Logistic defines
// them for the label y[i], and sum += coef[i]·x, in the order of rows. Lengths:
// coef, loss, z, y as rows; sum and w one entry a column.
func LogisticGradient[T Float](sum, coef, loss, z, w []float64, bias float64, x []T, rows []int32, y []float64) {
	n := len(rows)
	first := min(gradientBlock, n)
	Dots(z[:first], w, x, rows[:first])
	for from := 0; from < n; from += gradientBlock {
		to := min(from+gradientBlock, n)
		next := min(to+gradientBlock, n)
		for i := from; i < to; i++ {
			z[i] += bias
		}
		Logistic(coef[from:to], loss[from:to], z[from:to], y[from:to])
		m := pipelineVector(z[to:next], w, sum, coef[from:to], x, rows[to:next], rows[from:to])
		Accumulate(sum, coef[from+m:to], x, rows[from+m:to])
		Dots(z[to+m:next], w, x, rows[to+m:next])
	}
}
