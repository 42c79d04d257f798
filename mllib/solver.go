package mllib

import (
	"fmt"
	"slices"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// Solver is a method of minimizing an objective.
type Solver string

// The solvers. The first seven step along mean gradients, which a cut step gives
// as well, and sdca takes any part of the rows (SEMANTICS section 3); the others
// need the same objective each time.
const (
	Auto     Solver = "auto"     // chosen by size and shape
	Descent  Solver = "gd"       // gradient descent, its step from the data's curvature
	Nesterov Solver = "nesterov" // accelerated gradient with restarts; proximal under an L1 penalty
	Sqrt     Solver = "sqrt"     // MLlib's step/√t
	Constant Solver = "constant" // gradient descent with a given step
	Adam     Solver = "adam"     // steps by running moments of the gradient
	SVRG     Solver = "svrg"     // gradient descent on some rows, their noise reduced by an anchor
	SDCA     Solver = "sdca"     // stochastic dual coordinate ascent in the frame of CoCoA+
	LBFGS    Solver = "lbfgs"    // limited-memory quasi-Newton
	OWLQN    Solver = "owlqn"    // the same under an L1 penalty
	Newton   Solver = "newton"   // second derivatives of all pairs of variables
	Normal   Solver = "normal"   // normal equations of a squared loss: one pass
	CD       Solver = "cd"       // coordinate descent on the same, for an L1 penalty
)

var solvers = []Solver{Auto, Descent, Nesterov, Sqrt, Constant, Adam, SVRG, SDCA, LBFGS, OWLQN, Newton, Normal, CD}

// ParseSolver is the solver of a name.
func ParseSolver(name string) (Solver, error) {
	var names []string
	for _, s := range solvers {
		if name == string(s) {
			return s, nil
		}
		names = append(names, string(s))
	}
	return "", fmt.Errorf("%q is not one of %s", name, strings.Join(names, ", "))
}

// exact reports whether a solver needs the same objective each time.
func (s Solver) exact() bool {
	switch s {
	case LBFGS, OWLQN, Newton, Normal, CD:
		return true
	}
	return false
}

// curved reports whether a solver needs second derivatives of all pairs.
func (s Solver) curved() bool { return s == Newton || s == Normal || s == CD }

// Check refuses configurations that no data could make right.
func (c *LinearConfig) Check() error {
	lasso := c.Reg > 0 && c.Alpha > 0
	var why, hint string
	several := c.Loss == Softmax
	badWeight := slices.ContainsFunc(c.Classes, func(w float64) bool { return !(w > 0) || !num.Finite(w) })
	switch {
	case badWeight || several && c.ClassWeights != [2]float64{} || !several && c.Classes != nil:
		return fault.Newf(fault.Usage, c.job(), "--class-weights", "there must be a weight above 0 for each class")
	case c.Cut && c.Solver.exact():
		why, hint = "it needs the same objective in every step, and --sync may cut steps short", "use --sync steal, which sees every row without waiting for stragglers, or a solver of first order such as nesterov"
	case lasso && (c.Solver == LBFGS || c.Solver == Normal):
		why, hint = "it cannot minimize an L1 penalty", "use owlqn, cd, newton or nesterov, or --alpha 0"
	case c.Solver == SVRG && c.Loss == Softmax:
		why, hint = "it is for a margin a row", "use nesterov or lbfgs"
	case c.Solver.curved() && c.Stop != "" && c.Stop != ByObjective:
		why, hint = "it ends by what its next step would gain", "leave --stop out, or use lbfgs, owlqn or nesterov"
	case c.Solver == SDCA && c.Stop != "" && c.Stop != ByObjective:
		why, hint = "it ends by its duality gap", "leave --stop out, or use another solver"
	case c.Solver == SDCA && c.Init != nil:
		why, hint = "it begins with dual variables, which no model has", "use another solver with --init"
	case c.Solver == SDCA && c.Loss == Softmax:
		why, hint = "it is for a margin a row", "use lbfgs, owlqn or nesterov"
	case c.Loss == Softmax && c.Solver.curved():
		why, hint = "there are as many second derivatives as pairs of classes", "use lbfgs, owlqn or nesterov"
	case c.Loss != Squared && (c.Solver == Normal || c.Solver == CD):
		why, hint = "it is for squared losses", "use newton or lbfgs"
	default:
		return nil
	}
	return fault.Newf(fault.Usage, c.job(), "--solver "+string(c.Solver), "%s", why).WithHint(hint)
}

// The widest data whose second derivatives of all pairs are summed.
const (
	narrowSquared = 2048 // in one pass
	narrowCurved  = 768  // in several
)

// choose picks a solver for data of a number of features, and says why.
func (c *LinearConfig) choose(features int) (s Solver, why string) {
	lasso := c.Reg > 0 && c.Alpha > 0
	switch {
	case c.Cut:
		return Nesterov, "steps may be cut short, so that only mean gradients are the same from step to step"
	case c.Stop != "" && c.Stop != ByObjective:
		return c.chooseWide("--stop is not by the objective")
	case c.Loss == Squared && features <= narrowSquared && lasso:
		return CD, fmt.Sprintf("%d features are few enough for one pass that sums their products", features)
	case c.Loss == Squared && features <= narrowSquared:
		return Normal, fmt.Sprintf("%d features are few enough for one pass that sums their products", features)
	case features <= narrowCurved:
		return Newton, fmt.Sprintf("%d features are few enough to sum second derivatives of all pairs", features)
	}
	return c.chooseWide(fmt.Sprintf("%d features are too many for second derivatives of all pairs", features))
}

// chooseWide picks a solver where second derivatives are not to be had, and adds to
// the reason.
func (c *LinearConfig) chooseWide(why string) (Solver, string) {
	switch {
	case c.Cut:
		return Nesterov, "steps may be cut short, so that only mean gradients are the same from step to step"
	case c.Reg > 0 && c.Alpha > 0:
		return OWLQN, why + ", and there is an L1 penalty"
	}
	return LBFGS, why
}
