package train

import (
	"math"
	"strconv"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/storage/pack"
)

// Squarable refuses columns, and labels, that are too large to compute with.
func Squarable(meta *pack.Meta, sums []float64, labels float64) error {
	for i, v := range sums {
		if num.Finite(v) {
			continue
		}
		name := strconv.Itoa(i % meta.Features)
		if len(meta.Names) == meta.Features {
			name = strconv.Quote(meta.Names[i%meta.Features])
		}
		return fault.Newf(fault.BadInput, "train", "the data",
			"column %s has numbers whose squares, summed, are beyond 1.8e308", name).
			WithHint("scale it, or leave it out")
	}
	return Summable(labels)
}

// mostLabels is what labels may come to together for their squares to be numbers.
const mostLabels = 1e150

// Summable refuses labels that are too large to compute with.
func Summable(labels float64) error {
	if math.Abs(labels) <= mostLabels {
		return nil
	}
	return fault.Newf(fault.BadInput, "train", "the data",
		"its labels come to %g together, and their squares to more than a number holds", labels).
		WithHint("scale the labels")
}

// FiniteAtFirst refuses data on which the loss cannot be computed at all.
func FiniteAtFirst(job string, objective float64) error {
	if num.Finite(objective) {
		return nil
	}
	return fault.Newf(fault.BadInput, "train", job,
		"the objective is %v where training begins: values or labels are too large", objective).
		WithHint("scale columns: --scale standard, or --standardize")
}
