package model

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

// RowModel is what models of several classes, or of a number, know of rows.
type RowModel struct {
	Labels     []string `json:"labels,omitempty"` // originals of the classes; none of a regression
	TextLabels bool     `json:"text_labels"`
	Features   int      `json:"features"`
	IndexBase  int      `json:"index_base"`
	Names      []string `json:"names,omitempty"`
	Label      string   `json:"label,omitempty"`
	Weight     string   `json:"weight,omitempty"` // column of rows' weights
	// Prepared takes raw rows to those that the model is of; nil where they are the
	// same.
	Prepared *input.Prepared `json:"preparation,omitempty"`
}

func (m *RowModel) known() Known {
	return Known{Features: m.Features, IndexBase: m.IndexBase, Label: m.Label, Weight: m.Weight, Prepared: m.Prepared}
}

// marginsOf computes the margins of the classes, or the prediction, of a row given by
// the places and values of its features.
type marginsOf func(z []float64, places []int, values []float64)

// each reads data as the model was trained on it, in input order, and hands out each
// row's margins with the chunk and row it belongs to.
func (m *RowModel) each(ctx context.Context, in rdd.Input, uris []string, margins marginsOf,
	yield func(c *rows.Chunk, row int, z []float64) error) error {
	src, err := m.known().Open(ctx, in, uris)
	if err != nil {
		return err
	}
	columns, err := AlignedPlaces(m.Names, src.FeatureNames(), uris)
	if err != nil {
		return err
	}
	if columns == nil {
		for j := range m.Features {
			columns = append(columns, j)
		}
	}
	z := make([]float64, max(1, len(m.Labels)))
	for part := range src.Len() {
		err := src.Read(ctx, part, func(c *rows.Chunk) error {
			if err := Fits(m.Features, c, uris); err != nil {
				return err
			}
			for r := range c.Rows() {
				places, values := m.features(c, r, columns)
				margins(z, places, values)
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

// features returns the places and values of a row's features; those that the model
// has not are left out of sparse rows.
func (m *RowModel) features(c *rows.Chunk, r int, columns []int) (places []int, values []float64) {
	if c.Dense() {
		return columns, c.Values[r*c.Width : (r+1)*c.Width]
	}
	base := m.IndexBase
	if c.ZeroBased {
		base = 0
	}
	for at := c.Offsets[r]; at < c.Offsets[r+1]; at++ {
		if j := int(c.Indices[at]) - base; j >= 0 && j < m.Features {
			places, values = append(places, j), append(values, c.Values[at])
		}
	}
	return places, values
}

// probabilities replaces margins by the probabilities of the classes. It returns the most probable class,
// of equal ones the first, and the logarithm of the sum of the margins' exponentials.
func probabilities(z []float64) (best int, logSum float64) {
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
	return best, top + kernel.Log(sum)
}

// PredictRows writes one line a row as CSV, after a header: label and score, or the prediction; or with all set
// the label and the probability of each class.
func PredictRows(ctx context.Context, m *RowModel, in rdd.Input, uris []string, w io.Writer, all bool,
	margins marginsOf) (n int64, err error) {
	out := bufio.NewWriterSize(w, 1<<16)
	switch {
	case all && m.Labels == nil:
		return 0, fault.Newf(fault.Usage, "predict", "probabilities", "the model is a regression: it has no classes")
	case all:
		fmt.Fprintln(out, ProbabilityHeader(m.Labels))
	case m.Labels == nil:
		fmt.Fprintln(out, "prediction")
	default:
		fmt.Fprintln(out, "label,score")
	}
	if in.Label == "" && !m.known().HasLabel(ctx, in, uris) {
		in.NoLabel = true
	}
	err = m.each(ctx, in, uris, margins, func(_ *rows.Chunk, _ int, z []float64) error {
		n++
		best := 0
		if m.Labels != nil {
			best, _ = probabilities(z)
			out.WriteString(CSVField(m.Labels[best]))
			out.WriteByte(',')
		}
		if !all {
			z = z[best : best+1]
		}
		return WriteNumbers(out, z)
	})
	if err != nil {
		return n, err
	}
	return n, out.Flush()
}

// WriteNumbers writes numbers that end a line, between commas.
func WriteNumbers(out *bufio.Writer, z []float64) error {
	for k, v := range z {
		if k > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return out.WriteByte('\n')
}

// class returns the number of the label of row r of a chunk, the n-th of all rows.
func (m *RowModel) class(c *rows.Chunk, r, n int, uris []string) (int, error) {
	label := rows.FormatLabel(c.Labels[r])
	if c.Texts != nil {
		label = c.Texts[int(c.Labels[r])]
	}
	k := slices.Index(m.Labels, label)
	if k < 0 {
		return k, fault.Newf(fault.BadInput, "evaluate", strings.Join(uris, " "),
			"row %d has the label %q, which the model does not know", n, label)
	}
	return k, nil
}

// EvaluateRows computes accuracy, log_loss and f1, or the metrics of a regression.
func EvaluateRows(ctx context.Context, m *RowModel, in rdd.Input, uris []string,
	margins marginsOf) (map[string]float64, error) {
	if m.Labels == nil {
		var all []Scored
		err := m.each(ctx, in, uris, margins, func(c *rows.Chunk, r int, z []float64) error {
			if c.Texts != nil {
				return fault.Newf(fault.BadInput, "evaluate", strings.Join(uris, " "),
					"row %d has the label %q, which is not a number", len(all)+1, c.Texts[int(c.Labels[r])])
			}
			all = append(all, Scored{Z: z[0], Y: c.Labels[r], Weight: c.WeightOf(r)})
			return nil
		})
		if err == nil {
			err = WeighsNothing(len(all), WeightOf(all), uris)
		}
		if err != nil {
			return nil, err
		}
		return RegressionMetrics(all), nil
	}
	k := len(m.Labels)
	var weighed, loss float64 // by weight
	read := 0
	table := make([]float64, k*k) // by what it is, and what is said
	err := m.each(ctx, in, uris, margins, func(c *rows.Chunk, r int, z []float64) error {
		is, err := m.class(c, r, read+1, uris)
		if err != nil {
			return err
		}
		of := z[is]
		best, logSum := probabilities(z)
		weight := c.WeightOf(r)
		read++
		weighed += weight
		loss += weight * (logSum - of)
		table[is*k+best] += weight
		return nil
	})
	if err == nil {
		err = WeighsNothing(read, weighed, uris)
	}
	if err != nil || weighed == 0 {
		return nil, err
	}
	right, f1 := agreement(table, k)
	return map[string]float64{"accuracy": right / weighed, "log_loss": loss / weighed, "f1": f1}, nil
}

// agreement returns how many rows lie on the diagonal of a table of k classes, and the
// mean f1 over classes.
func agreement(table []float64, k int) (right, f1 float64) {
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
	return right, f1
}
