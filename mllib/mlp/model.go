package mlp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
)

// Model is a fully connected network. A saved one is plain data, as a
// linear one's.
type Model struct {
	model.RowModel
	Layers     []int      `json:"layers"` // sizes, the input's first
	Activation Activation `json:"activation"`

	numbers []float64 // as a network has them
}

type file struct {
	model.Head
	*Model
}

// Save writes the model's directory.
func (m *Model) Save(dir string, overwrite bool) error {
	net := network{Sizes: m.Layers}
	var layers, units []int64
	var biases []float64
	var weights [][]float64
	for l := 1; l < len(m.Layers); l++ {
		w, b := net.layer(m.numbers, l)
		for unit, bias := range b {
			layers, units, biases = append(layers, int64(l)), append(units, int64(unit)), append(biases, bias)
			of := make([]float64, m.Layers[l-1])
			for i := range of {
				of[i] = w[i*len(b)+unit]
			}
			weights = append(weights, of)
		}
	}
	var c model.Columns
	return model.Save(dir, overwrite, file{model.Head{Version: model.Version, Job: "mlp"}, m},
		c.Ints("layer", layers).Ints("unit", units).Floats("bias", biases).Lists("weights", weights))
}

// parse reads the numbers of a row for each unit, layer by layer.
func (m *Model) parse(s *model.Stored) {
	biases, weights := s.Floats("bias"), s.Lists("weights")
	if len(biases) != len(weights) {
		return // which is noted
	}
	net := network{Sizes: m.Layers}
	m.numbers = make([]float64, numbers(m.Layers))
	for l := 1; l < len(m.Layers); l++ {
		w, b := net.layer(m.numbers, l)
		copy(b, biases)
		for unit := range b {
			if len(weights[unit]) != m.Layers[l-1] {
				s.Fail("a unit has a weight too many, or too few")
				return
			}
			for i, v := range weights[unit] {
				w[i*len(b)+unit] = v
			}
		}
		biases, weights = biases[len(b):], weights[len(b):]
	}
}

// networkKind is what is known of networks.
var Kind = model.Kind{Is: model.JobIs("mlp"),
	Load: func(head, numbers []byte) (model.Model, *input.Prepared, error) {
		m := &Model{}
		err := m.load(head, numbers)
		return m, m.Prepared, err
	}}

func (m *Model) load(head, numbers []byte) (err error) {
	if err := json.Unmarshal(head, m); err != nil {
		return err
	}
	_, err = ParseActivation(string(m.Activation))
	bad := err != nil || len(m.Layers) < 2 || m.Layers[0] != m.Features ||
		m.Layers[len(m.Layers)-1] != max(1, len(m.Labels))
	for _, n := range m.Layers {
		bad = bad || n < 1 || n > 1<<30
	}
	if bad {
		return fault.Newf(fault.Corrupt, "read", "model.json",
			"layers of %v units, %d labels and activation %q do not fit", m.Layers, len(m.Labels), m.Activation)
	}
	units := 0
	for _, n := range m.Layers[1:] {
		units += n
	}
	return model.LoadColumns(numbers, units, m.parse)
}

// margins of a row given by its features' places and values.
func (m *Model) margins(z []float64, places []int, values []float64) {
	net, f := network{Sizes: m.Layers, V: m.numbers}, &netFold{act: m.Activation}
	x := make([]float64, m.Features)
	for i, j := range places {
		x[j] += values[i]
	}
	for l := 1; l < len(m.Layers); l++ {
		w, bias := net.layer(m.numbers, l)
		next, out := slices.Clone(bias), m.Layers[l]
		for i, v := range x {
			kernel.Axpy(v, w[i*out:(i+1)*out], next)
		}
		if x = next; l < len(m.Layers)-1 {
			f.activate(x)
		}
	}
	copy(z, x)
}

// Says returns what is said of a row.
func (m *Model) Says(each bool) (*model.Says, error) { return m.SaysOf(each, m.margins) }

// Predict writes one line a row as CSV: the predicted label, one of the originals, and
// its probability; of a regression the prediction.
func (m *Model) Predict(ctx context.Context, in rdd.Input, uris []string, w io.Writer) (rows int64, err error) {
	return model.Predict(ctx, m, in, uris, w, false)
}

// Probabilities writes the predicted label and the probability of each class of a row, a line each.
func (m *Model) Probabilities(ctx context.Context, in rdd.Input, uris []string, w io.Writer) (int64, error) {
	return model.Predict(ctx, m, in, uris, w, true)
}

// Evaluate computes accuracy, log_loss, and the means over classes of precision, recall, f1 and auc; of a
// regression rmse, mae and r2.
func (m *Model) Evaluate(ctx context.Context, in rdd.Input, uris []string) (map[string]float64, error) {
	return model.EvaluateRows(ctx, &m.RowModel, in, uris, m.margins)
}

// Confusion returns how often each label was said of rows of each.
func (m *Model) Confusion(ctx context.Context, in rdd.Input, uris []string) (*model.Confusion, error) {
	return model.ConfusionOf(ctx, &m.RowModel, in, uris, m.margins)
}

// Describe returns the model in a few lines.
func (m *Model) Describe() string {
	return fmt.Sprintf("layers of %v units, %s\nlabels %q\n", m.Layers, m.Activation,
		m.Labels[:min(len(m.Labels), 20)]) + m.Prepared.String()
}
