package model

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/volley-engine/volley/internal/kernel"
)

// Scored is a row's margin, what it should be, which is 0 or 1, or a number, and its
// weight.
type Scored struct {
	Z, Y, Weight float64
}

// WeightOf returns what some rows weigh together.
func WeightOf(all []Scored) (sum float64) {
	for _, s := range all {
		sum += s.Weight
	}
	return sum
}

// RegressionMetrics returns rmse, mae, and r2, the share of the variance that
// is explained.
func RegressionMetrics(all []Scored) map[string]float64 {
	n := WeightOf(all)
	var mean, sq, abs, spread float64
	for _, s := range all {
		mean += s.Weight * s.Y / n
	}
	for _, s := range all {
		sq = math.FMA(s.Weight*(s.Z-s.Y), s.Z-s.Y, sq)
		abs += s.Weight * math.Abs(s.Z-s.Y)
		spread = math.FMA(s.Weight*(s.Y-mean), s.Y-mean, spread)
	}
	out := map[string]float64{"rmse": math.Sqrt(sq / n), "mae": abs / n}
	if spread > 0 {
		out["r2"] = 1 - sq/spread
	}
	return out
}

// LogLoss returns the mean of −log of the probability given to the right label.
func LogLoss(all []Scored) float64 {
	var loss float64
	for _, s := range all {
		loss += s.Weight * (kernel.Softplus(s.Z) - float64(s.Y*s.Z))
	}
	return loss / WeightOf(all)
}

// BinaryMetrics returns the metrics of a classifier that predicts 1 for margins above a threshold: accuracy;
// precision, recall and f1 of label 1, with the table of true and false ones they come from; and the areas under
// the curves of all thresholds.
func BinaryMetrics(all []Scored, cut float64) map[string]float64 {
	table, n := BinaryTable(all, cut), WeightOf(all)
	out := map[string]float64{"accuracy": (table[0][0] + table[1][1]) / n, "true_negatives": table[0][0],
		"false_positives": table[0][1],
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

// BinaryTable returns what rows weigh together, by their label and the one that is said of them.
func BinaryTable(all []Scored, cut float64) (table [2][2]float64) {
	for _, s := range all {
		said := 0
		if s.Z > cut {
			said = 1
		}
		table[int(s.Y)][said] += s.Weight
	}
	return table
}

// areas returns the areas under two curves of all thresholds: the ROC curve,
// which is the probability that a positive row scores above a negative one, ties
// counting half; and precision over recall, as the mean precision over positive
// rows (average precision), rows of one score taken together. They are undefined
// where one of the labels is absent.
func areas(all []Scored) (roc, pr float64, ok bool) {
	sorted := fromTheHighest(all)
	var positives, negatives, wins float64 // so far, from the highest score down
	for i := 0; i < len(sorted); {
		var pos, neg float64
		j := i
		for ; j < len(sorted) && (j == i || sorted[j].Z == sorted[i].Z); j++ {
			pos += sorted[j].Weight * sorted[j].Y
			neg += sorted[j].Weight * (1 - sorted[j].Y)
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
func fromTheHighest(all []Scored) []Scored {
	sorted, half := slices.Clone(all), len(all)/2
	var both sync.WaitGroup
	for _, part := range [][]Scored{sorted[:half], sorted[half:]} {
		both.Go(func() { slices.SortFunc(part, func(a, b Scored) int { return cmp.Compare(b.Z, a.Z) }) })
	}
	both.Wait()
	a, b, out := sorted[:half], sorted[half:], make([]Scored, 0, len(all))
	for len(a) > 0 && len(b) > 0 {
		if cmp.Compare(a[0].Z, b[0].Z) >= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}
