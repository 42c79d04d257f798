package linear

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/mllib/internal/train"
)

// kindsOfRows are the shapes of data that problems are made of.
var kindsOfRows = []kindOfRows{
	{"plain", func(rng *rand.Rand) [][]float64 { return gaussians(rng, 40+rng.IntN(60), 1+rng.IntN(8)) }},
	{"collinear", collinear},
	{"wide", func(rng *rand.Rand) [][]float64 { return gaussians(rng, 12+rng.IntN(20), 30+rng.IntN(30)) }},
	{"tiny", func(rng *rand.Rand) [][]float64 { return gaussians(rng, 2+rng.IntN(4), 1+rng.IntN(3)) }},
	{"scaled", scaled},
	{"offset", offset},
	{"walks", func(rng *rand.Rand) [][]float64 { return walks(rng, 45, 60) }},
	{"log-normal rows", logNormalRows},
	{"one-hot", oneHot},
	{"outlier", outlier},
}

func gaussians(rng *rand.Rand, n, d int) [][]float64 {
	x := make([][]float64, n)
	for i := range x {
		x[i] = make([]float64, d)
		for j := range x[i] {
			x[i][j] = rng.NormFloat64()
		}
	}
	return x
}

// collinear are 21 columns that three others make up, but for a millionth or nothing.
func collinear(rng *rand.Rand) [][]float64 {
	own, noise := gaussians(rng, 60, 3), []float64{0, 1e-6, 1e-3}[rng.IntN(3)]
	mix := gaussians(rng, 21, 3)
	x := gaussians(rng, 60, 21)
	for i, row := range x {
		for j := range row {
			row[j] = noise*row[j] + inner(own[i], mix[j])
		}
	}
	return x
}

// scaled are columns of very different units.
func scaled(rng *rand.Rand) [][]float64 {
	x := gaussians(rng, 60, 6)
	for _, row := range x {
		for j := range row {
			row[j] *= []float64{1e8, 1e-8, 1}[j%3]
		}
	}
	return x
}

// offset are columns far from zero.
func offset(rng *rand.Rand) [][]float64 {
	x := gaussians(rng, 60, 4)
	for _, row := range x {
		for j := range row {
			row[j] += []float64{1e7, -1e7, 0}[j%3]
		}
	}
	return x
}

// walks are columns that are sums of ever more steps: all of them nearly alike.
func walks(rng *rand.Rand, n, d int) [][]float64 {
	x := gaussians(rng, n, d)
	for _, row := range x {
		for j := 1; j < d; j++ {
			row[j] += row[j-1]
		}
	}
	return x
}

func logNormalRows(rng *rand.Rand) [][]float64 {
	x := gaussians(rng, 150, 6)
	for _, row := range x {
		size := math.Exp(2 * rng.NormFloat64())
		for j := range row {
			row[j] *= size
		}
	}
	return x
}

// oneHot are three columns of two values each, a column a value.
func oneHot(rng *rand.Rand) [][]float64 {
	x := gaussians(rng, 120, 6)
	for _, row := range x {
		for j := 0; j < 6; j += 2 {
			v := float64(rng.IntN(2))
			row[j], row[j+1] = v, 1-v
		}
	}
	return x
}

// outlier is one row of another size, behind as many as a sample looks at.
func outlier(rng *rand.Rand) [][]float64 {
	x := gaussians(rng, train.SampleRows+400, 3)
	last := x[len(x)-1-rng.IntN(100)]
	for j := range last {
		last[j] *= 1e4
	}
	return x
}

// randomProblem is what a seed stands for: data, and what is to be trained on it.
func randomProblem(t *testing.T, seed uint64) (p *convex, c Config, name string) {
	return randomProblemOf(t, seed, kindsOfRows)
}

// kindOfRows makes rows of a shape.
type kindOfRows struct {
	name string
	make func(rng *rand.Rand) [][]float64
}

