package solver

import (
	"fmt"
	"slices"
	"strings"
)

// Auto is no solver: one is chosen by size and shape.
const Auto Name = "auto"

// table has all solvers, in the order they are listed in. Those that are not Exact step along mean gradients, which a
// cut step gives as well, or take any part of the rows (SEMANTICS section 3); the others need the same objective each
// time.
var table = []Method{descent, nesterov, root, constant, adam, svrg, saga, sdca,
	lbfgs, owlqn, newton, interior, normal, cd}

// Names returns the names of all solvers.
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

// Parse returns the solver of a name, or Auto.
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
