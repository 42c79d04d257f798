package mllib

import (
	"context"

	"github.com/volley-engine/volley/mllib/als"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/mllib/kmeans"
	"github.com/volley-engine/volley/mllib/lda"
	"github.com/volley-engine/volley/mllib/linear"
	"github.com/volley-engine/volley/mllib/mlp"
	"github.com/volley-engine/volley/rdd"
)

// Model is what a training job comes to.
type Model = model.Model

// Confusing is a model that says which labels it takes for which, and Confusion is the table of them.
type (
	Confusing = model.Confusing
	Confusion = model.Confusion
)

// Reliability is how often what a model says is so, by ranges of probabilities.
type Reliability = model.Reliability

// ImportanceConfig configures how the importance of columns is measured, and Importances are what it comes to.
type (
	ImportanceConfig = model.ImportanceConfig
	Importance       = model.Importance
	Importances      = model.Importances
)

// LessIsBetter are the metrics of which less is better.
var LessIsBetter = model.LessIsBetter

// ImportancesOf measures how much worse a model becomes where a column's values are those of other rows.
func ImportancesOf(ctx context.Context, m Model, in rdd.Input, uris []string,
	c ImportanceConfig) (*Importances, error) {
	return model.ImportancesOf(ctx, m, in, uris, c)
}

// kinds are those of all models that a program can read. Linear models are asked last:
// their jobs may have any name.
var kinds = []model.Kind{linear.SoftmaxKind, kmeans.Kind, als.Kind, lda.Kind, mlp.Kind, linear.Kind}

// LoadModel reads a model's directory.
func LoadModel(dir string) (Model, error) { return model.Load(dir, kinds) }

// CanSave reports whether a model may be saved to a directory, before there is
// one to save.
func CanSave(dir string, overwrite bool) error { return model.CanSave(dir, overwrite) }

// LoadLinear reads the directory of a linear model.
func LoadLinear(dir string) (*LinearModel, error) {
	return model.LoadAs[*LinearModel](dir, "a linear job", kinds)
}

// BeginWith reads the directory of a linear model to begin with.
func BeginWith(dir string) (*Beginning, error) {
	m, err := LoadLinear(dir)
	if err != nil {
		return nil, err
	}
	return linear.BeginWith(m), nil
}

// BeginWithFactors reads the directory of a factorization to begin with.
func BeginWithFactors(dir string) (*FactorBeginning, error) {
	m, err := model.LoadAs[*FactorModel](dir, "als", kinds)
	if err != nil {
		return nil, err
	}
	return als.BeginWith(m), nil
}

// BeginWithNetwork reads the directory of a network to begin with.
func BeginWithNetwork(dir string) (*NetworkBeginning, error) {
	m, err := model.LoadAs[*NetworkModel](dir, "mlp", kinds)
	if err != nil {
		return nil, err
	}
	return mlp.BeginWith(m), nil
}

// BeginWithClasses reads the directory of a multinomial model to begin with.
func BeginWithClasses(dir string) (*ClassBeginning, error) {
	m, err := model.LoadAs[*SoftmaxModel](dir, "softmax", kinds)
	if err != nil {
		return nil, err
	}
	return linear.BeginWithClasses(m), nil
}

// PlaceObjects writes what a job has made below the name of a store, as Save does with a model: made has the bytes by
// the names of files.
func PlaceObjects(dir string, overwrite bool, made map[string][]byte) error {
	return model.PlaceObjects(dir, overwrite, made)
}
