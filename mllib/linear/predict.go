package linear

import (
	"context"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

// each reads data in the way the model was trained, adds every row, with its margin, to its part's result, and
// hands out the results in input order. The row is the n-th of its part.
func each[R any](ctx context.Context, m *Model, in rdd.Input, uris []string, begin func() *R,
	row func(to *R, c *rows.Chunk, r, n int, margin float64) error, take func(*R) error) error {
	src, err := m.known().Open(ctx, in, uris)
	if err != nil {
		return err
	}
	rowsOf, err := m.rowsOf(src, uris)
	if err != nil {
		return err
	}
	return model.Reading[R]{Begin: begin, Take: take, Chunk: func(to *R, c *rows.Chunk, n int) error {
		return rowsOf(c, func(r int, z float64) error { return row(to, c, r, n+r, z) })
	}}.Each(ctx, src)
}

// rowsOf returns what hands out the rows of a source's chunks with their margins.
func (m *Model) rowsOf(src *input.Source, uris []string) (
	func(c *rows.Chunk, row func(r int, z float64) error) error, error) {
	weights, err := m.aligned(src.FeatureNames(), uris)
	return func(c *rows.Chunk, row func(r int, z float64) error) error {
		if err := model.Fits(m.Features, c, uris); err != nil {
			return err
		}
		for r := range c.Rows() {
			if err := row(r, m.margin(weights, c, r)); err != nil {
				return err
			}
		}
		return nil
	}, err
}

// aligned returns the weights in the order of the data's columns, where both
// sides have names; a feature that the data lacks is an error.
func (m *Model) aligned(names, uris []string) ([]float64, error) {
	places, err := model.AlignedPlaces(m.Names, names, uris)
	if err != nil || places == nil {
		return m.Weights, err
	}
	out := make([]float64, len(places))
	for i, j := range places {
		out[i] = m.Weights[j]
	}
	return out, nil
}

// margin returns w·x + intercept of one row.
func (m *Model) margin(weights []float64, c *rows.Chunk, r int) float64 {
	if c.Dense() {
		return m.Intercept + kernel.Dot(weights, c.Values[r*c.Width:(r+1)*c.Width])
	}
	var z float64
	base := m.IndexBase
	if c.ZeroBased {
		base = 0
	}
	for k := c.Offsets[r]; k < c.Offsets[r+1]; k++ {
		if j := int(c.Indices[k]) - base; j >= 0 && j < m.Features {
			z = math.FMA(m.Weights[j], c.Values[k], z)
		}
	}
	return m.Intercept + z
}

// Predict writes one line a row as CSV. A classifier's are the predicted label,
// one of the model's originals, and the score: the probability of Labels[1], or,
// of a support vector machine that is not calibrated, the margin. A regression's are the predictions.
func (m *Model) Predict(ctx context.Context, in rdd.Input, uris []string, w io.Writer) (n int64, err error) {
	return model.Predict(ctx, m, in, uris, w, false)
}

// Probabilities writes the predicted label and the probability of each of the two classes of a row, a line each.
// Logistic regression has them, and calibrated models.
func (m *Model) Probabilities(ctx context.Context, in rdd.Input, uris []string, w io.Writer) (n int64, err error) {
	return model.Predict(ctx, m, in, uris, w, true)
}

// InputOf returns how data are to be read that are to be predicted.
func (m *Model) InputOf(ctx context.Context, in rdd.Input, uris []string) (rdd.Input, error) {
	return m.known().InputOf(ctx, in, uris)
}

// Says returns what is said of a row.
func (m *Model) Says(each bool) (*model.Says, error) {
	switch {
	case each && !m.probable():
		return nil, fault.Newf(fault.Usage, "predict", "probabilities", "a model of %s has none", m.Job).
			WithHint("logistic, softmax and mlp have them; volley calibrate gives them to a model of svm")
	case each:
		return m.says(model.ProbabilityHeader(m.Labels[:]), func(to *model.Lines, z float64) {
			if m.Calibration == nil {
				to.End(kernel.Sigmoid(-z), kernel.Sigmoid(z))
				return
			}
			p := m.Calibration.Probability(z)
			to.End(1-p, p)
		}), nil
	}
	header := "label,score"
	if m.Loss == Squared {
		header = "prediction"
	}
	return m.says(header, func(to *model.Lines, z float64) { to.End(m.score(z)) }), nil
}

// says returns what is said of rows: the label, where the model has labels, and what end makes of the margin.
func (m *Model) says(header string, end func(to *model.Lines, z float64)) *model.Says {
	cut := m.cut()
	labels := [2]string{model.CSVField(m.Labels[0]), model.CSVField(m.Labels[1])}
	line := func(to *model.Lines, z float64) {
		if m.Loss != Squared {
			k := 0
			if m.ranked(z) > cut {
				k = 1
			}
			to.Text = append(append(to.Text, labels[k]...), ',')
		}
		end(to, z)
	}
	return &model.Says{Header: header, Of: func(src *input.Source, uris []string) (model.ChunkLines, error) {
		rowsOf, err := m.rowsOf(src, uris)
		return func(to *model.Lines, c *rows.Chunk) error {
			return rowsOf(c, func(_ int, z float64) error {
				line(to, z)
				return nil
			})
		}, err
	}}
}

// SetThreshold sets the score above which a row is said to have Labels[1]: a
// probability, or, of a support vector machine, a margin.
func (m *Model) SetThreshold(score float64) error {
	switch {
	case m.Loss == Squared:
		return fault.Newf(fault.Usage, "set", "the threshold",
			"a model of %s is a regression and has no threshold", m.Job)
	case m.probable() && !(score > 0 && score < 1):
		return fault.Newf(fault.Usage, "set", "the threshold", "%v is not a probability between 0 and 1", score)
	case !num.Finite(score):
		return fault.Newf(fault.Usage, "set", "the threshold", "%v is not a finite margin", score)
	}
	m.Threshold = &score
	return nil
}

// logistic reports whether margins are those of a logistic regression.
func (m *Model) logistic() bool { return m.Loss == Logistic || m.Loss == "" }

// probable reports whether the model has probabilities.
func (m *Model) probable() bool { return m.logistic() || m.Calibration != nil }

// Calibrate makes probabilities of the model's margins, by data that it was not trained on. A threshold, which is of
// another score, is forgotten.
func (m *Model) Calibrate(ctx context.Context, in rdd.Input, uris []string, method string) error {
	if m.Loss == Squared {
		return fault.Newf(fault.Usage, "calibrate", "the model",
			"a model of %s is a regression and has no probabilities", m.Job)
	}
	m.Calibration, m.Threshold = nil, nil
	all, err := m.scored(ctx, in, uris)
	if err != nil {
		return err
	}
	m.Calibration, err = model.Calibrate(method, all)
	return err
}

// cut returns the value of ranked above which a row is said to have Labels[1].
func (m *Model) cut() float64 {
	switch {
	case m.Threshold == nil && m.Calibration != nil:
		return 0.5
	case m.Threshold == nil:
		return 0
	case m.logistic() && m.Calibration == nil:
		return math.Log(*m.Threshold / (1 - *m.Threshold))
	}
	return *m.Threshold
}

// ranked returns what rows with margin z are ranked by: the margin, or, of a calibrated model, the probability.
func (m *Model) ranked(z float64) float64 {
	if m.Calibration != nil {
		return m.Calibration.Probability(z)
	}
	return z
}

// score returns what is said of a row with margin z.
func (m *Model) score(z float64) float64 {
	if m.logistic() && m.Calibration == nil {
		return kernel.Sigmoid(z)
	}
	return m.ranked(z)
}

// Reliability returns how often what the model says is so, by ranges of probabilities.
func (m *Model) Reliability(ctx context.Context, in rdd.Input, uris []string) (model.Reliability, error) {
	if !m.probable() {
		return nil, fault.Newf(fault.Usage, "evaluate", "--reliability", "a model of %s has no probabilities", m.Job).
			WithHint("logistic has them; volley calibrate gives them to a model of svm")
	}
	all, err := m.scored(ctx, in, uris)
	return model.ReliabilityOf(m.probabilities(all)), err
}

// probabilities returns rows with their probabilities in place of what they are ranked by.
func (m *Model) probabilities(all []model.Scored) []model.Scored {
	if m.Calibration != nil {
		return all
	}
	out := slices.Clone(all)
	for i := range out {
		out[i].Z = kernel.Sigmoid(out[i].Z)
	}
	return out
}

// Evaluate computes the metrics of the model on labelled data.
func (m *Model) Evaluate(ctx context.Context, in rdd.Input, uris []string) (map[string]float64, error) {
	all, err := m.scored(ctx, in, uris)
	if err != nil {
		return nil, err
	}
	if err := model.WeighsNothing(len(all), model.WeightOf(all), uris); err != nil {
		return nil, err
	}
	return m.metrics(all), nil
}

// Confusion returns how often each label was said of rows of each.
func (m *Model) Confusion(ctx context.Context, in rdd.Input, uris []string) (*model.Confusion, error) {
	if m.Loss == Squared {
		return nil, model.NoConfusion()
	}
	all, err := m.scored(ctx, in, uris)
	if err != nil {
		return nil, err
	}
	table := model.BinaryTable(all, m.cut())
	return &model.Confusion{Labels: m.Labels[:], Table: append(table[0][:], table[1][:]...)}, nil
}

// scored returns all rows with what they are ranked by, in input order.
func (m *Model) scored(ctx context.Context, in rdd.Input, uris []string) (all []model.Scored, err error) {
	err = each(ctx, m, in, uris, func() *[]model.Scored { return &[]model.Scored{} },
		func(to *[]model.Scored, c *rows.Chunk, r, n int, z float64) error {
			y, err := m.target(c, r, n, uris)
			*to = append(*to, model.Scored{Z: m.ranked(z), Y: y, Weight: c.WeightOf(r)})
			return err
		}, func(part *[]model.Scored) error { all = append(all, *part...); return nil })
	return all, err
}

// target returns what row r of a chunk, the n-th of its part, should be: its number, or whether its label is the
// model's Labels[1]. A label that the model does not know is an error, unless it
// tells one from the rest.
func (m *Model) target(c *rows.Chunk, r, n int, uris []string) (float64, error) {
	if m.Loss == Squared {
		if c.Texts != nil {
			return 0, model.LabelError(uris, n, "the label %q, which is not a number", c.Texts[int(c.Labels[r])])
		}
		return c.Labels[r], nil
	}
	positive, err := m.isPositive(c, r, n, uris)
	if positive {
		return 1, err
	}
	return 0, err
}

// isPositive reports whether a row's label is the model's Labels[1]; a label
// that the model does not know is an error, unless it tells one from the rest.
func (m *Model) isPositive(c *rows.Chunk, r, n int, uris []string) (bool, error) {
	label := rows.FormatLabel(c.Labels[r])
	if c.Texts != nil {
		label = c.Texts[int(c.Labels[r])]
	}
	switch {
	case label == m.Labels[1]:
		return true, nil
	case label == m.Labels[0] || m.OneVsRest:
		return false, nil
	}
	return false, model.LabelError(uris, n, "the label %q, the model knows %q and %q", label, m.Labels[0], m.Labels[1])
}

// metrics returns the metrics of scored rows that the model's users expect.
func (m *Model) metrics(all []model.Scored) map[string]float64 {
	var out map[string]float64
	if m.Loss == Squared {
		out = model.RegressionMetrics(all)
	} else {
		out = model.BinaryMetrics(all, m.cut())
		if m.probable() {
			maps.Copy(out, model.ProbabilityMetrics(m.probabilities(all)))
		}
		if m.logistic() && m.Calibration == nil {
			out["log_loss"] = model.LogLoss(all) // also of margins whose probability rounds to one
		}
	}
	out["nonzeros"] = float64(m.Nonzeros())
	return out
}

// Nonzeros returns how many weights are not zero.
func (m *Model) Nonzeros() (n int) {
	for _, w := range m.Weights {
		if w != 0 {
			n++
		}
	}
	return n
}
