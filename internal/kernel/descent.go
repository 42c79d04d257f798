package kernel

import "math"

// Rating is a number of a matrix that is to be a product of factors: where it is, by the places of its row's and its
// column's factors, and what it is.
type Rating struct {
	Row, Column int32
	Value       float64
}

// Descent is how the factors of a matrix are moved by steps of stochastic gradient descent.
type Descent struct {
	Rank      int     // numbers of a factor
	Mean      float64 // of ratings: the product is to be what they differ from it by
	Rate, Reg float64 // of learning, of a factor that has not moved; times the factors is added to gradients
	Own       bool    // a row and a column have a number of their own that their ratings differ by
}

// OwnNumbers is how many numbers a row, or a column, has after its factor: one of its own, and the mean of what its
// gradients were squared, summed over steps.
const OwnNumbers = 2

// rateOf returns the rate of a row, or a column: the smaller, the more it has moved (Chin et al. 2015).
func (d *Descent) rateOf(numbers []float64) float64 { return d.Rate / math.Sqrt(1+numbers[d.Rank+1]) }

// Steps makes a step for each rating, one after the other, and returns the sum of their squared errors before. Ratings
// of a row that follow each other have the row's rate before the first of them. Rows and columns have Rank+OwnNumbers
// numbers each.
func (d *Descent) Steps(rows, columns []float64, ratings []Rating) (squares float64) {
	if squares, ok := d.stepsVector(rows, columns, ratings); ok {
		return squares
	}
	n, last, rate := d.Rank+OwnNumbers, int32(-1), 0.0
	for _, r := range ratings {
		row, column := rows[int(r.Row)*n:int(r.Row+1)*n], columns[int(r.Column)*n:int(r.Column+1)*n]
		if r.Row != last {
			last, rate = r.Row, d.rateOf(row)
		}
		off := d.step(row, column, r.Value, rate)
		squares = math.FMA(off, off, squares)
	}
	return squares
}

// step makes the step for a rating, and returns by how much it was off.
func (d *Descent) step(row, column []float64, value, rate float64) (off float64) {
	r := d.Rank
	product, rows, columns := sumOfProducts{n: r}, sumOfProducts{n: r}, sumOfProducts{n: r}
	for k, a := range row[:r] {
		product.add(k, a, column[k])
	}
	off = value - d.Mean - row[r] - column[r] - product.total()
	other := d.rateOf(column)
	for k := range r {
		a, b := row[k], column[k]
		ga, gb := math.FMA(off, b, -float64(d.Reg*a)), math.FMA(off, a, -float64(d.Reg*b))
		rows.add(k, ga, ga)
		columns.add(k, gb, gb)
		row[k], column[k] = math.FMA(rate, ga, a), math.FMA(other, gb, b)
	}
	row[r+1] = math.FMA(rows.total(), 1/float64(r), row[r+1])
	column[r+1] = math.FMA(columns.total(), 1/float64(r), column[r+1])
	if d.Own {
		row[r] = math.FMA(rate, math.FMA(-row[r], d.Reg, off), row[r])
		column[r] = math.FMA(other, math.FMA(-column[r], d.Reg, off), column[r])
	}
	return off
}

// sumOfProducts is that of n products: groups of 8 are added up in lanes, and what is left after them as 4, 2 and 1
// numbers, each by themselves.
type sumOfProducts struct {
	n         int
	acc, left [lanes]float64
}

func (s *sumOfProducts) add(k int, a, b float64) {
	if whole := s.n &^ (lanes - 1); k >= whole {
		s.left[k-whole] = float64(a * b)
		return
	}
	s.acc[k%lanes] = math.FMA(a, b, s.acc[k%lanes])
}

func (s *sumOfProducts) total() float64 {
	sum, left := combineLanes(&s.acc), s.left[:]
	if s.n&4 != 0 {
		sum += (left[0] + left[2]) + (left[1] + left[3])
		left = left[4:]
	}
	if s.n&2 != 0 {
		sum += left[0] + left[1]
		left = left[2:]
	}
	if s.n&1 != 0 {
		sum += left[0]
	}
	return sum
}
