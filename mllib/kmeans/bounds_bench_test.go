package kmeans

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/kernel"
)

// BenchmarkBounds measures what bounds on distances could save in Lloyd's rounds: of
// Hamerly's, the rows whose nearest centre need not be looked for, of Elkan's, the
// distances that need not be computed; and from these, and from the time that a row
// takes in a block of all centres, against one centre in a block, and by itself, how
// many times as fast a round could be at the most. Bounds themselves, and looking
// after them, are taken to cost nothing. See docs/jobs.md.
func BenchmarkBounds(b *testing.B) {
	for _, law := range []struct {
		d, k   int
		spread float64 // of centres, rows being 1 about them
	}{{50, 100, 0.5}, {20, 10, 0.7}, {2, 100, 20}, {50, 1000, 0.5}} {
		for _, rounds := range []int{20, 60} {
			b.Run(fmt.Sprintf("d=%d/k=%d/rounds=%d", law.d, law.k, rounds), func(b *testing.B) {
				for range b.N {
					p := newPruned(law.d, law.k, law.spread)
					for range rounds {
						p.round()
					}
					p.report(b)
				}
			})
		}
	}
}

// pruned are rows under Lloyd's rounds, and what bounds know of them.
type pruned struct {
	d, k         int
	x, centres   []float64
	rows         []int32
	at           []int32
	lower        []float64 // Hamerly's: no other centre is nearer
	each         []float64 // Elkan's: by row and centre
	seen, spared float64   // rows
	asked        float64   // distances that Elkan's bounds do not spare
	full         time.Duration
}

const prunedRows = 20_000

func newPruned(d, k int, spread float64) *pruned {
	rng := rand.New(rand.NewPCG(1, 2))
	about := normals(rng, k*d, spread)
	p := &pruned{d: d, k: k, x: normals(rng, prunedRows*d, 1), rows: make([]int32, prunedRows),
		at: make([]int32, prunedRows)}
	for r := range p.rows {
		p.rows[r] = int32(r)
		kernel.Add(about[rng.IntN(k)*d:][:d], p.x[r*d:(r+1)*d])
	}
	for range k {
		p.centres = append(p.centres, p.x[rng.IntN(prunedRows)*d:][:d]...)
	}
	return p
}

func normals(rng *rand.Rand, n int, spread float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = spread * rng.NormFloat64()
	}
	return out
}

// round is one of Lloyd's rounds, with what bounds would have said.
func (p *pruned) round() {
	distances := p.distances()
	near := p.near()
	if p.lower != nil {
		p.prune(distances, near)
	} else {
		p.lower, p.each = make([]float64, prunedRows), distances
		for r := range p.rows {
			p.at[r], _, p.lower[r] = nearestTwo(distances[r*p.k : (r+1)*p.k])
		}
	}
	p.move()
}

// distances are those of all rows and centres.
func (p *pruned) distances() []float64 {
	var n kernel.Nearest
	at, squared, began := make([]int32, prunedRows), make([]float64, prunedRows), time.Now()
	n.Set(p.centres, p.k, p.d, nil)
	kernel.FindNearest(&n, at, squared, p.x, p.rows, nil, nil)
	p.full += time.Since(began)
	out := make([]float64, prunedRows*p.k)
	for r := range p.rows {
		for c := range p.k {
			out[r*p.k+c] = between(p.x[r*p.d:(r+1)*p.d], p.centres[c*p.d:(c+1)*p.d])
		}
	}
	return out
}

// near are half the distances between centres, those of each with itself infinite.
func (p *pruned) near() []float64 {
	out := make([]float64, p.k*p.k)
	for i := range p.k {
		for j := range p.k {
			if out[i*p.k+j] = math.Inf(1); i != j {
				out[i*p.k+j] = between(p.centres[i*p.d:(i+1)*p.d], p.centres[j*p.d:(j+1)*p.d]) / 2
			}
		}
	}
	return out
}

// prune counts what bounds spare, and brings them up to date.
func (p *pruned) prune(distances, near []float64) {
	for r := range p.rows {
		all, old, own := distances[r*p.k:(r+1)*p.k], p.at[r], distances[r*p.k+int(p.at[r])]
		among := near[int(old)*p.k : (int(old)+1)*p.k]
		_, least, _ := nearestTwo(among)
		p.seen++
		nearest, _, second := nearestTwo(all)
		if own <= max(p.lower[r], least) {
			p.spared++
		} else {
			p.at[r], p.lower[r] = nearest, second
		}
		for c, d := range all {
			if own > least && c != int(old) && own > p.each[r*p.k+c] && own > among[c] {
				p.asked++
				p.each[r*p.k+c] = d
			}
		}
		p.at[r] = nearest
	}
}

// move puts centres where their rows are in the mean, and takes off bounds how far they
// have moved.
func (p *pruned) move() {
	n, sums := make([]float64, p.k), make([]float64, p.k*p.d)
	for r, c := range p.at {
		n[c]++
		kernel.Add(p.x[r*p.d:(r+1)*p.d], sums[int(c)*p.d:(int(c)+1)*p.d])
	}
	moved, most := make([]float64, p.k), 0.0
	for c := range p.k {
		if n[c] > 0 {
			kernel.Scale(1/n[c], sums[c*p.d:(c+1)*p.d])
			moved[c] = between(sums[c*p.d:(c+1)*p.d], p.centres[c*p.d:(c+1)*p.d])
			copy(p.centres[c*p.d:(c+1)*p.d], sums[c*p.d:(c+1)*p.d])
			most = max(most, moved[c])
		}
	}
	for r := range p.rows {
		p.lower[r] -= most
		for c, by := range moved {
			p.each[r*p.k+c] -= by
		}
	}
}

// report says what bounds could gain.
func (p *pruned) report(b *testing.B) {
	var n kernel.Nearest
	squared, at := make([]float64, prunedRows), make([]int32, prunedRows)
	n.Set(p.centres[:p.d], 1, p.d, nil)
	began := time.Now()
	kernel.FindNearest(&n, at, squared, p.x, p.rows, nil, nil)
	own := float64(time.Since(began))
	began = time.Now()
	for r := range p.rows {
		squared[r] = kernel.Dot(p.x[r*p.d:(r+1)*p.d], p.centres[:p.d])
	}
	single := float64(time.Since(began)) / prunedRows
	rounds := p.seen/prunedRows + 1
	full := float64(p.full) / rounds
	b.ReportMetric(full/prunedRows, "ns/row")
	b.ReportMetric(100*p.spared/p.seen, "%rows-spared")
	b.ReportMetric(100-100*p.asked/p.seen/float64(p.k), "%distances-spared")
	b.ReportMetric(full/(own+full*(1-p.spared/p.seen)), "hamerly-x")
	b.ReportMetric(full/(own+single*p.asked/(rounds-1)), "elkan-x")
}

func between(a, b []float64) float64 {
	var sq float64
	for j, v := range a {
		sq += (v - b[j]) * (v - b[j])
	}
	return math.Sqrt(sq)
}

// nearestTwo are the place of the least, the least and the second.
func nearestTwo(all []float64) (at int32, first, second float64) {
	first, second = math.Inf(1), math.Inf(1)
	for i, v := range all {
		if v < first {
			at, first, second = int32(i), v, first
		} else if v < second {
			second = v
		}
	}
	return at, first, second
}
