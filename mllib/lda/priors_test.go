package lda

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPriorsOfCountsAreFound: steps lead from far away to what counts were drawn from.
func TestPriorsOfCountsAreFound(t *testing.T) {
	t.Parallel()
	const words, tokens = 300, 20_000
	want := priors{[]float64{0.3, 0.9, 0.1, 0.5}, 0.4}
	rng := rand.New(rand.NewPCG(5, 6))
	totals, topics := []int64{}, [][]int32{}
	for range want.alphas {
		topics = append(topics, urn(rng, slices.Repeat([]float64{want.beta}, words), tokens))
		totals = append(totals, tokens)
	}
	var docs [][]int32
	for range 3000 {
		docs = append(docs, urn(rng, want.alphas, 50))
	}
	got := priors{slices.Repeat([]float64{5}, len(want.alphas)), 0.01}
	for range 400 {
		got = got.stepped(measured(got, topics, totals, docs), words)
	}
	for k, a := range append(got.alphas, got.beta) {
		if is := append(slices.Clone(want.alphas), want.beta)[k]; math.Abs(a-is) > 0.1*is {
			t.Errorf("prior %d is %.3f, counts were drawn from %v", k, a, is)
		}
	}
}

// urn draws counts of which each draw makes another like it likelier.
func urn(rng *rand.Rand, priors []float64, n int) []int32 {
	counts, of, sum := make([]int32, len(priors)), []int{}, 0.0
	for _, a := range priors {
		sum += a
	}
	for range n {
		u, k := rng.Float64()*(sum+float64(len(of))), 0
		if u >= sum {
			k = of[int(u-sum)]
		} else {
			for k = 0; k < len(priors)-1 && u >= priors[k]; k++ {
				u -= priors[k]
			}
		}
		counts[k]++
		of = append(of, k)
	}
	return counts
}

func measured(p priors, topics [][]int32, totals []int64, docs [][]int32) []float64 {
	k := len(p.alphas)
	sums, c := make([]float64, k+measures), newCorpus(nil, k, nil, nil)
	c.setPriors(p)
	for _, mix := range docs {
		n := int32(0)
		first := int32(len(c.mixes))
		for topic, m := range mix {
			if n += m; m > 0 {
				c.mixes = append(c.mixes, share{uint16(topic), uint16(m)})
			}
		}
		c.docs = append(c.docs, extent{first, n, int32(len(c.mixes)) - first})
	}
	c.measure(sums)
	g := newGrowth(p.beta)
	for _, counts := range topics {
		for _, n := range counts {
			sums[k+ofWords] += g.of(n)
		}
	}
	sums[k+ofTopics] = measureTopics(totals, p.beta, len(topics[0]))
	return sums
}
