package model

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// Calibration turns a classifier's margins into probabilities, fitted to rows that it was not trained on.
type Calibration struct {
	Method string  `json:"method"` // BySigmoid or ByIsotonic
	A      float64 `json:"a,omitempty"`
	B      float64 `json:"b,omitempty"` // the probability is 1/(1+exp(−(a·z+b)))
	// Of an isotonic one the probabilities at some margins, both ascending: it is linear between them.
	Margins       []float64 `json:"margins,omitempty"`
	Probabilities []float64 `json:"probabilities,omitempty"`
}

// The ways to calibrate: a sigmoid of two numbers (Platt, Probabilistic Outputs for Support Vector Machines, 1999), or
// the best ascending function (Zadrozny and Elkan, 2002), which needs a thousand rows or more.
const (
	BySigmoid  = "sigmoid"
	ByIsotonic = "isotonic"
)

// Calibrate fits a calibration to margins and what they should have been.
func Calibrate(method string, all []Scored) (*Calibration, error) {
	var of [2]float64
	for _, s := range all {
		of[int(s.Y)] += s.Weight
	}
	if !(of[0] > 0) || !(of[1] > 0) {
		return nil, fault.Newf(fault.BadInput, "calibrate", "the model", "the data have no rows of one of its labels")
	}
	switch method {
	case BySigmoid:
		return sigmoidOf(all, of)
	case ByIsotonic:
		return isotonicOf(all), nil
	}
	return nil, fault.Newf(fault.Usage, "calibrate", "--method", "%q is not one of sigmoid, isotonic", method)
}

// Probability returns the probability of label 1 of a row with margin z.
func (c *Calibration) Probability(z float64) float64 {
	if c.Method == BySigmoid {
		return kernel.Sigmoid(math.FMA(c.A, z, c.B))
	}
	k, found := slices.BinarySearch(c.Margins, z)
	switch {
	case found:
		return c.Probabilities[k]
	case k == 0:
		return c.Probabilities[0]
	case k == len(c.Margins):
		return c.Probabilities[k-1]
	}
	share := (z - c.Margins[k-1]) / (c.Margins[k] - c.Margins[k-1])
	return math.FMA(share, c.Probabilities[k]-c.Probabilities[k-1], c.Probabilities[k-1])
}

// Check refuses a calibration that no data can have had.
func (c *Calibration) Check() error {
	ok := c.Method == BySigmoid && num.Finite(c.A) && num.Finite(c.B)
	if c.Method == ByIsotonic {
		ok = len(c.Margins) > 0 && len(c.Margins) == len(c.Probabilities) && slices.IsSorted(c.Margins) &&
			slices.IsSorted(c.Probabilities) && c.Probabilities[0] >= 0 && c.Probabilities[len(c.Probabilities)-1] <= 1
		for _, z := range c.Margins {
			ok = ok && num.Finite(z)
		}
	}
	if !ok {
		return fault.Newf(fault.Corrupt, "read", "model.json", "its calibration cannot be")
	}
	return nil
}

// mostNewton is after how many steps fitting a sigmoid ends in any case.
const mostNewton = 100

// sigmoidOf minimizes the log-loss of a sigmoid by Newton's method, with targets that are not quite 0 and 1: as if one
// more row of each label had been seen.
func sigmoidOf(all []Scored, of [2]float64) (*Calibration, error) {
	f := sigmoidFit{all: all, target: [2]float64{1 / (of[0] + 2), (of[1] + 1) / (of[1] + 2)}}
	for _, s := range all { // margins in units of their own
		f.unit = max(f.unit, math.Abs(s.Z))
	}
	if !(f.unit > 0) || !num.Finite(f.unit) {
		return nil, fault.Newf(fault.BadInput, "calibrate", "the model", "its margins are all zero, or not finite")
	}
	b := math.Log((of[1] + 1) / (of[0] + 1))
	a := 0.0
	loss, slope, curve := f.at(a, b)
	for range mostNewton {
		det := float64(curve[0]*curve[2]) - float64(curve[1]*curve[1])
		da := -(float64(curve[2]*slope[0]) - float64(curve[1]*slope[1])) / det
		db := -(float64(curve[0]*slope[1]) - float64(curve[1]*slope[0])) / det
		descent := float64(da*slope[0]) + float64(db*slope[1])
		if !(descent < -1e-14*max(1, loss)) {
			break
		}
		step := 1.0
		for ; step > 1e-10; step /= 2 {
			if next, s, c := f.at(a+step*da, b+step*db); next < loss+1e-4*step*descent {
				a, b, loss, slope, curve = a+step*da, b+step*db, next, s, c
				break
			}
		}
		if step <= 1e-10 {
			break
		}
	}
	return &Calibration{Method: BySigmoid, A: a / f.unit, B: b}, nil
}

// sigmoidFit is the loss of sigmoids.
type sigmoidFit struct {
	all    []Scored
	target [2]float64
	unit   float64
}

