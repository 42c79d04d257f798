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

// kinds are those of all models that a program can read. Linear models are asked last:
// their jobs may have any name.
var kinds = []modelKind{softmaxKind, kmeansKind, factorKind, networkKind, linearKind}

// LoadModel reads a model's directory.
func LoadModel(dir string) (Model, error) { return load(dir, kinds) }

// LoadLinear reads the directory of a linear model.
func LoadLinear(dir string) (*LinearModel, error) {
	return loadAs[*LinearModel](dir, "linear", kinds)
}

// BeginWith reads the directory of a linear model to begin with.
func BeginWith(dir string) (*Beginning, error) {
	m, err := loadAs[*LinearModel](dir, "linear", kinds)
	if err != nil {
		return nil, err
	}
	return beginWith(m), nil
}

// BeginWithClasses reads the directory of a multinomial model to begin with.
func BeginWithClasses(dir string) (*ClassBeginning, error) {
	m, err := loadAs[*SoftmaxModel](dir, "multinomial", kinds)
	if err != nil {
		return nil, err
	}
	return beginWithClasses(m), nil
}
