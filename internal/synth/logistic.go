package synth

// Logistic is the law of SparkBench's logistic regression data: row i is
// drawn from Random(42+i); its label is i mod 2, and each feature is standard
// normal plus label·eps.
type Logistic struct {
	Rows     int64
	Features int
	Eps      float64
}

// logisticSeed is added to the row's number.
const logisticSeed = 42

// Row fills x with row i and returns its label.
func (l Logistic) Row(i int64, x []float64) (label float64) {
	r := NewRandom(logisticSeed + i)
	label = float64(i % 2)
	shift := float64(label * l.Eps)
	for j := range x {
		x[j] = r.NextGaussian() + shift
	}
	return label
}
