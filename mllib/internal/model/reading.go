package model

import (
	"context"
	"slices"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

// Known is what a model knows of the data that it was trained on.
type Known struct {
	Features, IndexBase int
	Label, Weight       string
	Prepared            *input.Prepared
}

// Open reads data in the way that the model was trained.
func (k Known) Open(ctx context.Context, in rdd.Input, uris []string) (*input.Source, error) {
	in, err := k.trained(ctx, in, uris)
	if err != nil {
		return nil, err
	}
	return input.Open(ctx, in, uris...)
}

// InputOf returns how data are to be read that are to be predicted, with or without labels.
func (k Known) InputOf(ctx context.Context, in rdd.Input, uris []string) (rdd.Input, error) {
	if in.Label == "" && !in.NoLabel {
		in.NoLabel = !k.HasLabel(ctx, in, uris)
	}
	return k.trained(ctx, in, uris)
}

// trained returns how data are to be read in the way that the model was trained.
func (k Known) trained(ctx context.Context, in rdd.Input, uris []string) (rdd.Input, error) {
	if in.IndexBase == 0 {
		in.IndexBase = k.IndexBase + 1
	}
	in, err := k.weighed(ctx, in, uris)
	if in.Label == "" && !in.NoLabel {
		in.Label = k.Label
	}
	return preparing(in, k.Prepared), err
}

// raw returns how data are to be read of which every column but that of weights
// is a feature.
func (k Known) raw(in rdd.Input) rdd.Input {
	in = knowing(in, k.Prepared)
	in.Label, in.NoLabel, in.Prepare, in.Fitted = "", true, input.Prepare{}, nil
	return in
}

// width returns how many columns features are made of.
func (k Known) width() int {
	if k.Prepared != nil {
		return len(k.Prepared.Columns)
	}
	return k.Features
}

// weighed names the column of weights, where the model was trained with one and the
// data have it: one of its name, or, where columns have numbers, as many columns as
// in training. With one less it might be the label that is missing.
func (k Known) weighed(ctx context.Context, in rdd.Input, uris []string) (rdd.Input, error) {
	if in.Weight != "" || in.NoWeight || k.Weight == "" {
		return in, nil
	}
	src, err := input.Open(ctx, k.raw(in), uris...)
	if err != nil {
		return in, nil // the reading that follows says what is wrong
	}
	trained := k.width() + 1
	if k.Label != "" {
		trained++
	}
	names, columns := src.FeatureNames(), src.Width()
	switch {
	case names != nil:
		if slices.Contains(names, k.Weight) {
			in.Weight = k.Weight
		}
	case columns < 0: // rows of lists have names beside them, which only a reader knows
		with := k.raw(in)
		with.Weight = k.Weight
		if _, err := input.Open(ctx, with, uris...); err == nil {
			in.Weight = k.Weight
		}
	case columns == trained:
		in.Weight = k.Weight
	case columns == trained-1 && k.Label != "" && in.Label == "":
		return in, fault.Newf(fault.Usage, "read", strings.Join(uris, " "),
			"it has %d columns without names, the training data had %d: is the label missing, or the weight?", columns,
			trained).
			WithHint("--label, none or a number, and --weight-column say which columns are there")
	}
	return in, nil
}

// HasLabel reports whether data to be predicted has the label's column: a table
// with as many columns as the model has features, or without the column of the
// label's name, has not.
func (k Known) HasLabel(ctx context.Context, in rdd.Input, uris []string) bool {
	in, err := k.weighed(ctx, in, uris)
	if err != nil {
		return true
	}
	src, err := input.Open(ctx, k.raw(in), uris...)
	if err != nil {
		return true // the reading that follows says what is wrong
	}
	names := src.FeatureNames()
	if names == nil || k.Label == "" {
		return src.Width() != k.width()
	}
	return slices.Contains(names, k.Label) || src.Width() != k.width()
}

// knowing returns what names the columns of a model's data may have.
func knowing(in rdd.Input, p *input.Prepared) rdd.Input {
	if p == nil || in.Header != nil {
		return in
	}
	if !p.Header {
		in.Header = new(bool) // false, as in training
		return in
	}
	for _, c := range p.Columns {
		in.Known = append(in.Known, c.Name)
	}
	return in
}

// preparing returns how a model's data are to be read: raw, and prepared as those
// that it was made from.
func preparing(in rdd.Input, p *input.Prepared) rdd.Input {
	if p != nil {
		in.Prepare, in.Fitted = input.Prepare{}, p
		in = knowing(in, p)
	}
	return in
}

// Fits refuses tables of another width; sparse rows may have more or fewer
// features than the model, whose weight counts as zero.
func Fits(features int, c *rows.Chunk, uris []string) error {
	if c.Dense() && c.Width != features {
		return fault.Newf(fault.BadInput, "predict", strings.Join(uris, " "), "rows have %d features, the model %d",
			c.Width, features).
			WithHint("set --label where the label's column differs")
	}
	return nil
}

// AlignedPlaces returns the places in a model of the data's columns, where both
// sides have names and they differ; nil where they are the same.
func AlignedPlaces(model, data, uris []string) ([]int, error) {
	if len(model) == 0 || len(data) == 0 || slices.Equal(model, data) {
		return nil, nil
	}
	places := make([]int, len(data))
	for i, name := range data {
		if places[i] = slices.Index(model, name); places[i] < 0 {
			return nil, fault.Newf(fault.BadInput, "predict", strings.Join(uris, " "),
				"it has the column %q, which the model has not", name).
				WithHint("the model's features are " + strings.Join(model[:min(len(model), 40)], " "))
		}
	}
	return places, nil
}

// CSVField returns a text as a field of CSV.
func CSVField(s string) string {
	if strings.ContainsAny(s, ",\"\n\r") {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

// WeighsNothing refuses rows that have no weight: there is nothing to measure by.
func WeighsNothing(rows int, weight float64, uris []string) error {
	if rows == 0 || weight > 0 {
		return nil
	}
	return fault.Newf(fault.BadInput, "evaluate", strings.Join(uris, " "), "the weights of its rows sum to zero")
}
