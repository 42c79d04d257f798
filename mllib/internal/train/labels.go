package train

import (
	"strconv"

	"github.com/volley-engine/volley/storage/pack"
)

// ManyLabels returns how many labels a pack has.
func ManyLabels(m *pack.Meta) string {
	if len(m.Labels) == 0 {
		return "very many"
	}
	return strconv.Itoa(len(m.Labels))
}

// StoredLabel returns how a pack's rows have its i-th label.
func StoredLabel(m *pack.Meta, i int) float64 {
	if m.TextLabels {
		return float64(i)
	}
	v, _ := strconv.ParseFloat(m.Labels[i], 64) // it was formatted from a number
	return v
}
