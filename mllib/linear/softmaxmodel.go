package linear

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
)

// SoftmaxModel is a model of several classes: a multinomial logistic regression, or, where it has Margins, a support
// vector machine for each class against the rest. It has weights of each feature and class. A saved one is plain data,
// as a Model's.
type SoftmaxModel struct {
	model.RowModel
	Intercepts []float64      `json:"intercepts"`
	Ended      *Ended         `json:"ended,omitempty"`   // where training ended by its own rule
	Quality    *train.Quality `json:"quality,omitempty"` // how near it is known to be to the best

	weights []float64 // Features × classes
}

type softmaxFile struct {
	model.Head
	*SoftmaxModel
}

// Save writes the model's directory.
func (m *SoftmaxModel) Save(dir string, overwrite bool) error {
	var c model.Columns
	c.Texts("feature", model.FeatureNames(m.Features, m.Prepared, m.Names, m.IndexBase))
	k := len(m.Labels)
	for i, label := range m.Labels {
		of := make([]float64, m.Features)
		for j := range of {
			of[j] = m.weights[j*k+i]
		}
		c.Floats(classColumn(label), of)
	}
	return model.Save(dir, overwrite, softmaxFile{model.Head{Version: model.Version, Job: "softmax"}, m}, &c)
}

// classColumn returns the name of the column of a class.
func classColumn(label string) string { return "weight of " + label }

// SoftmaxKind is what is known of multinomial logistic regressions.
var SoftmaxKind = model.Kind{Is: model.JobIs("softmax"),
	Load: func(head, numbers []byte) (model.Model, *input.Prepared, error) {
		m := &SoftmaxModel{}
		err := m.load(head, numbers)
		return m, m.Prepared, err
	}}

func (m *SoftmaxModel) load(head, numbers []byte) error {
	if err := json.Unmarshal(head, m); err != nil {
		return err
	}
	if len(m.Labels) < 2 || len(m.Intercepts) != len(m.Labels) || m.Features < 0 || m.Features > 1<<30 {
		return fault.Newf(fault.Corrupt, "read", "model.json", "%d labels, %d intercepts and %d features do not fit",
			len(m.Labels), len(m.Intercepts), m.Features)
	}
	for _, b := range m.Intercepts {
		if !num.Finite(b) {
			return fault.Newf(fault.Corrupt, "read", "model.json", "an intercept is %v", b)
		}
	}
	k := len(m.Labels)
	return model.LoadColumns(numbers, m.Features, func(s *model.Stored) {
		m.weights = make([]float64, m.Features*k)
		for i, label := range m.Labels {
			for j, w := range s.Floats(classColumn(label)) {
				m.weights[j*k+i] = w
			}
		}
	})
}

// margins of a row given by its features' places and values.
func (m *SoftmaxModel) margins(z []float64, places []int, values []float64) {
	k := len(z)
	copy(z, m.Intercepts)
	for i, j := range places {
		kernel.Axpy(values[i], m.weights[j*k:(j+1)*k], z)
	}
}

// Says returns what is said of a row.
func (m *SoftmaxModel) Says(each bool) (*model.Says, error) { return m.SaysOf(each, m.margins) }

// Predict writes one line a row as CSV: the predicted label, one of the originals, and
// its probability, or margin.
func (m *SoftmaxModel) Predict(ctx context.Context, in rdd.Input, uris []string, w io.Writer) (rows int64, err error) {
	return model.Predict(ctx, m, in, uris, w, false)
}

// Probabilities writes the predicted label and the probability of each class of a row, a line each.
func (m *SoftmaxModel) Probabilities(ctx context.Context, in rdd.Input, uris []string, w io.Writer) (int64, error) {
	return model.Predict(ctx, m, in, uris, w, true)
}

// Evaluate computes accuracy, log_loss, and the means over classes of precision, recall, f1 and auc.
func (m *SoftmaxModel) Evaluate(ctx context.Context, in rdd.Input, uris []string) (map[string]float64, error) {
	return model.EvaluateRows(ctx, &m.RowModel, in, uris, m.margins)
}

// Confusion returns how often each label was said of rows of each.
func (m *SoftmaxModel) Confusion(ctx context.Context, in rdd.Input, uris []string) (*model.Confusion, error) {
	return model.ConfusionOf(ctx, &m.RowModel, in, uris, m.margins)
}

// Describe returns the model in a few lines.
func (m *SoftmaxModel) Describe() string {
	how := ""
	if m.Margins {
		how = ", each against the rest"
	}
	return fmt.Sprintf("%d classes%s, %d features\nlabels %q\n", len(m.Labels), how, m.Features,
		m.Labels[:min(len(m.Labels), 20)]) + m.Prepared.String()
}
