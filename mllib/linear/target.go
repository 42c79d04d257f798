package linear

import (
	"strconv"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/storage/pack"
)

// labels finds the label that counts as 1 and the originals of 0 and 1; of a
// regression there are none, and labels must be numbers.
func (c *Config) labels(m *pack.Meta) (stored float64, labels [2]string, err error) {
	if !c.regression() {
		return binaryLabels(m, c.job(), c.Positive)
	}
	if m.TextLabels {
		return 0, labels, fault.Newf(fault.BadInput, "train", c.job(), "its labels are texts, such as %q", m.Labels[0]).
			WithHint("--label chooses the column of what is to be predicted")
	}
	return 0, labels, nil
}

// binaryLabels finds the label that counts as 1, as it is stored, and the
// original labels of 0 and 1.
func binaryLabels(m *pack.Meta, job, positive string) (stored float64, labels [2]string, err error) {
	if positive != "" {
		for i, l := range m.Labels {
			if sameLabel(l, positive) {
				return train.StoredLabel(m, i), [2]string{otherLabel(m, i), l}, nil
			}
		}
		return 0, labels, fault.Newf(fault.Usage, "train", job, "no row has the label %q", positive).
			WithHint("--positive names a label of the data")
	}
	switch len(m.Labels) {
	case 2:
		return train.StoredLabel(m, 1), [2]string{m.Labels[0], m.Labels[1]}, nil
	case 1:
		return 0, labels, fault.Newf(fault.BadInput, "train", job,
			"every row has the label %s: a classifier needs two classes", m.Labels[0])
	}
	return 0, labels, fault.Newf(fault.BadInput, "train", job, "the data has %s distinct labels, not two",
		train.ManyLabels(m)).
		WithHint("softmax, and svm --multiclass, tell several labels apart; --positive LABEL trains one against the " +
			"rest; --label chooses the column")
}

// otherLabel returns what predictions call the rows that are not label i.
func otherLabel(m *pack.Meta, i int) string {
	if len(m.Labels) == 2 {
		return m.Labels[1-i]
	}
	return "rest"
}

func sameLabel(a, b string) bool {
	if a == b {
		return true
	}
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err == nil && err2 == nil && x == y
}
