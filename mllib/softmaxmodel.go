package mllib

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage"
)

// SoftmaxModel is a multinomial logistic regression: weights of each feature and
// class. A saved one is plain data, as a LinearModel's.
type SoftmaxModel struct {
	Labels     []string  `json:"labels"` // originals of the classes
	TextLabels bool      `json:"text_labels"`
	Features   int       `json:"features"`
	IndexBase  int       `json:"index_base"`
	Names      []string  `json:"names,omitempty"`
	Label      string    `json:"label,omitempty"`
	Intercepts []float64 `json:"intercepts"`

	weights []float64 // Features × classes
}

type softmaxFile struct {
	modelHead
	*SoftmaxModel
}

// Save writes the model's directory.
func (m *SoftmaxModel) Save(dir string, overwrite bool) error {
	return save(dir, overwrite, softmaxFile{modelHead{modelVersion, "softmax"}, m}, m.weights)
}

func (m *SoftmaxModel) load(dir string, raw []byte) (err error) {
	if err := json.Unmarshal(raw, m); err != nil {
		return err
	}
	if len(m.Labels) < 2 || len(m.Intercepts) != len(m.Labels) || m.Features < 0 || m.Features > 1<<30 {
		return fault.Newf(fault.Corrupt, "read", "model.json", "%d labels, %d intercepts and %d features do not fit", len(m.Labels), len(m.Intercepts), m.Features)
	}
	for _, b := range m.Intercepts {
		if !isFinite(b) {
			return fault.Newf(fault.Corrupt, "read", "model.json", "an intercept is %v", b)
		}
	}
	m.weights, err = loadNumbers(dir, m.Features*len(m.Labels))
	return err
}

// each reads data as the model was trained on it, in input order, and hands out each
// row's margins with the chunk and row it belongs to.
func (m *SoftmaxModel) each(ctx context.Context, in rdd.Input, uris []string, yield func(c *storage.Chunk, row int, z []float64) error) error {
	like := &LinearModel{Features: m.Features, IndexBase: m.IndexBase, Names: m.Names, Label: m.Label}
	if in.IndexBase == 0 {
		in.IndexBase = m.IndexBase + 1
	}
	if in.Label == "" && !in.NoLabel {
		in.Label = m.Label
	}
	src, err := storage.OpenSource(in, uris...)
	if err != nil {
		return err
	}
	like.Weights = make([]float64, m.Features) // the place of each feature
	for j := range like.Weights {
		like.Weights[j] = float64(j)
	}
	place, err := like.aligned(src.FeatureNames(), uris)
	if err != nil {
		return err
	}
	k := len(m.Labels)
	z := make([]float64, k)
	for part := range src.Len() {
		err := src.Read(ctx, part, func(c *storage.Chunk) error {
			if err := like.fits(c, uris); err != nil {
				return err
			}
			base := m.IndexBase
			if c.ZeroBased {
				base = 0
			}
			for r := range c.Rows() {
				copy(z, m.Intercepts)
				if c.Dense() {
					for i, v := range c.Values[r*c.Width : (r+1)*c.Width] {
						j := int(place[i])
						kernel.Axpy(v, m.weights[j*k:(j+1)*k], z)
					}
				} else {
					for at := c.Offsets[r]; at < c.Offsets[r+1]; at++ {
						if j := int(c.Indices[at]) - base; j >= 0 && j < m.Features {
							kernel.Axpy(c.Values[at], m.weights[j*k:(j+1)*k], z)
						}
					}
				}
				if err := yield(c, r, z); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// probabilities of the classes, in place of their margins; the class of the
// highest, of equal ones the first.
func probabilities(z []float64) (best int) {
	for k, v := range z {
		if v > z[best] {
			best = k
		}
	}
	top, sum := z[best], 0.0
	for k, v := range z {
		z[k] = kernel.ExpNeg(v - top)
		sum += z[k]
	}
	for k := range z {
		z[k] /= sum
	}
	return best
}

// Predict writes one line a row as CSV: the predicted label, one of the originals, and
// its probability.
func (m *SoftmaxModel) Predict(ctx context.Context, in rdd.Input, uris []string, w io.Writer) (rows int64, err error) {
	out := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintln(out, "label,score")
	if in.Label == "" && !(&LinearModel{Features: m.Features, Label: m.Label}).hasLabel(in, uris) {
		in.NoLabel = true
	}
	err = m.each(ctx, in, uris, func(_ *storage.Chunk, _ int, z []float64) error {
		rows++
		best := probabilities(z)
		out.WriteString(csvField(m.Labels[best]))
		out.WriteByte(',')
		out.WriteString(strconv.FormatFloat(z[best], 'g', -1, 64))
		return out.WriteByte('\n')
	})
	if err != nil {
		return rows, err
	}
	return rows, out.Flush()
}

// Evaluate computes accuracy, log_loss, and f1 as the mean over classes.
func (m *SoftmaxModel) Evaluate(ctx context.Context, in rdd.Input, uris []string) (map[string]float64, error) {
	k := len(m.Labels)
	var rows, loss float64
	table := make([]float64, k*k) // by what it is, and what is said
	err := m.each(ctx, in, uris, func(c *storage.Chunk, r int, z []float64) error {
		label := storage.FormatLabel(c.Labels[r])
		if c.Texts != nil {
			label = c.Texts[int(c.Labels[r])]
		}
		is := slices.Index(m.Labels, label)
		if is < 0 {
			return fault.Newf(fault.BadInput, "evaluate", strings.Join(uris, " "), "row %d has the label %q, which the model does not know", r, label)
		}
		best := probabilities(z)
		rows++
		loss -= math.Log(max(z[is], math.SmallestNonzeroFloat64))
		table[is*k+best]++
		return nil
	})
	if err != nil || rows == 0 {
		return nil, err
	}
	var right, f1 float64
	for c := range k {
		var are, said float64
		for o := range k {
			are, said = are+table[c*k+o], said+table[o*k+c]
		}
		right += table[c*k+c]
		if are+said > 0 {
			f1 += 2 * table[c*k+c] / (are + said) / float64(k)
		}
	}
	return map[string]float64{"accuracy": right / rows, "log_loss": loss / rows, "f1": f1}, nil
}

// Describe is the model in a few lines.
func (m *SoftmaxModel) Describe() string {
	return fmt.Sprintf("%d classes, %d features\nlabels %q\n", len(m.Labels), m.Features, m.Labels[:min(len(m.Labels), 20)])
}
