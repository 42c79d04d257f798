package solver

import (
	"slices"
	"testing"

	"github.com/volley-engine/volley/mllib/internal/num"
)

// bowl is an objective of two variables: H·(x − (3, −1)) is its gradient.
type bowl struct{ h [4]float64 }

func (b bowl) seen(y, anchor []float64) *Seen {
	at := func(x []float64) []float64 {
		u, v := x[0]-3, x[1]+1
		return []float64{b.h[0]*u + b.h[1]*v, b.h[2]*u + b.h[3]*v}
	}
	g := at(y)
	s := &Seen{F: (g[0]*(y[0]-3) + g[1]*(y[1]+1)) / 2, G: g, Lasso: []float64{0.01, 0.02}, H: slices.Clone(b.h[:]),
		Share: 0.7}
	if anchor != nil {
		s.Anchor = at(anchor)
	}
	return s
}

// begun is a solver that has not taken a step.
func begun(m *Method, p *Point) Solver {
	s := m.New()
	if a, ok := s.(*Ascent); ok {
		a.Begin(DualProblem{Weight: 10, Rows: 10, Splits: 2, L2: []float64{0.1, 0}, Lasso: []float64{0, 0.1},
			Size:     []float64{1, 2},
			Variable: func(w []float64) []float64 { return w }}, p)
	}
	return s
}

// step takes one.
func step(b bowl, s Solver, p *Point) {
	var anchor []float64
	if a, ok := s.(Anchored); ok {
		if a.Anchor() == nil {
			a.SetAnchor(p.Y, b.seen(p.Y, nil).G)
		}
		anchor = a.Anchor()
	}
	s.Step(p, b.seen(p.Y, anchor))
	if a, ok := s.(*Ascent); ok {
		a.Look(1, 2, 1)
	}
}

// TestASolverGoesOn from what it has laid out as if nothing had been.
func TestASolverGoesOn(t *testing.T) {
	methods := slices.Clone(table)
	methods = append(methods, Method{Name: "momentum", New: func() Solver { return WithMomentum(0.9) }})
	for _, m := range methods {
		for steps := range 6 {
			b := bowl{[4]float64{2, 0.5, 0.5, 1}}
			p := &Point{X: []float64{0.5, 0}, Y: []float64{0.5, 0}, Step: 0.1}
			s := begun(&m, p)
			for range steps {
				step(b, s, p)
			}
			raw, err := s.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			q := &Point{X: slices.Clone(p.X), Y: slices.Clone(p.Y), Step: p.Step}
			r := begun(&m, &Point{X: make([]float64, 2), Y: make([]float64, 2)})
			if err := r.UnmarshalBinary(raw); err != nil {
				t.Fatal(m.Name, err)
			}
			for range 3 {
				step(b, s, p)
				step(b, r, q)
			}
			if !slices.Equal(p.X, q.X) || !slices.Equal(p.Y, q.Y) {
				t.Errorf("%s after %d steps: %v and %v", m.Name, steps, p, q)
			}
		}
	}
}

// TestACutStateIsRefused at every number that it may be cut after.
func TestACutStateIsRefused(t *testing.T) {
	for i := range table {
		p := &Point{X: []float64{0.5, 0}, Y: []float64{0.5, 0}, Step: 0.1}
		s := begun(&table[i], p)
		step(bowl{[4]float64{2, 0.5, 0.5, 1}}, s, p)
		raw, _ := s.MarshalBinary()
		for cut := 0; cut < len(raw); cut += 8 {
			if err := begun(&table[i], p).UnmarshalBinary(raw[:cut]); err == nil && cut < len(raw)-8 {
				t.Errorf("%s: %d numbers of %d are taken", table[i].Name, cut/8, len(raw)/8)
			}
		}
	}
}

// TestEverySolverIsInTheTable by its name, and finds the way to the best point.
func TestEverySolverIsInTheTable(t *testing.T) {
	for _, name := range Names() {
		m := Of(name)
		if got, err := Parse(string(name)); err != nil || got != name || m.New == nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if m.Wants >= Ascents || m.Name == Sqrt || m.Name == Adam {
			continue // of these, rows are needed, or many steps
		}
		b, p := bowl{[4]float64{2, 0.5, 0.5, 1}}, &Point{X: make([]float64, 2), Y: make([]float64, 2), Step: 0.3}
		s := m.New()
		for range 200 {
			step(b, s, p)
		}
		if num.Distance(p.Y, []float64{3, -1}) > 0.05 {
			t.Errorf("%s stands at %v", name, p.Y)
		}
	}
	if _, err := Parse("lloyd"); err == nil {
		t.Error("lloyd is a solver")
	}
}
