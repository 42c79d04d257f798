package mllib

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/volley-engine/volley/internal/kernel"
)

// scored is a row's margin, what it should be, which is 0 or 1, or a number, and its
// weight.
type scored struct {
	z, y, weight float64
}

// weightOf is what some rows weigh together.
func weightOf(all []scored) (sum float64) {
	for _, s := range all {
		sum += s.weight
	}
	return sum
}

// regressionMetrics are rmse, mae, and r2, the share of the variance that is
// explained.
func regressionMetrics(all []scored) map[string]float64 {
	n := weightOf(all)
	var mean, sq, abs, spread float64
	for _, s := range all {
		mean += s.weight * s.y / n
	}
	for _, s := range all {
		sq = math.FMA(s.weight*(s.z-s.y), s.z-s.y, sq)
		abs += s.weight * math.Abs(s.z-s.y)
		spread = math.FMA(s.weight*(s.y-mean), s.y-mean, spread)
	}
	out := map[string]float64{"rmse": math.Sqrt(sq / n), "mae": abs / n}
	if spread > 0 {
		out["r2"] = 1 - sq/spread
	}
	return out
}

// logLoss is the mean of −log of the probability given to the right label.
func logLoss(all []scored) float64 {
	var loss float64
	for _, s := range all {
		loss += s.weight * (kernel.Softplus(s.z) - float64(s.y*s.z))
	}
	return loss / weightOf(all)
}

// binaryMetrics are those of a classifier that says 1 of margins above a cut: accuracy; precision, recall and f1 of
// label 1, with the table of true and false ones they come from; and the areas
// under the curves of all thresholds.
func binaryMetrics(all []scored, cut float64) map[string]float64 {
	var table [2][2]float64 // by what it is, and what is said
	for _, s := range all {
		said := 0
		if s.z > cut {
			said = 1
		}
		table[int(s.y)][said] += s.weight
	}
	n := weightOf(all)
	out := map[string]float64{"accuracy": (table[0][0] + table[1][1]) / n, "true_negatives": table[0][0], "false_positives": table[0][1],
		"false_negatives": table[1][0], "true_positives": table[1][1]}
	if said := table[0][1] + table[1][1]; said > 0 {
		out["precision"] = table[1][1] / said
	}
	if are := table[1][0] + table[1][1]; are > 0 {
		out["recall"] = table[1][1] / are
		out["f1"] = 2 * table[1][1] / (2*table[1][1] + table[0][1] + table[1][0])
	}
	if auc, prAUC, ok := areas(all); ok {
		out["auc"], out["pr_auc"] = auc, prAUC
	}
	return out
}

// areas are those under two curves of all thresholds: the ROC curve, which is the
// probability that a positive row scores above a negative one, ties counting
// half; and precision over recall, as the mean precision over positive rows
// (average precision), rows of one score taken together. They are undefined where
// one of the labels is absent.
func areas(all []scored) (roc, pr float64, ok bool) {
	sorted := fromTheHighest(all)
	var positives, negatives, wins float64 // so far, from the highest score down
	for i := 0; i < len(sorted); {
		var pos, neg float64
		j := i
		for ; j < len(sorted) && (j == i || sorted[j].z == sorted[i].z); j++ {
			pos += sorted[j].weight * sorted[j].y
			neg += sorted[j].weight * (1 - sorted[j].y)
		}
		wins += positives*neg + float64(pos*neg)/2
		positives, negatives, i = positives+pos, negatives+neg, j
		if pos > 0 {
			pr += float64(pos*positives) / (positives + negatives)
		}
	}
	if positives == 0 || negatives == 0 {
		return 0, 0, false
	}
	return wins / float64(positives*negatives), pr / positives, true
}

// fromTheHighest sorts rows by their scores, halves side by side.
func fromTheHighest(all []scored) []scored {
	sorted, half := slices.Clone(all), len(all)/2
	var both sync.WaitGroup
	for _, part := range [][]scored{sorted[:half], sorted[half:]} {
		both.Go(func() { slices.SortFunc(part, func(a, b scored) int { return cmp.Compare(b.z, a.z) }) })
	}
	both.Wait()
	a, b, out := sorted[:half], sorted[half:], make([]scored, 0, len(all))
	for len(a) > 0 && len(b) > 0 {
		if cmp.Compare(a[0].z, b[0].z) >= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}
