package train

import (
	"context"
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// heldState is what early stopping remembers: the least loss on the rows held out
// for it, the point that had it, and how many steps ago.
type heldState struct {
	Least, Since float64
	Point        []float64
}

// observe takes the loss of a point in, and reports whether a number of steps in a row
// have brought no less.
func (h *heldState) observe(loss float64, point []float64, patience int) (stop bool) {
	if h.Point == nil || loss < h.Least {
		h.Least, h.Since, h.Point = loss, 0, slices.Clone(point)
		return false
	}
	h.Since++
	return h.Since >= float64(patience)
}

// HeldMeta describes the rows held out, whose labels have to be those of training; nil
// where there are none.
func HeldMeta(ctx context.Context, s *rdd.Session, in rdd.Input, rows rdd.Packed[rdd.Point],
	train *pack.Meta) (*pack.Meta, error) {
	if in.Fold.Stop == 0 {
		return nil, nil
	}
	meta, err := rows.Meta(ctx, s)
	if err != nil {
		return nil, err
	}
	if (train.TextLabels || meta.TextLabels) && !slices.Equal(train.Labels, meta.Labels) {
		return nil, fault.Newf(fault.BadInput, "hold out rows of", "the training data",
			"their labels are %.200q, those of the others %.200q", meta.Labels, train.Labels).
			WithHint("--validation of a greater share holds out more rows")
	}
	if meta.IndexBase != train.IndexBase {
		return nil, fault.Newf(fault.BadInput, "hold out rows of", "the training data",
			"their features count from %d, those of the others from %d", meta.IndexBase, train.IndexBase).
			WithHint("give --index-base 0 or 1")
	}
	return meta, nil
}

// StopsEarly finds the loss on the rows held out, if there are any, and reports whether
// it is time to stop.
func (t *Training) StopsEarly(ctx context.Context, it *rdd.Iteration, held *pack.Meta, h *heldState,
	point []float64, patience int,
	lossOf func(context.Context) (float64, error)) (bool, error) {
	if held == nil {
		return false, nil
	}
	loss, err := lossOf(ctx)
	if err != nil {
		return false, err
	}
	mean := loss / t.Session.LastInfo().Weight
	it.Report("validation_loss", mean)
	if math.IsNaN(mean) || !h.observe(mean, point, patience) {
		return false, nil
	}
	t.End(it, "validation")
	return true, nil
}
