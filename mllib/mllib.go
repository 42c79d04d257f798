package mllib

import (
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
)

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
var kinds = []model.Kind{softmaxKind, kmeansKind, factorKind, networkKind, linearKind}

// LoadModel reads a model's directory.
func LoadModel(dir string) (model.Model, error) { return model.Load(dir, kinds) }

// LoadLinear reads the directory of a linear model.
func LoadLinear(dir string) (*LinearModel, error) {
	return model.LoadAs[*LinearModel](dir, "linear", kinds)
}

// BeginWith reads the directory of a linear model to begin with.
func BeginWith(dir string) (*Beginning, error) {
	m, err := model.LoadAs[*LinearModel](dir, "linear", kinds)
	if err != nil {
		return nil, err
	}
	return beginWith(m), nil
}

// BeginWithClasses reads the directory of a multinomial model to begin with.
func BeginWithClasses(dir string) (*ClassBeginning, error) {
	m, err := model.LoadAs[*SoftmaxModel](dir, "multinomial", kinds)
	if err != nil {
		return nil, err
	}
	return beginWithClasses(m), nil
}

// Summary is what every training run comes to beside its model.
type Summary = train.Summary

// Quality says of a model how far its objective was bounded to lie above the least one.
type Quality = train.Quality

// What bounds how far a result lies above the least objective.
const (
	ByDuality   = train.ByDuality
	ByCurvature = train.ByCurvature
	ByGradient  = train.ByGradient
)

// StopRule is what ends a training run beside its limits.
type StopRule = train.StopRule

// The rules of SEMANTICS section 4.
const (
	ByObjective = train.ByObjective
	ByWeights   = train.ByWeights
	ByFlexRR    = train.ByFlexRR
)

// ParseStopRule is the rule of a name.
func ParseStopRule(name string) (StopRule, error) { return train.ParseStopRule(name) }

// Model is what a training job comes to.
type Model = model.Model

// CanSave reports whether a model may be saved to a directory, before there is
// one to save.
func CanSave(dir string, overwrite bool) error { return model.CanSave(dir, overwrite) }
