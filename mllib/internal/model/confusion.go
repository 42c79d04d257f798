package model

import (
	"io"

	"github.com/volley-engine/volley/internal/fault"
)

// Confusion says how often each label was said of rows of each, by their weight.
type Confusion struct {
	Labels []string
	Table  []float64 // of rows of label i, what weighs those said to be of label j: at i × labels + j
}

// NoConfusion returns the error about a model that has no labels.
func NoConfusion() error {
	return fault.Newf(fault.Usage, "evaluate", "the confusion of labels", "the model is a regression: it has no labels")
}

// WriteCSV writes the table as CSV: a line for each label that rows have, a column for each that is said.
func (t *Confusion) WriteCSV(w io.Writer) error {
	out := Lines{Text: []byte("label")}
	for _, l := range t.Labels {
		out.Text = append(append(out.Text, ','), CSVField("said "+l)...)
	}
	out.Text = append(out.Text, '\n')
	k := len(t.Labels)
	for i, l := range t.Labels {
		out.Text = append(append(out.Text, CSVField(l)...), ',')
		out.End(t.Table[i*k : (i+1)*k]...)
	}
	_, err := w.Write(out.Text)
	return err
}

// metrics returns accuracy, and precision, recall and f1 as means over classes. A class that no row has, or that
// is never said, counts as 0 in what is not defined for it; balanced accuracy is over the classes that rows have.
func (t *Confusion) metrics() map[string]float64 {
	k := len(t.Labels)
	var all, right, precision, recall, f1, present float64
	for c := range k {
		var are, said float64
		hit := t.Table[c*k+c]
		for o := range k {
			are, said = are+t.Table[c*k+o], said+t.Table[o*k+c]
		}
		all, right = all+are, right+hit
		if said > 0 {
			precision += hit / said
		}
		if are > 0 {
			recall += hit / are
			present++
		}
		if are+said > 0 {
			f1 += 2 * hit / (are + said)
		}
	}
	n := float64(k)
	return map[string]float64{"accuracy": right / all, "precision": precision / n, "recall": recall / n, "f1": f1 / n,
		"balanced_accuracy": recall / present}
}
