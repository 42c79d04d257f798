package lda

import (
	"math"

	"github.com/volley-engine/volley/tables"
)

// alphaEvery is after how many iterations alphas have a step.
const alphaEvery = 10

// measure adds what a step of alphas needs of a worker's documents (Minka 2000, "Estimating a Dirichlet distribution",
// equation 55): of each topic Σ ψ(n + α) − ψ(α) over documents, and of all Σ ψ(N + A) − ψ(A).
func (c *corpus) measure(mixtures *tables.Access[float64], step int) {
	sums := make([]float64, c.topics+1)
	base := make([]float64, c.topics)
	for k, a := range c.alphas {
		base[k] = digamma(a)
	}
	all := digamma(c.sum)
	for d := range c.documents() {
		for _, m := range c.mixture(d) {
			sums[m.topic] += digamma(float64(m.n)+c.alphas[m.topic]) - base[m.topic]
		}
		sums[c.topics] += digamma(float64(c.docs[d].tokens)+c.sum) - all
	}
	mixtures.IncRow(step, sums)
}

// leastAlpha keeps topics that no document has from being lost for ever.
const leastAlpha = 1e-5

// stepped returns alphas after a step by what all documents say.
func stepped(alphas, sums []float64) []float64 {
	out := make([]float64, len(alphas))
	for k, a := range alphas {
		if out[k] = a; sums[len(alphas)] > 0 {
			out[k] = max(leastAlpha, a*sums[k]/sums[len(alphas)])
		}
	}
	return out
}

// setAlphas takes alphas over.
func (c *corpus) setAlphas(alphas []float64) {
	c.alphas, c.sum = alphas, 0
	for _, a := range alphas {
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
