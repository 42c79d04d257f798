package solver

import (
	"fmt"
	"slices"
	"strings"
)

// The names of solvers. The first six after Auto step along mean gradients, which a cut step
// gives as well, and SDCA takes any part of the rows (SEMANTICS section 3); the others need
// the same objective each time.
const (
	Auto     Name = "auto"     // chosen by size and shape
	Descent  Name = "gd"       // gradient descent, its step from the data's curvature
	Nesterov Name = "nesterov" // accelerated gradient with restarts; proximal under an L1 penalty
	Sqrt     Name = "sqrt"     // MLlib's step/√t
	Constant Name = "constant" // gradient descent with a given step
	Adam     Name = "adam"     // steps by running moments of the gradient
	SVRG     Name = "svrg"     // gradient descent on some rows, their noise reduced by an anchor
	SDCA     Name = "sdca"     // stochastic dual coordinate ascent in the frame of CoCoA+
	LBFGS    Name = "lbfgs"    // limited-memory quasi-Newton
	OWLQN    Name = "owlqn"    // the same under an L1 penalty
	Newton   Name = "newton"   // second derivatives of all pairs of variables
	Normal   Name = "normal"   // normal equations of a squared loss: one pass
	CD       Name = "cd"       // coordinate descent on the same, for an L1 penalty
)

// table has all solvers.
var table = []Method{descent, nesterov, root, constant, adam, svrg, sdca, lbfgs, owlqn, newton, normal, cd}

// Names are those of all solvers.
func Names() (names []Name) {
	for i := range table {
		names = append(names, table[i].Name)
	}
	return names
}

// Of returns the solver of a name. One that is not in the table, as Auto, or that of a
// family which has none to choose from, is described by its name alone.
func Of(name Name) *Method {
	if i := slices.IndexFunc(table, func(m Method) bool { return m.Name == name }); i >= 0 {
		return &table[i]
	}
	return &Method{Name: name}
}

// Parse is the solver of a name, or Auto.
func Parse(name string) (Name, error) {
	names := []string{string(Auto)}
	for _, n := range Names() {
		names = append(names, string(n))
	}
	if slices.Contains(names, name) {
		return Name(name), nil
	}
	return "", fmt.Errorf("%q is not one of %s", name, strings.Join(names, ", "))
}
