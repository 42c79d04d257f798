package linear

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/storage/input"
)

// Model is a linear model: a binary classifier, or, where its loss is the
// squared one, a regression.
type Model struct {
	Job        string    `json:"job"`
	Loss       Loss      `json:"loss,omitempty"` // empty is logistic
	Labels     [2]string `json:"labels"`         // originals of 0 and 1
	TextLabels bool      `json:"text_labels"`
	OneVsRest  bool      `json:"one_vs_rest"`
	Features   int       `json:"features"`
	IndexBase  int       `json:"index_base"`       // first column number of sparse text
	Names      []string  `json:"names,omitempty"`  // of features, where the data named them
	Label      string    `json:"label,omitempty"`  // name or number of the label's column
	Weight     string    `json:"weight,omitempty"` // that of the rows' weights' column
	Intercept  float64   `json:"intercept"`
	// score above which a row has Labels[1]; nil is a half, of a margin 0
	Threshold *float64       `json:"threshold,omitempty"`
	Ended     *Ended         `json:"ended,omitempty"`   // where training ended by its own rule
	Quality   *train.Quality `json:"quality,omitempty"` // how near it is known to be to the best
	Weights   []float64      `json:"-"`
	Errors    *Errors        `json:"standard_errors,omitempty"` // of the weights and the intercept; nil where unknown
	// Calibration makes probabilities of margins; nil where there is none.
	Calibration *model.Calibration `json:"calibration,omitempty"`
	// Prepared takes raw rows to those that the weights are of; nil where they are
	// the same.
	Prepared *input.Prepared `json:"preparation,omitempty"`
}

func (m *Model) known() model.Known {
	return model.Known{Features: m.Features, IndexBase: m.IndexBase, Label: m.Label, Weight: m.Weight,
		Prepared: m.Prepared}
}

type file struct {
	Version int `json:"version"`
	*Model
}

// Save writes the model's directory.
func (m *Model) Save(dir string, overwrite bool) error {
	names := model.FeatureNames(m.Features, m.Prepared, m.Names, m.IndexBase)
	var c model.Columns
	c.Texts("feature", names).Floats("weight", m.Weights)
	if m.Errors != nil {
		c.Floats("standard_error", m.Errors.Weights)
	}
	return model.Save(dir, overwrite, file{model.Version, m}, &c)
}

// linearKind is what is known of linear models.
var Kind = model.Kind{Is: isLinear, Load: func(head, numbers []byte) (model.Model, *input.Prepared, error) {
	m := &Model{}
	err := m.load(head, numbers)
	return m, m.Prepared, err
}}

func (m *Model) load(head, numbers []byte) error {
	if err := json.Unmarshal(head, m); err != nil {
		return err
	}
	if m.Loss != "" {
		if _, err := ParseLoss(string(m.Loss)); err != nil {
			return err
		}
	}
	if !num.Finite(m.Intercept) {
		return fault.Newf(fault.Corrupt, "read", "model.json", "the intercept is %v", m.Intercept)
	}
	if m.Calibration != nil {
		if err := m.Calibration.Check(); err != nil {
			return err
		}
	}
	if m.Threshold != nil {
		if err := m.SetThreshold(*m.Threshold); err != nil {
			return err
		}
	}
	return model.LoadColumns(numbers, m.Features, func(s *model.Stored) {
		if m.Weights = s.Floats("weight"); m.Errors != nil {
			m.Errors.Weights = s.Floats("standard_error")
		}
	})
}

// sameKind reports whether training can begin with another model.
func (m *Model) sameKind(first *Model) error {
	if first.Features != m.Features || first.IndexBase != m.IndexBase ||
		(first.Loss == Squared) != (m.Loss == Squared) {
		return fault.Newf(fault.Usage, "begin with", "the model of --init",
			"it has %d features from %d on and is a %s model; wanted are %d from %d on, of %s",
			first.Features, first.IndexBase, first.Job, m.Features, m.IndexBase, m.Job)
	}
	if len(first.Names) > 0 && len(m.Names) > 0 && !slices.Equal(first.Names, m.Names) {
		return fault.Newf(fault.Usage, "begin with", "the model of --init",
			"its features are %.200q, those of the data %.200q", first.Names, m.Names)
	}
	if first.Labels != m.Labels {
		return fault.Newf(fault.Usage, "begin with", "the model of --init", "it tells %q from %q, wanted are %q and %q",
			first.Labels[1], first.Labels[0], m.Labels[1], m.Labels[0])
	}
	return nil
}

// Beginning is a model that training begins with, numbers and all, so that a run's log
// has what it needs to be replayed.
type Beginning struct {
	Model
	Numbers []float64 // the model's weights
}

// BeginWith returns a model to begin with.
func BeginWith(m *Model) *Beginning { return &Beginning{*m, m.Weights} }

// isLinear reports whether a model is linear by its job, or, where that has a name of its
// own, by its loss.
func isLinear(job, loss string) bool {
	_, err := ParseLoss(loss)
	return err == nil || slices.Contains([]string{"logistic", "svm", "linear", "ridge", "lasso", "elasticnet"}, job)
}

// shownWeights is how many weights Describe shows.
const shownWeights = 10

// Describe returns the model in a few lines: its size, its labels, and the weights
// that are largest.
func (m *Model) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d features, %d nonzero weights, intercept %g", m.Features, m.Nonzeros(), m.Intercept)
	if m.Errors != nil {
		b.WriteString(shownError(m.Intercept, m.Errors.Intercept))
	}
	b.WriteByte('\n')
	if m.Loss != Squared {
		fmt.Fprintf(&b, "labels %q (0) and %q (1)\n", m.Labels[0], m.Labels[1])
	}
	if m.Threshold != nil {
		fmt.Fprintf(&b, "%q is said of scores above %g\n", m.Labels[1], *m.Threshold)
	}
	b.WriteString(m.Calibration.String())
	b.WriteString(m.Prepared.String())
	at := make([]int, len(m.Weights))
	for j := range at {
		at[j] = j
	}
	slices.SortStableFunc(at, func(i, j int) int {
		switch a, b := math.Abs(m.Weights[i]), math.Abs(m.Weights[j]); {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	names := model.FeatureNames(m.Features, m.Prepared, m.Names, m.IndexBase)
	for _, j := range at[:min(len(at), shownWeights)] {
		fmt.Fprintf(&b, "  %-20s %+.6g", names[j], m.Weights[j])
		if m.Errors != nil {
			b.WriteString(shownError(m.Weights[j], m.Errors.Weights[j]))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
