package mlp

import (
	"context"
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
)

// spread is what a network's units are chosen by: sums of features and their squares,
// how far from zero they come, and the same sums of labels.
type spread struct {
	Sum, Square, Most []float64
	Label, LabelSq    float64
}

// MarshalBinary lays the sums out as floats.
func (s spread) MarshalBinary() ([]byte, error) {
	return num.PutFloats(nil, []float64{s.Label, s.LabelSq}, s.Sum, s.Square, s.Most), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *spread) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, 2)
	if err != nil || len(v)%3 != 2 {
		return num.ErrCutShort
	}
	s.Label, s.LabelSq, v = v[0], v[1], v[2:]
	d := len(v) / 3
	s.Sum, s.Square, s.Most = v[:d], v[d:2*d], v[2*d:]
	return nil
}

// take takes in a value, less what sums are about.
func (s *spread) take(j int, v, weight float64) {
	s.Sum[j] = math.FMA(weight, v, s.Sum[j])
	s.Square[j] = math.FMA(float64(weight*v), v, s.Square[j])
	s.Most[j] = max(s.Most[j], math.Abs(v))
}

// spreadAggregator sums what units are chosen by; its parameter is how many features
// there are.
func spreadAggregator() rdd.Aggregator[fold.MomentsParam, rdd.Point, spread] {
	return rdd.Aggregator[fold.MomentsParam, rdd.Point, spread]{
		Zero: func(p fold.MomentsParam) spread {
			return spread{Sum: make([]float64, p.Features), Square: make([]float64, p.Features),
				Most: make([]float64, p.Features)}
		},
		AddBatch: addSpread,
		Merge: func(a, b spread) spread {
			kernel.Add(b.Sum, a.Sum)
			kernel.Add(b.Square, a.Square)
			for j, m := range b.Most {
				a.Most[j] = max(a.Most[j], m)
			}
			a.Label, a.LabelSq = a.Label+b.Label, a.LabelSq+b.LabelSq
			return a
		},
		Scale:    func(a spread, _ float64) spread { return a },
		Weighted: true,
	}
}

func addSpread(s spread, p fold.MomentsParam, b *rdd.Batch) spread {
	for _, r := range b.Rows {
		w, y := b.WeightOf(r), b.Labels[r]-p.Positive
		s.Label = math.FMA(w, y, s.Label)
		s.LabelSq = math.FMA(float64(w*y), y, s.LabelSq)
		if b.Dense() {
			for j := range p.Features {
				v := fold.ValueAt(b, int(r)*p.Features+j)
				if p.Shift != nil {
					v -= p.Shift[j]
				}
				s.take(j, v, w)
			}
			continue
		}
		for at := b.Offsets[r]; at < b.Offsets[r+1]; at++ {
			s.take(int(b.Indices[at]), fold.ValueAt(b, int(at)), w)
		}
	}
	return s
}

// furthest is how many units from the mean a feature may come: one that hardly ever
// varies would be far from it.
const furthest = 10

// units chooses those in which the network sees features, and labels that are numbers:
// from sums about a row of the data, which lose no digits to how far they are from zero.
func (t *trainer) units(ctx context.Context) error {
	sample, err := t.plan.Sample.Run(ctx, t.Session)
	if err != nil {
		return err
	}
	p := fold.MomentsParam{Features: t.meta.Features, Shift: fold.Near(t.meta, sample)}
	if t.cfg.Regression && len(sample) > 0 {
		p.Positive = sample[0].Label
	}
	s, err := t.plan.Spread.Run(ctx, t.Session, p)
	if err == nil {
		err = train.Squarable(t.meta, append(append([]float64(nil), s.Sum...), s.Square...), 0)
	}
	if err == nil && t.cfg.Regression {
		if err = train.Summable(p.Positive); err == nil {
			err = train.Summable(s.Label)
		}
	}
	if err != nil {
		return err
	}
	n := t.Session.LastInfo().Weight
	t.net.Mean, t.net.Unit = make([]float64, len(s.Sum)), make([]float64, len(s.Sum))
	for j := range s.Sum {
		mean, deviation := meanAndDeviation(n, s.Sum[j], s.Square[j])
		if u := max(deviation, (s.Most[j]+math.Abs(mean))/furthest); deviation > 0 {
			t.net.Unit[j] = 1 / u
		}
		if t.net.Mean[j] = mean; p.Shift != nil {
			t.net.Mean[j] += p.Shift[j]
		}
	}
	if t.net.Deviation = 1; t.cfg.Regression {
		center, deviation := meanAndDeviation(n, s.Label, s.LabelSq)
		if t.net.Center = center + p.Positive; deviation > 0 {
			t.net.Deviation = deviation
		}
	}
	return nil
}

func meanAndDeviation(n, sum, square float64) (mean, deviation float64) {
	mean = sum / n
	return mean, math.Sqrt(max(0, math.FMA(-mean, mean, square/n)))
}

// begin takes over a network as plain returns it.
func (n *network) begin(v, plain []float64) {
	copy(v, plain)
	if n.Deviation != 1 || n.Center != 0 {
		w, b := n.layer(v, len(n.Sizes)-1)
		b[0] -= n.Center
		kernel.Scale(1/n.Deviation, w)
		kernel.Scale(1/n.Deviation, b)
	}
	out := n.Sizes[1]
	w, b := n.layer(v, 1)
	for j, u := range n.Unit {
		row := w[j*out : (j+1)*out]
		kernel.Axpy(n.Mean[j], row, b)
		if u > 0 { // a feature that does not vary has no unit
			kernel.Scale(1/u, row)
		} else {
			clear(row)
		}
	}
}

// plain returns the network as it takes and gives what is in the data: units are taken
// into the first layer, and those of labels into the last.
func (n *network) plain() []float64 {
	v := append([]float64(nil), n.V...)
	out := n.Sizes[1]
	w, b := n.layer(v, 1)
	for j, u := range n.Unit {
		row := w[j*out : (j+1)*out]
		kernel.Scale(u, row)
		kernel.Axpy(-n.Mean[j], row, b)
	}
	if n.Deviation != 1 || n.Center != 0 {
		w, b = n.layer(v, len(n.Sizes)-1)
		kernel.Scale(n.Deviation, w)
		kernel.Scale(n.Deviation, b)
		b[0] += n.Center
	}
	return v
}
