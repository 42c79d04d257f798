package train

import "github.com/volley-engine/volley/rdd"

// SampleRows is how many rows the curvature is estimated from.
const SampleRows = 4096

// Packing configures how rows become splits.
type Packing struct {
	Input           rdd.Input
	Data            []string
	Splits          int
	Seed            uint64
	Random, Float32 bool
}

// Rows packs the rows to train on.
func (p Packing) Rows(g *rdd.Graph) rdd.Packed[rdd.Point] {
	options := []rdd.PackOption{rdd.Splits(p.Splits), rdd.Seed(p.Seed),
		rdd.Columns(p.Input.Features, p.Input.IndexBase-1)}
	if p.Random {
		options = append(options, rdd.RandomAssign())
	}
	if p.Float32 {
		options = append(options, rdd.SinglePrecision())
	}
	return rdd.Pack(rdd.Points(g, p.Input, p.Data...), options...)
}

// HeldOut packs the rows that are held out of training to stop by; nothing is
// declared where there are none.
func (p Packing) HeldOut(g *rdd.Graph) (rows rdd.Packed[rdd.Point], any bool) {
	if p.Input.Fold.Stop == 0 {
		return rows, false
	}
	p.Input.Fold.Stopping = true
	return p.Rows(g), true
}
