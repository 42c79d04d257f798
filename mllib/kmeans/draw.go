package kmeans

import (
	"math"

	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
)

// Where k-means begins is decided on few rows that stand for all. A round of k-means‖
// (Bahmani et al. 2012) draws rows with a chance that grows with their distance from
// one of them, which finds most of the places where rows lie; a second pass draws, half
// of them evenly and half by their distance from those, the rows that centres are
// chosen on, each with the weight of the rows that it stands for (Bachem, Lucic & Krause
// 2018). That is done in seeding.

// drawFactor is how many rows the first round draws, in k.
const drawFactor = 2

// drawParam is the parameter of a pass that draws rows.
type drawParam struct {
	centres centres
	Chance  float64 // of a row, by weight and squared distance
	Even    float64 // of a row, by weight
	Seed    uint64
}

// MarshalBinary lays the parameter out as floats.
func (p drawParam) MarshalBinary() ([]byte, error) {
	raw, err := p.centres.MarshalBinary()
	return append(num.PutFloats(nil, []float64{p.Chance, p.Even, math.Float64frombits(p.Seed)}), raw...), err
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (p *drawParam) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, 3)
	if err != nil {
		return err
	}
	p.Chance, p.Even, p.Seed = v[0], v[1], math.Float64bits(v[2])
	return p.centres.UnmarshalBinary(raw[24:])
}

// drawn are rows that were drawn, the weight that each stands for, and how many were
// looked at.
type drawn struct {
	Seen   int64
	Rows   [][]float64
	Weight []float64
}

// draw takes each row with its chance. What decides is a hash of the seed, the
// row and its place in its split, so that it depends on the data only.
func (a *assigner) draw(d drawn, p drawParam, b *rdd.Batch) drawn {
	w := a.work(len(b.Rows))
	defer a.pool.Put(w)
	a.assign(w, &p.centres, b)
	for i, r := range b.Rows {
		d.Seen++
		chance := float64(b.WeightOf(r) * math.FMA(p.Chance, w.squared[i], p.Even))
		if chance <= 0 || drawNumber(p.Seed, d.Seen, b, int(r)) >= chance {
			continue
		}
		row := make([]float64, p.centres.D)
		times := 1.0
		if a.cosine {
			times = w.scale[i]
		}
		addTimes(row, times, b, int(r))
		d.Rows, d.Weight = append(d.Rows, row), append(d.Weight, b.WeightOf(r)/min(1, chance))
	}
	return d
}

// drawNumber returns a number in [0, 1) that is as good as drawn.
func drawNumber(seed uint64, place int64, b *rdd.Batch, r int) float64 {
	h := num.Mix(seed ^ num.Mix(uint64(place)))
	from, to := r*b.Features, (r+1)*b.Features
	if !b.Dense() {
		from, to = int(b.Offsets[r]), int(b.Offsets[r+1])
	}
	for k := from; k < min(to, from+8); k++ {
		v := 0.0
		if b.X32 != nil {
			v = float64(b.X32[k])
		} else {
			v = b.X64[k]
		}
		h = num.Mix(h ^ math.Float64bits(v))
	}
	return float64(h>>11) / (1 << 53)
}
