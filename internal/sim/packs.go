package sim

import (
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// simPack is a pack of the simulator.
type simPack struct {
	id       int
	rows     []int64
	bytes    []int64
	pieces   []int
	stateful bool        // rows have state
	upTo     [][]int64   // entries of the rows before each position, by split; nil where progress is counted in rows
	weighed  [][]float64 // weights of the rows before each position; nil where they have none
}

// drawPack makes a pack of n splits.
func (s *Sim) drawPack(id, splits int) *simPack {
	p := &simPack{id: id, stateful: s.rng.IntN(2) == 0}
	for range splits {
		n := int64(s.between(100, 3000))
		if s.rng.IntN(12) == 0 {
			n = int64(s.between(0, 15))
		}
		p.rows, p.bytes = append(p.rows, n), append(p.bytes, n*100)
		p.pieces = append(p.pieces, 1<<s.rng.IntN(5))
		if p.stateful {
			p.pieces[len(p.pieces)-1] = 1
		}
	}
	if s.rng.IntN(3) == 0 {
		p.drawEntries()
	}
	if s.rng.IntN(3) == 0 {
		p.drawWeights()
	}
	return p
}

// drawEntries gives rows from one to nine entries each, in which progress is counted.
func (p *simPack) drawEntries() {
	for i, n := range p.rows {
		sums := make([]int64, n+1)
		for k := range n {
			sums[k+1] = sums[k] + 1 + (k*k+int64(i))%9
		}
		p.upTo = append(p.upTo, sums)
	}
}

// drawWeights gives rows weights that differ from split to split.
func (p *simPack) drawWeights() {
	for i, n := range p.rows {
		sums := make([]float64, n+1)
		for k := range n {
			sums[k+1] = sums[k] + float64(1+(int64(i)+k)%3*int64(i%5))
		}
		p.weighed = append(p.weighed, sums)
	}
}

// entries returns the entries of each split; nil where progress is counted in rows.
func (p *simPack) entries() (out []int64) {
	for i, sums := range p.upTo {
		out = append(out, sums[p.rows[i]])
	}
	return out
}

// weight returns what some rows of a split weigh.
func (p *simPack) weight(split int, spans [2]plan.Span, n int64) (w float64) {
	if p.weighed == nil || n == 0 {
		return 0
	}
	for _, s := range spans {
		if s.Len() > 0 {
			w += p.weighed[split][s.To] - p.weighed[split][s.From]
		}
	}
	return w
}

// progress returns what n rows of a split count for, from a cursor on.
func (p *simPack) progress(step *wire.StartStep, split int, cursor, n int64) int64 {
	if !step.Entries {
		return n
	}
	sums, rows := p.upTo[split], p.rows[split]
	end := cursor + n
	return sums[min(end, rows)] - sums[cursor] + sums[max(0, end-rows)]
}

// sha returns the hash of a split's content.
func (p *simPack) sha(i int) plan.Digest {
	return plan.DigestOf([]byte{byte(i), byte(i >> 8), byte(p.id)})
}

// info returns what the job is told of the pack.
func (p *simPack) info() *driver.PackInfo {
	info := &driver.PackInfo{Node: p.id + 1, Rows: p.rows, Entries: p.entries(), Bytes: p.bytes,
		SHA256: make([]plan.Digest, len(p.rows))}
	for i := range info.SHA256 {
		info.SHA256[i] = p.sha(i)
		if p.weighed != nil {
			info.Weights = append(info.Weights, p.weighed[i][p.rows[i]])
		}
	}
	return info
}
