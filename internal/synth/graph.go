package synth

import "strconv"

// Graph is the law of graphs whose nodes have very unlike numbers of edges (R-MAT: Chakrabarti, Zhan and Faloutsos
// 2004): an edge falls into one of the four quarters of the matrix of all pairs of nodes with the probabilities 0.57,
// 0.19, 0.19 and 0.05, into one of that quarter's, and so on. Nodes have numbers below 2^Scale, so dealt out that a
// number says nothing of its edges. Edge i is drawn from Random(42+i); some come more than once.
type Graph struct {
	Rows  int64
	Scale int
}

// Columns returns none: edges are text.
func (g Graph) Columns() []string { return []string{"source", "target"} }

// Blocks returns how many blocks there are.
func (g Graph) Blocks() int { return blocksOf(g.Rows) }

func (g Graph) block(k int) *block {
	b := &block{}
	first := int64(k) * blockRows
	for i := first; i < min(first+blockRows, g.Rows); i++ {
		from, to := g.edge(i)
		b.text = strconv.AppendInt(b.text, from, 10)
		b.text = append(b.text, ' ')
		b.text = strconv.AppendInt(b.text, to, 10)
		b.text = append(b.text, '\n')
	}
	return b
}

// edge returns the nodes of an edge.
func (g Graph) edge(i int64) (from, to int64) {
	r := NewRandom(rowSeed + i)
	for range g.Scale {
		u := r.NextDouble()
		from, to = from<<1, to<<1
		switch {
		case u >= 0.95:
			from, to = from|1, to|1
		case u >= 0.76:
			from |= 1
		case u >= 0.57:
			to |= 1
		}
	}
	return g.number(from), g.number(to)
}

// number deals numbers out: another for each node, as the factor is odd.
func (g Graph) number(node int64) int64 { return node * 0x5851f42d4c957f2d & (1<<g.Scale - 1) }