func randomProblemOf(t *testing.T, seed uint64, kinds []kindOfRows) (p *convex, c Config, name string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 77))
	kind := kinds[int(seed)%len(kinds)]
	p = &convex{x: kind.make(rng), intercept: rng.IntN(4) > 0}
	p.loss = []Loss{Logistic, SquaredHinge, Squared, Hinge}[rng.IntN(4)]
	p.label(rng)
	weighted := rng.IntN(3) == 0
	for range p.x {
		w := 1.0
		if weighted {
			w = float64(1+rng.IntN(40)) / 8
		}
		p.c = append(p.c, w)
	}
	c = Config{Loss: p.loss, Reg: []float64{0.1, 0.01, 0.001}[rng.IntN(3)], Alpha: []float64{0, 0.5, 1}[rng.IntN(3)],
		Intercept: p.intercept, Standardize: rng.IntN(2) == 0, MaxIterations: 300, Tol: 1e-6, Stop: train.ByObjective,
		Splits: 6}
	c.Data, c.Input.Label = []string{p.write(t, weighted)}, "y"
	if weighted {
		c.Input.Weight = "c"
	}
	if p.loss != Squared {
		c.Positive = "1"
		if rng.IntN(4) == 0 {
			c.ClassWeights = [2]float64{0.5, 3}
		}
	}
	p.penalize(c)
	return p, c, fmt.Sprintf("seed %d: %s, %s of %dx%d, λ %v, α %v, "+
		"intercept %v, standardized %v, weighted %v, classes %v",
		seed, p.loss, kind.name, len(p.x), len(p.x[0]), c.Reg, c.Alpha, c.Intercept, c.Standardize, weighted,
		c.ClassWeights)
}

// label makes labels that some weights tell apart, not all of them rightly, and both of
// them there are.
func (p *convex) label(rng *rand.Rand) {
	s := newSmooth(&convex{x: p.x, c: ones(len(p.x)), q: make([]float64, len(p.x[0])), l: make([]float64, len(p.x[0]))})
	w := gaussians(rng, 1, len(p.x[0]))[0]
	for i, row := range s.a {
		y := inner(row, w) + rng.NormFloat64()
		if p.loss != Squared {
			y = math.Round(1 / (1 + math.Exp(-y)))
			if i < 2 {
				y = float64(i)
			}
		}
		p.y = append(p.y, y)
	}
}

// penalize takes penalties and class weights from a configuration.
func (p *convex) penalize(c Config) {
	scale := ones(len(p.x[0]))
	if c.Standardize {
		scale = p.deviations()
	}
	for _, s := range scale {
		p.q, p.l = append(p.q, c.Reg*(1-c.Alpha)*s*s), append(p.l, c.Reg*c.Alpha*s)
	}
	if c.ClassWeights != [2]float64{} {
		for i, y := range p.y {
			p.c[i] *= c.ClassWeights[int(y)]
		}
	}
}

// deviations are those of columns, 1 for a column that stays the same.
func (p *convex) deviations() []float64 {
	about := *p
	about.intercept = true
	about.q, about.l = make([]float64, len(p.x[0])), make([]float64, len(p.x[0]))
	return newSmooth(&about).unit
}

// write writes the rows as text, all digits of them.
func (p *convex) write(t *testing.T, weighted bool) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("y")
	for j := range p.x[0] {
		fmt.Fprintf(&b, ",x%d", j)
	}
	if weighted {
		b.WriteString(",c")
	}
	for i, row := range p.x {
		b.WriteString("\n" + strconv.FormatFloat(p.y[i], 'g', -1, 64))
		for _, v := range row {
			b.WriteString("," + strconv.FormatFloat(v, 'g', -1, 64))
		}
		if weighted {
			b.WriteString("," + strconv.FormatFloat(p.c[i], 'g', -1, 64))
		}
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(b.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// certain is how near its bound a reference comes: not where rows are far from zero and no
// intercept takes that off, which loses the digits that it takes to tell.
func (p *convex) certain(name string) float64 {
	switch {
	case !p.intercept && strings.Contains(name, "offset"):
		return math.Inf(1)
	case p.loss == Hinge:
		return 1e-8
	}
	return 1e-9
}

// TestTheReferenceIsSure: what it finds lies no further above the optimum than it says,
// which is next to nothing.
func TestTheReferenceIsSure(t *testing.T) {
	for seed := range uint64(seeds.Of(24)) {
		p, _, name := randomProblem(t, seed)
		o := p.solve()
		if gap := o.value - o.below; !(gap <= p.certain(name)*math.Max(1, o.value)) || gap < -1e-12*p.size(o.w, o.b) {
			t.Errorf("%s: between %v and %v (%.1e)", name, o.below, o.value, gap)
		}
	}
}
