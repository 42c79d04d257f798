package mllib

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/mllib/lda"
	"github.com/volley-engine/volley/rdd"
)

// Predict writes what a model says of each row of some data, in input order, as lines of CSV after a header: labels
// and scores, or predictions; or with each set labels and the probability of each class, in the order of the model's
// labels.
func Predict(ctx context.Context, m Model, in rdd.Input, uris []string, w io.Writer, each bool) (int64, error) {
	if topics, is := m.(*lda.Model); is && !each { // documents are no rows of columns
		return topics.Predict(ctx, in, uris, w)
	}
	return model.Predict(ctx, m, in, uris, w, each)
}

// SetThreshold sets the score above which a model of two labels says that a row has the greater one.
func SetThreshold(m Model, score float64) error { return model.SetThreshold(m, score) }

// PredictConfig configures predictions that the executors of a cluster make. Paths are to be absolute where these are
// other processes.
type PredictConfig struct {
	Model         string // directory of a model, which all of them can read
	Data          []string
	Input         rdd.Input
	Output        string // directory for what is said, which is the same for all of them
	Overwrite     bool   // an output that is there is replaced
	Compressed    string // codec of the output's files: none, gzip or zstd; empty is none
	Probabilities bool   // of each class, in place of the score
	// Threshold is the score above which a row is said to have the greater label; nil is the model's own.
	Threshold *float64
}

// scoring is what the job's process finds out of the model and the data, and every node is told.
type scoring struct {
	Model  string // digest
	Input  string // how the data are read, in JSON
	Header string // of each file
}

// PredictPlan is the plan of predictions.
type PredictPlan struct {
	save rdd.LaterPart[scoring, rdd.Action[int64]]
}

// BuildPredict declares the plan of predictions.
func BuildPredict(g *rdd.Graph, c PredictConfig) PredictPlan {
	return PredictPlan{rdd.Later(g, func(g *rdd.Graph, s scoring) rdd.Action[int64] {
		var in rdd.Input
		if err := json.Unmarshal([]byte(s.Input), &in); err != nil {
			panic(err) // it was made by json.Marshal
		}
		in.Keep, in.Change, in.Stored = c.Input.Keep, c.Input.Change, c.Input.Stored // functions do not travel
		said := model.Said(g, in, c.Data, c.once(s.Model))
		options := []rdd.SaveOption{rdd.Header(s.Header)}
		if c.Overwrite {
			options = append(options, rdd.Overwrite())
		}
		if c.Compressed != "" {
			options = append(options, rdd.Compressed(c.Compressed))
		}
		return rdd.SaveText(said, c.Output, options...)
	})}
}

// load reads the model, and returns its digest.
func (c PredictConfig) load() (Model, string, error) {
	m, digest, err := model.LoadDigest(c.Model, kinds)
	if err == nil && c.Threshold != nil {
		err = SetThreshold(m, *c.Threshold)
	}
	return m, digest, err
}

// once returns what asks the model of a digest until it has answered.
func (c PredictConfig) once(digest string) func() (*model.Says, error) {
	var mu sync.Mutex
	var says *model.Says
	return func() (s *model.Says, err error) {
		mu.Lock()
		defer mu.Unlock()
		if says == nil {
			says, err = c.says(digest)
		}
		return says, err
	}
}

// says returns what the model of a digest says.
func (c PredictConfig) says(digest string) (*model.Says, error) {
	m, got, err := c.load()
	if err == nil && got != digest {
		err = model.Another(c.Model)
	}
	if err != nil {
		return nil, err
	}
	return m.Says(c.Probabilities)
}

// RunPredict makes the predictions, and returns how many rows there are.
func RunPredict(ctx context.Context, s *rdd.Session, c PredictConfig, p PredictPlan) (rows int64, err error) {
	m, digest, err := c.load()
	if err != nil {
		return 0, err
	}
	says, err := m.Says(c.Probabilities)
	if err != nil {
		return 0, err
	}
	in, err := m.InputOf(ctx, c.Input, c.Data)
	if err != nil {
		return 0, err
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return 0, err
	}
	save, err := p.save.Build(ctx, s, scoring{digest, string(raw), says.Header})
	if err != nil {
		return 0, err
	}
	return save.Run(ctx, s)
}
