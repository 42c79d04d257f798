package kernel

// LossKind is how the loss of a row depends on its margin m = w·x + bias and
// its label y.
type LossKind int

// The losses. Of the first three the label is 0 or 1 and s = 2y − 1; of
// SquaredLoss it is a number.
const (
	LogisticLoss     LossKind = iota // log(1 + e^m) − y·m
	HingeLoss                        // max(0, 1 − s·m)
	SquaredHingeLoss                 // max(0, 1 − s·m)²
	SquaredLoss                      // (m − y)²/2
)

// Loss is a loss, of which the hinge may be smoothed: over a width about its kink
// at s·m = 1 the derivative goes from 0 to −s in a straight line. The smoothed
// hinge lies above the hinge there, by an eighth of the width at most.
type Loss struct {
	Kind  LossKind
	Width float64 // of the smoothed part of the hinge; 0 is the hinge itself
	// Of rows with label 0 and with label 1; both zero stand for ones.
	Weights [2]float64
	// Rows are the weights of the rows that a call is about, times those of their
	// labels; nil stands for ones.
	Rows []float64
}

// weighted reports whether rows count differently.
func (l Loss) weighted() bool { return l.Weights != [2]float64{} || l.Rows != nil }

// Weight returns what row i counts, whose label is y.
func (l Loss) Weight(i int, y float64) float64 {
	w := 1.0
	if l.Weights != [2]float64{} {
		w = l.Weights[0]
		if y == 1 {
			w = l.Weights[1]
		}
	}
	if l.Rows != nil {
		w = float64(w * l.Rows[i])
	}
	return w
}

// Of returns the loss of rows [from, to) of those that it is about.
func (l Loss) Of(from, to int) Loss {
	if l.Rows != nil {
		l.Rows = l.Rows[from:to]
	}
	return l
}

// Derive computes the derivative by the margin and the loss of each row, the
// hinge's loss being that of the hinge itself also where it is smoothed.
// Lengths: all alike; z are the dots w·x.
func (l Loss) Derive(coef, loss, z []float64, bias float64, y []float64) {
	coef, loss, y = coef[:len(z)], loss[:len(z)], y[:len(z)]
	switch l.Kind {
	case LogisticLoss:
		Logistic(coef, loss, z, bias, y)
	case HingeLoss:
		l.hinge(coef, loss, z, bias, y)
	case SquaredHingeLoss:
		for i, d := range z {
			s := float64(2*y[i]) - 1
			short := max(0, 1-float64(s*(d+bias)))
			coef[i], loss[i] = float64(float64(-2*s)*short), float64(short*short)
		}
	case SquaredLoss:
		for i, d := range z {
			r := d + bias - y[i]
			coef[i], loss[i] = r, float64(r*r)/2
		}
	}
	if l.weighted() {
		for i, v := range y {
			w := l.Weight(i, v)
			coef[i], loss[i] = float64(coef[i]*w), float64(loss[i]*w)
		}
	}
}

func (l Loss) hinge(coef, loss, z []float64, bias float64, y []float64) {
	half := l.Width / 2
	for i, d := range z {
		s := float64(2*y[i]) - 1
		short := 1 - float64(s*(d+bias))
		loss[i] = max(0, short)
		switch {
		case short <= -half:
			coef[i] = 0
		case short < half:
			coef[i] = float64(-s * ((short + half) / l.Width))
		default:
			coef[i] = -s
		}
	}
}

// Smoothing adds to gap, row by row, how far the smoothed hinge lies above the
// hinge; nothing for other losses.
func (l Loss) Smoothing(gap float64, z []float64, bias float64, y []float64) float64 {
	if l.Kind != HingeLoss || l.Width == 0 {
		return gap
	}
	half := l.Width / 2
	for i, d := range z {
		short := 1 - float64((float64(2*y[i])-1)*(d+bias))
		if short > -half && short < half {
			over := half - max(short, -short)
			gap += float64(l.Weight(i, y[i]) * (float64(over*over) / float64(2*l.Width)))
		}
	}
	return gap
}

// Curve computes the second derivative by the margin of each row; coef is what
// Derive has computed.
func (l Loss) Curve(curve, coef, z []float64, bias float64, y []float64) {
	curve, coef, y = curve[:len(z)], coef[:len(z)], y[:len(z)]
	for i, d := range z {
		w := l.Weight(i, y[i])
		switch l.Kind {
		case LogisticLoss:
			p := 0.0
			if w > 0 {
				p = coef[i]/w + y[i]
			}
			curve[i] = float64(w * float64(p*(1-p)))
		case HingeLoss:
			short := 1 - float64((float64(2*y[i])-1)*(d+bias))
			curve[i] = 0
			if half := l.Width / 2; short > -half && short < half {
				curve[i] = w / l.Width
			}
		case SquaredHingeLoss:
			curve[i] = 0
			if coef[i] != 0 {
				curve[i] = 2 * w
			}
		case SquaredLoss:
			curve[i] = w
		}
	}
}

// Steepest returns the largest second derivative; weights apart.
func (l Loss) Steepest() float64 {
	switch l.Kind {
	case LogisticLoss:
		return 0.25
	case HingeLoss:
		return 1 / max(l.Width, 1e-6)
	case SquaredHingeLoss:
		return 2
	}
	return 1
}

// Take sets y[i] to labels[rows[i]].
func Take(y, labels []float64, rows []int32) {
	y = y[:len(rows)]
	for i, r := range rows {
		y[i] = labels[r]
	}
}
