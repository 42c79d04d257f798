package mllib

import "github.com/volley-engine/volley/mllib/internal/solver"

// Solver is a method of minimizing an objective.
type Solver = solver.Name

// The solvers that programs name.
const (
	Auto     = solver.Auto
	Nesterov = solver.Nesterov
	Adam     = solver.Adam
)

// ParseSolver is the solver of a name.
func ParseSolver(name string) (Solver, error) { return solver.Parse(name) }