// at returns the loss at a and b, its slopes, and its second derivatives by aa, ab and bb.
func (f *sigmoidFit) at(a, b float64) (loss float64, slope [2]float64, curve [3]float64) {
	curve[0], curve[2] = 1e-12, 1e-12 // never singular
	for _, s := range f.all {
		x := s.Z / f.unit
		z, t := math.FMA(a, x, b), f.target[int(s.Y)]
		p := kernel.Sigmoid(z)
		loss += s.Weight * (kernel.Softplus(z) - float64(t*z))
		d, h := s.Weight*(p-t), s.Weight*float64(p*(1-p))
		slope[0] += float64(d * x)
		slope[1] += d
		curve[0] += float64(h * float64(x*x))
		curve[1] += float64(h * x)
		curve[2] += h
	}
	return loss, slope, curve
}

// isotonicOf returns the ascending function of least squared error, by pooling neighbours that are out of order.
func isotonicOf(all []Scored) *Calibration {
	type block struct{ low, high, sum, weight float64 }
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Scored) int { return cmp.Compare(a.Z, b.Z) })
	var points, blocks []block // one point for rows of the same margin
	for _, s := range sorted {
		if n := len(points); n > 0 && points[n-1].low == s.Z {
			points[n-1].sum += s.Weight * s.Y
			points[n-1].weight += s.Weight
		} else {
			points = append(points, block{s.Z, s.Z, s.Weight * s.Y, s.Weight})
		}
	}
	for _, b := range points {
		if b.weight == 0 {
			continue
		}
		for len(blocks) > 0 {
			last := blocks[len(blocks)-1]
			if last.sum*b.weight < b.sum*last.weight {
				break
			}
			b = block{last.low, b.high, last.sum + b.sum, last.weight + b.weight}
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	c := &Calibration{Method: ByIsotonic}
	for _, b := range blocks {
		p := b.sum / b.weight
		c.Margins, c.Probabilities = append(c.Margins, b.low), append(c.Probabilities, p)
		if b.high > b.low {
			c.Margins, c.Probabilities = append(c.Margins, b.high), append(c.Probabilities, p)
		}
	}
	return c
}

// leastProbability is what probabilities of 0 count as in a log-loss.
const leastProbability = 0x1p-52

// ProbabilityMetrics returns how good probabilities are, Z being that of label 1: the log-loss, the mean squared error
// (brier), and the mean distance of what is said from how often it is so, over ten bins (calibration_error).
func ProbabilityMetrics(all []Scored) map[string]float64 {
	var loss, brier, off float64
	n := WeightOf(all)
	for _, s := range all {
		p := min(max(s.Z, leastProbability), 1-leastProbability)
		if s.Y == 0 {
			p = 1 - p
		}
		loss -= s.Weight * kernel.Log(p)
		brier = math.FMA(s.Weight*(s.Z-s.Y), s.Z-s.Y, brier)
	}
	for _, b := range ReliabilityOf(all) {
		off += math.Abs(b.Said-b.Is) * b.Weight
	}
	return map[string]float64{"log_loss": loss / n, "brier": brier / n, "calibration_error": off / n}
}

// ReliabilityBin is the rows whose probabilities lie between From and Through: what is said of them on average, and
// how often it is so.
type ReliabilityBin struct {
	From, Through, Said, Is, Weight float64
}

// Reliability is how often what is said is so, by ranges of probabilities that have rows.
type Reliability []ReliabilityBin

// reliabilityBins is how many ranges there are, of the same width.
const reliabilityBins = 10

// ReliabilityOf returns the ranges of probabilities Z.
func ReliabilityOf(all []Scored) (out Reliability) {
	var bins [reliabilityBins]ReliabilityBin
	for _, s := range all {
		b := &bins[min(reliabilityBins-1, max(0, int(s.Z*reliabilityBins)))]
		b.Said += s.Weight * s.Z
		b.Is += s.Weight * s.Y
		b.Weight += s.Weight
	}
	for i, b := range bins {
		if b.Weight > 0 {
			out = append(out, ReliabilityBin{float64(i) / reliabilityBins, float64(i+1) / reliabilityBins,
				b.Said / b.Weight, b.Is / b.Weight, b.Weight})
		}
	}
	return out
}

// WriteCSV writes the table.
func (r Reliability) WriteCSV(w io.Writer) error {
	lines := [][]string{{"from", "to", "said", "is", "weight"}}
	for _, b := range r {
		var line []string
		for _, v := range []float64{b.From, b.Through, b.Said, b.Is, b.Weight} {
			line = append(line, strconv.FormatFloat(v, 'g', -1, 64))
		}
		lines = append(lines, line)
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// String returns the calibration in a line.
func (c *Calibration) String() string {
	switch {
	case c == nil:
		return ""
	case c.Method == BySigmoid:
		return fmt.Sprintf("calibrated: the probability is the sigmoid of %g·margin %+g\n", c.A, c.B)
	}
	return fmt.Sprintf("calibrated: the probability ascends through %d points\n", len(c.Margins))
}
