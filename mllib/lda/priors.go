package lda

import (
	"iter"
	"math"
	"slices"

	"github.com/volley-engine/volley/tables"
)

// Priors have a step after every second clock at first, as each goes part of the way only, and after every tenth later.
const (
	priorsSoon  = 2
	priorsLater = 10
	priorsFirst = 20 // clocks that are first
)

// schedule is after how many clocks priors have a step at first: no fewer than it takes until what all workers measure
// for one is seen, so that each is measured where the one before has led.
type schedule int

func scheduleOf(m tables.Model) schedule {
	return schedule(min(priorsLater, max(priorsSoon, unseen(m)+1)))
}

// unseen returns for how many clocks a worker waits until it takes what all have measured to be there.
func unseen(m tables.Model) int { return int(min(m.Slack, priorsLater-1)) }

// due reports whether priors have a step after a clock.
func (s schedule) due(clock int) bool {
	if clock > priorsFirst {
		return clock%priorsLater == 0
	}
	return clock%int(s) == 0
}

// until returns how many steps priors have had after a clock.
func (s schedule) until(clock int) int {
	return max(0, min(clock, priorsFirst))/int(s) + max(0, clock-priorsFirst)/priorsLater
}

// priors are what documents' mixtures, and topics, are thought to be drawn from.
type priors struct {
	alphas []float64 // by topic
	beta   float64   // of each word in a topic
}

// measures has a place for each topic, and these after them: what a step of priors needs (Minka 2000, "Estimating a
// Dirichlet distribution", equation 55).
const (
	ofDocuments = iota // Σ ψ(N + A) − ψ(A) over documents
	ofWords            // Σ ψ(n + β) − ψ(β) over words and topics
	ofTopics           // Σ ψ(N + Vβ) − ψ(Vβ) over topics
	ofWorkers          // how many have measured
	measures
)

// measure adds what a step of alphas needs of a worker's documents: of each topic Σ ψ(n + α) − ψ(α), and ofDocuments.
func (c *corpus) measure(sums []float64) {
	base := make([]float64, c.topics)
	for k, a := range c.alphas {
		base[k] = digamma(a)
	}
	all := digamma(c.sum)
	for d := range c.documents() {
		for k, n := range c.counted(d) {
			sums[k] += digamma(float64(n)+c.alphas[k]) - base[k]
		}
		sums[c.topics+ofDocuments] += digamma(float64(c.docs[d].tokens)+c.sum) - all
	}
	sums[c.topics+ofWorkers]++
}

// counted returns a document's topics, each once, with how many of its tokens are of it.
func (c *corpus) counted(d int) iter.Seq2[uint16, int] {
	return func(yield func(uint16, int) bool) {
		mix := c.mixture(d)
		for i, m := range mix {
			n := int(m.n)
			if c.docs[d].tokens > most { // then a topic may have several shares, and counts with its first
				if slices.ContainsFunc(mix[:i], func(o share) bool { return o.topic == m.topic }) {
					continue
				}
				for _, o := range mix[i+1:] {
					if o.topic == m.topic {
						n += int(o.n)
					}
				}
			}
			if !yield(m.topic, n) {
				return
			}
		}
	}
}

// growth is ψ(n + x) − ψ(x) by n.
type growth struct {
	x, base float64
	low     []float64
}

func newGrowth(x float64) *growth {
	g := &growth{x: x, base: digamma(x), low: []float64{0}}
	for n := range 64 {
		g.low = append(g.low, g.low[n]+1/(float64(n)+x))
	}
	return g
}

// of returns it; 0 of what is below 0, as a worker may see that misses what others have added.
func (g *growth) of(n int32) float64 {
	if n < int32(len(g.low)) {
		return g.low[max(0, n)]
	}
	return digamma(float64(n)+g.x) - g.base
}

// measureWords returns what a step of beta needs of some rows of words' counts.
func measureWords(words *tables.Access[int32], rows []int, beta float64) (sum float64) {
	g := newGrowth(beta)
	words.Prefetch(rows...)
	for _, r := range rows {
		for _, n := range words.Row(r).Values {
			sum += g.of(n)
		}
	}
	return sum
}

// measureTopics returns what a step of beta needs of all topics.
func measureTopics(totals []int64, beta float64, vocabulary int) (sum float64) {
	all := beta * float64(vocabulary)
	for _, n := range totals {
		sum += digamma(float64(max(0, n))+all) - digamma(all)
	}
	return sum
}

// leastPrior keeps topics that no document has, and words that no topic has, from being lost for ever.
const leastPrior = 1e-5

// stepped returns priors after a step by what all workers have measured.
func (p priors) stepped(sums []float64, vocabulary int) priors {
	topics := len(p.alphas)
	out := priors{slices.Clone(p.alphas), p.beta}
	if all := sums[topics+ofDocuments]; all > 0 {
		for k, a := range p.alphas {
			out.alphas[k] = max(leastPrior, a*sums[k]/all)
		}
	}
	if all := sums[topics+ofTopics]; all > 0 {
		out.beta = max(leastPrior, p.beta*sums[topics+ofWords]/(float64(vocabulary)*all))
	}
	return out
}

// setPriors takes priors over.
func (c *corpus) setPriors(p priors) {
	c.alphas, c.beta, c.sum = p.alphas, p.beta, 0
	for _, a := range p.alphas {
		c.sum += a
	}
}

// digamma returns ψ(x) of a positive number, by its recurrence and its asymptotic series (Abramowitz and Stegun, 6.3.5
// and 6.3.18).
func digamma(x float64) (y float64) {
	for ; x < 10; x++ {
		y -= 1 / x
	}
	inv := 1 / x
	sq := inv * inv
	return y + math.Log(x) - inv/2 - sq*(1./12-sq*(1./120-sq*(1./252-sq*(1./240-sq/132))))
}
