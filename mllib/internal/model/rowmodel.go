package model

import (
	"context"
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

// RowModel is what models of several classes, or of a number, know of rows.
type RowModel struct {
	Labels     []string `json:"labels,omitempty"`  // originals of the classes; none of a regression
	Margins    bool     `json:"margins,omitempty"` // classes have margins of their own, and no probabilities
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

// each reads data as the model was trained on it, adds each row, with its margins, to its part's result, and hands
// out the results in input order. The row is the n-th of its part.
func each[R any](ctx context.Context, m *RowModel, in rdd.Input, uris []string, margins marginsOf, begin func() *R,
	row func(to *R, c *rows.Chunk, r, n int, z []float64) error, take func(*R) error) error {
	src, err := m.known().Open(ctx, in, uris)
	if err != nil {
		return err
	}
	rowsOf, err := m.rowsOf(src, uris, margins)
	if err != nil {
		return err
	}
	return Reading[R]{Begin: begin, Take: take, Chunk: func(to *R, c *rows.Chunk, n int) error {
		return rowsOf(c, func(r int, z []float64) error { return row(to, c, r, n+r, z) })
	}}.Each(ctx, src)
}

// rowsOf returns what hands out the rows of a source's chunks with their margins.
func (m *RowModel) rowsOf(src *input.Source, uris []string, margins marginsOf) (
	func(c *rows.Chunk, row func(r int, z []float64) error) error, error) {
	columns, err := AlignedPlaces(m.Names, src.FeatureNames(), uris)
	if err != nil {
		return nil, err
	}
	if columns == nil {
		for j := range m.Features {
			columns = append(columns, j)
		}
	}
	return func(c *rows.Chunk, row func(r int, z []float64) error) error {
		if err := Fits(m.Features, c, uris); err != nil {
			return err
		}
		z := make([]float64, max(1, len(m.Labels)))
		for r := range c.Rows() {
			places, values := m.features(c, r, columns)
			margins(z, places, values)
			if err := row(r, z); err != nil {
				return err
			}
		}
		return nil
	}, nil
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

// said returns the class that is said of a row, of equal ones the first, and replaces its margins by what classes are
// ranked by: probabilities, where there are some. logSum is the logarithm of the sum of the margins' exponentials.
func (m *RowModel) said(z []float64) (best int, logSum float64) {
	if !m.Margins {
		return probabilities(z)
	}
	for k, v := range z {
		if v > z[best] {
			best = k
		}
	}
	return best, math.NaN()
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

// InputOf returns how data are to be read that are to be predicted.
func (m *RowModel) InputOf(ctx context.Context, in rdd.Input, uris []string) (rdd.Input, error) {
	return m.known().InputOf(ctx, in, uris)
}

// SaysOf returns what is said of a row by its margins: label and score, or the prediction; or with all set the label
// and the probability of each class.
func (m *RowModel) SaysOf(all bool, margins marginsOf) (*Says, error) {
	header := "label,score"
	switch {
	case all && m.Labels == nil:
		return nil, fault.Newf(fault.Usage, "predict", "probabilities", "the model is a regression: it has no classes")
	case all && m.Margins:
		return nil, fault.Newf(fault.Usage, "predict", "probabilities", "the model has margins, and no probabilities").
			WithHint("softmax has them")
	case all:
		header = ProbabilityHeader(m.Labels)
	case m.Labels == nil:
		header = "prediction"
	}
	return &Says{Header: header, Of: func(src *input.Source, uris []string) (ChunkLines, error) {
		rowsOf, err := m.rowsOf(src, uris, margins)
		return func(to *Lines, c *rows.Chunk) error {
			return rowsOf(c, func(_ int, z []float64) error {
				m.line(to, z, all)
				return nil
			})
		}, err
	}}, nil
}

// line adds what is said of a row with some margins.
func (m *RowModel) line(to *Lines, z []float64, all bool) {
	best := 0
	if m.Labels != nil {
		best, _ = m.said(z)
		to.Text = append(append(to.Text, CSVField(m.Labels[best])...), ',')
	}
	if !all {
		z = z[best : best+1]
	}
	to.End(z...)
}

// class returns the number of the label of row r of a chunk, the n-th of its part.
func (m *RowModel) class(c *rows.Chunk, r, n int, uris []string) (int, error) {
	label := rows.FormatLabel(c.Labels[r])
	if c.Texts != nil {
		label = c.Texts[int(c.Labels[r])]
	}
	k := slices.Index(m.Labels, label)
	if k < 0 {
		return k, LabelError(uris, n, "the label %q, which the model does not know", label)
	}
	return k, nil
}

// EvaluateRows computes the metrics of a classifier of several classes, or of a regression.
func EvaluateRows(ctx context.Context, m *RowModel, in rdd.Input, uris []string,
	margins marginsOf) (map[string]float64, error) {
	if m.Labels == nil {
		return m.evaluateNumbers(ctx, in, uris, margins)
	}
	t, err := m.tally(ctx, in, uris, margins)
	if err == nil {
		err = WeighsNothing(t.rows, t.weight, uris)
	}
	if err != nil || t.weight == 0 {
		return nil, err
	}
	c := Confusion{Labels: m.Labels, Table: t.table}
	out := c.metrics()
	if !m.Margins {
		out["log_loss"] = t.loss / t.weight
	}
	if auc, ok := t.auc(len(m.Labels)); ok {
		out["auc"] = auc
	}
	return out, nil
}

// ConfusionOf returns how often each label was said of rows of each.
func ConfusionOf(ctx context.Context, m *RowModel, in rdd.Input, uris []string, margins marginsOf) (*Confusion, error) {
	if m.Labels == nil {
		return nil, NoConfusion()
	}
	t, err := m.tally(ctx, in, uris, margins)
	if err != nil {
		return nil, err
	}
	return &Confusion{Labels: m.Labels, Table: t.table}, nil
}

func (m *RowModel) evaluateNumbers(ctx context.Context, in rdd.Input, uris []string,
	margins marginsOf) (map[string]float64, error) {
	var all []Scored
	err := each(ctx, m, in, uris, margins, func() *[]Scored { return &[]Scored{} },
		func(to *[]Scored, c *rows.Chunk, r, n int, z []float64) error {
			if c.Texts != nil {
				return LabelError(uris, n, "the label %q, which is not a number", c.Texts[int(c.Labels[r])])
			}
			*to = append(*to, Scored{Z: z[0], Y: c.Labels[r], Weight: c.WeightOf(r)})
			return nil
		}, func(part *[]Scored) error { all = append(all, *part...); return nil })
	if err == nil {
		err = WeighsNothing(len(all), WeightOf(all), uris)
	}
	if err != nil {
		return nil, err
	}
	return RegressionMetrics(all), nil
}

// tally is what a classifier says of labelled rows.
type tally struct {
	rows         int
	weight, loss float64
	table        []float64 // by what a row is, and what is said
	// of each row, as far as there is room for all: its class, its weight, and the probability of each class
	classes       []int32
	weights       []float64
	probabilities []float64
}

// tallied is how many probabilities are kept for the areas under curves, 512 MiB of them.
const tallied = 1 << 26

// tally runs the model over labelled rows. Sums are of parts, and parts added in their order, so that they do not
// depend on the number of cores.
func (m *RowModel) tally(ctx context.Context, in rdd.Input, uris []string, margins marginsOf) (*tally, error) {
	k := len(m.Labels)
	all := &tally{table: make([]float64, k*k)}
	err := each(ctx, m, in, uris, margins, func() *tally { return &tally{table: make([]float64, k*k)} },
		func(to *tally, c *rows.Chunk, r, n int, z []float64) error {
			is, err := m.class(c, r, n, uris)
			if err == nil {
				of := z[is]
				best, logSum := m.said(z)
				to.add(is, best, c.WeightOf(r), logSum-of, z)
			}
			return err
		}, func(part *tally) error { all.merge(part); return nil })
	return all, err
}

// add takes in a row of a class, and what classes are ranked by.
func (t *tally) add(is, best int, weight, loss float64, z []float64) {
	t.rows++
	t.weight += weight
	t.loss += weight * loss
	t.table[is*len(z)+best] += weight
	if len(t.probabilities)+len(z) <= tallied {
		t.classes, t.weights = append(t.classes, int32(is)), append(t.weights, weight)
		t.probabilities = append(t.probabilities, z...)
	}
}

func (t *tally) merge(o *tally) {
	t.rows, t.weight, t.loss = t.rows+o.rows, t.weight+o.weight, t.loss+o.loss
	for i, v := range o.table {
		t.table[i] += v
	}
	if len(t.probabilities)+len(o.probabilities) <= tallied {
		t.classes, t.weights = append(t.classes, o.classes...), append(t.weights, o.weights...)
		t.probabilities = append(t.probabilities, o.probabilities...)
	}
}

// auc returns the mean over classes of the area under the ROC curve of each against the others; false where a
// class has no row, or there are more rows × classes than are kept.
func (t *tally) auc(k int) (mean float64, ok bool) {
	if len(t.classes) < t.rows {
		return 0, false
	}
	scored := make([]Scored, t.rows)
	for c := range k {
		for i, is := range t.classes {
			scored[i] = Scored{Z: t.probabilities[i*k+c], Weight: t.weights[i]}
			if int(is) == c {
				scored[i].Y = 1
			}
		}
		area, _, ok := areas(scored)
		if !ok {
			return 0, false
		}
		mean += area / float64(k)
	}
	return mean, true
}
