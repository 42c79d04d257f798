package linear

import (
	"context"
	"fmt"
	"math"

	"github.com/volley-engine/volley/mllib/internal/solver"
)

// A hinge whose method was not asked for is led by a few steps of dual ascent, which cost little. Where they leave
// little of the duality gap, Newton's method needs few steps from there, of which each is of few rows. Elsewhere, and
// where Newton's method takes many, or ends without a proof, the interior-point method goes on.
const (
	leadingSteps = 2
	littleGap    = 0.2 // of the objective
	fewSteps     = 10
)

// chooseLed has dual ascent lead a hinge whose method was chosen, not asked for.
func (t *trainer) chooseLed() {
	if c := &t.cfg; c.Solver == solver.Interior && c.Init == nil {
		t.led, c.Solver = solver.NewLed(), solver.SDCA
		t.out.SolverWhy = fmt.Sprintf("%d steps of it show which of newton and interior goes on", leadingSteps)
	}
}

// scales returns the method that chooses the units of variables: where dual ascent leads, that which follows.
func (t *trainer) scales() *solver.Method {
	if t.led != nil {
		return solver.Of(solver.Newton)
	}
	return t.method
}

// follow has the method go on that dual ascent has led to, in this run or in the one that is resumed.
func (t *trainer) follow() {
	if t.led == nil || t.led.By() == "" || t.led.By() == t.cfg.Solver {
		return
	}
	t.dual, t.cfg.Solver = nil, t.led.By()
	t.method = solver.Of(t.cfg.Solver)
	t.inner, _ = t.led.Then.(*solver.Inner)
	t.out.Solver, t.out.SolverWhy = t.cfg.Solver, t.whyLed()
}

// whyLed returns why the method was taken that goes on.
func (t *trainer) whyLed() string {
	if t.cfg.Solver == solver.Newton {
		return fmt.Sprintf("%d steps of sdca left little of the duality gap", leadingSteps)
	}
	return fmt.Sprintf("%d steps of sdca left much of the duality gap, or newton some after them", leadingSteps)
}

// lead goes on from where dual ascent has led, by the method that its gap tells to.
func (t *trainer) lead(objective, gap float64) {
	by := solver.Interior
	if gap <= float64(littleGap*math.Abs(objective)) {
		by = solver.Newton
	}
	t.st.Width = min(startWidth, max(steadyWidth, gap))
	t.goOn(by)
}

// goOn has a method go on from the best point that is known.
func (t *trainer) goOn(by solver.Name) {
	copy(t.st.Y, t.st.X)
	if point, better := t.st.Guard.Better(t.st.Best); better {
		copy(t.st.Y, point)
		copy(t.st.X, point)
		t.st.Best = t.st.Guard.F
	}
	t.st.Ahead = false
	t.led.GoOn(by)
	t.follow()
	if t.inner != nil {
		t.inner.Begin()
	}
}

// proves reports whether the interior-point method goes on where Newton's method has ended without a proof.
func (t *trainer) proves(ctx context.Context) (bool, error) {
	if t.led == nil || t.led.By() != solver.Newton || t.st.Ahead && t.out.Converged { // its end has been looked at
		return false, nil
	}
	copy(t.st.Y, t.st.X)
	if _, err := t.certify(ctx); err != nil || t.out.Converged {
		return false, err
	}
	t.goOn(solver.Interior)
	return true, nil
}
