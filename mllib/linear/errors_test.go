package linear

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/testrows"
)

// plainErrors is the serial reference of standard errors: of H⁻¹·H₀·H⁻¹ over weights and, last, the intercept, H being
// the curvature of the whole sum, the penalty in it, and H₀ without.
func plainErrors(c Config, m *Model, x [][]float64, y []float64) []float64 {
	d := m.Features
	n := d
	if c.Intercept {
		n++
	}
	bare, rss := make([][]float64, n), 0.0
	for j := range bare {
		bare[j] = make([]float64, n)
	}
	for i, row := range x {
		z := m.Intercept
		for j, v := range row {
			z += m.Weights[j] * v
		}
		curve := 1.0
		if c.Loss == Logistic {
			p := 1 / (1 + math.Exp(-z))
			curve = p * (1 - p)
		}
		rss += (z - y[i]) * (z - y[i])
		all := append(slices.Clone(row), 1)
		for j := range n {
			for k := range n {
				bare[j][k] += curve * all[j] * all[k]
			}
		}
	}
	whole := make([][]float64, n)
	for j := range whole {
		whole[j] = slices.Clone(bare[j])
		if j < d {
			whole[j][j] += c.Reg * float64(len(x))
		}
	}
	inverse := inverted(whole)
	free, out := 0.0, make([]float64, d+1)
	product := func(a, b [][]float64) [][]float64 {
		p := make([][]float64, n)
		for i := range p {
			p[i] = make([]float64, n)
			for j := range n {
				for k := range n {
					p[i][j] += a[i][k] * b[k][j]
				}
			}
		}
		return p
	}
	shares := product(inverse, bare)
	covariance := product(shares, inverse)
	for j := range n {
		free += shares[j][j]
	}
	scale := 1.0
	if c.Loss == Squared {
		scale = rss / (float64(len(x)) - free)
	}
	for j := range n {
		out[j] = math.Sqrt(scale * covariance[j][j])
	}
	return out
}

// inverted is the inverse of a matrix, by elimination.
func inverted(a [][]float64) [][]float64 {
	n := len(a)
	both := make([][]float64, n)
	for i := range both {
		both[i] = append(slices.Clone(a[i]), make([]float64, n)...)
		both[i][n+i] = 1
	}
	for i := range n {
		for k := i + 1; k < n; k++ {
			if math.Abs(both[k][i]) > math.Abs(both[i][i]) {
				both[i], both[k] = both[k], both[i]
			}
		}
		pivot := both[i][i]
		for j := range both[i] {
			both[i][j] /= pivot
		}
		for k := range n {
			if by := both[k][i]; k != i {
				for j := range both[k] {
					both[k][j] -= by * both[i][j]
				}
			}
		}
	}
	for i := range both {
		both[i] = both[i][n:]
	}
	return both
}

func TestStandardErrors(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		path, x, y := sample(t, 400, 5, sparse)
		for _, loss := range []Loss{Logistic, Squared} {
			for _, reg := range []float64{0, 0.1} {
				for _, intercept := range []bool{true, false} {
					c := defaults(path)
					c.Loss, c.Reg, c.Alpha, c.Intercept, c.Errors, c.Tol = loss, reg, 0, intercept, true, 1e-12
					y := slices.Clone(y)
					if loss == Squared {
						c.Positive = ""
						for i := range y {
							y[i] = 2*y[i] - 1
						}
					}
					got := fitted(t, c)
					e := got.Model.Errors
					if e == nil {
						t.Fatalf("%v: there are none: %v", c, got.Chosen)
					}
					want := plainErrors(c, got.Model, x, y)
					for j, v := range append(slices.Clone(e.Weights), e.Intercept) {
						if math.Abs(v-want[j]) > 1e-6*want[j] {
							t.Errorf("sparse %v %s λ=%v intercept %v: error %d is %v, want %v", sparse, loss, reg,
								intercept, j, v, want[j])
						}
					}
					dir := filepath.Join(t.TempDir(), "model")
					if err := got.Model.Save(dir, false); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// TestStandardErrorsOfALine: of the first twenty rows of Old Faithful, by the formulas of a line (of all rows R's lm
// has 0.160143 and 0.002219, which volley run linear --standard-errors --reg 0 prints, too).
func TestStandardErrorsOfALine(t *testing.T) {
	x := []float64{79, 54, 74, 62, 85, 55, 88, 85, 51, 85, 54, 84, 78, 47, 83, 52, 62, 84, 52, 79}
	y := []float64{3.6, 1.8, 3.333, 2.283, 4.533, 2.883, 4.7, 3.6, 1.95, 4.35, 1.833, 3.917, 4.2, 1.75, 4.7, 2.167,
		1.75, 4.8, 1.6, 4.25}
	path := testrows.Lines(t, len(x), func(i int, _ *rand.Rand) string { return fmt.Sprintf("%v,%v", y[i], x[i]) })
	c := defaults(path)
	c.Loss, c.Reg, c.Positive, c.Errors, c.Intercept = Squared, 0, "", true, true
	got := fitted(t, c).Model
	var n, mx, my, sxx, sxy, rss float64
	for i := range x {
		n, mx, my = n+1, mx+x[i]/20, my+y[i]/20
	}
	for i := range x {
		sxx, sxy = sxx+(x[i]-mx)*(x[i]-mx), sxy+(x[i]-mx)*(y[i]-my)
	}
	slope := sxy / sxx
	for i := range x {
		r := y[i] - my - slope*(x[i]-mx)
		rss += r * r
	}
	s := math.Sqrt(rss / (n - 2))
	for name, v := range map[string][2]float64{"residual": {got.Errors.Residual, s}, "slope": {got.Errors.Weights[0],
		s / math.Sqrt(sxx)}, "intercept": {got.Errors.Intercept, s * math.Sqrt(1/n+mx*mx/sxx)},
		"freedom": {got.Errors.Freedom, n - 2}} {
		if math.Abs(v[0]-v[1]) > 1e-9*v[1] {
			t.Errorf("%s is %v, want %v", name, v[0], v[1])
		}
	}
	if !strings.Contains(got.Describe(), "±") {
		t.Errorf("they are not shown: %s", got.Describe())
	}
}

// TestStandardErrorsThatThereAreNone: of collinear columns, where weights may be moved between them, and of fewer rows
// than numbers the user is told so; what has no likelihood is refused.
func TestStandardErrorsThatThereAreNone(t *testing.T) {
	collinear := testrows.Lines(t, 50, func(i int, _ *rand.Rand) string {
		return fmt.Sprintf("%d,%d,%d,%d", i%2, i*i%17, 3*(i*i%17), i%5)
	})
	few := testrows.Lines(t, 3, func(i int, _ *rand.Rand) string { return fmt.Sprintf("%d,%d,%d", i, i*i, i%2) })
	for _, path := range []string{collinear, few} {
		c := defaults(path)
		c.Loss, c.Reg, c.Positive, c.Errors, c.Intercept = Squared, 0, "", true, true
		got := fitted(t, c)
		if got.Model.Errors != nil || !slices.ContainsFunc(got.Chosen, func(s string) bool {
			return strings.HasPrefix(s, "no standard errors")
		}) {
			t.Errorf("%+v, %v", got.Model.Errors, got.Chosen)
		}
	}
	for _, c := range []Config{{Loss: Hinge, Errors: true}, {Loss: Squared, Errors: true, Reg: 1, Alpha: 0.5}} {
		if err := c.Check(); fault.KindOf(err) != fault.Usage {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
