package lda

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volley-engine/volley/tables"
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

// TestStepsAreMeasuredWhereTheLastHasLed: whatever a worker may miss, it measures for a step by the priors that the
// step is applied to, and steps are numbered one after the other.
func TestStepsAreMeasuredWhereTheLastHasLed(t *testing.T) {
	t.Parallel()
	models := []tables.Model{tables.BSP(), tables.ASP(), tables.VAP(1, true)}
	for slack := range 30 {
		models = append(models, tables.SSP(slack))
	}
	for _, m := range models {
		s := scheduleOf(m)
		for clock := 1; clock <= 200; clock++ {
			before, n := s.until(clock-1), s.until(clock)
			if due := s.due(clock); due != (n == before+1) || !due && n != before {
				t.Fatalf("%v: clock %d: %d steps before, %d after, due %v", m, clock, before, n, due)
			}
			if known := priorSteps(m, clock); s.due(clock) && known != before {
				t.Errorf("%v: in clock %d step %d is measured by the priors after %d", m, clock, n, known)
			}
		}
	}
	if scheduleOf(tables.BSP()).until(50) != 13 {
		t.Error("under bsp priors have no 10 steps in 20 clocks, and one every tenth then")
	}
}

// TestStepsWaitForAllWorkers: one that a worker is not seen to have measured for is not taken, nor any after it.
func TestStepsWaitForAllWorkers(t *testing.T) {
	t.Parallel()
	const topics = 2
	p := params{Config: Config{Topics: topics, Alpha: 0.5, Beta: 0.25}, Vocabulary: 10}
	row := func(workers float64) []float64 {
		sums := make([]float64, topics+measures)
		sums[0], sums[1] = 1, 2
		sums[topics+ofDocuments], sums[topics+ofWords], sums[topics+ofTopics] = 1, 1, 1
		sums[topics+ofWorkers] = workers
		return sums
	}
	got := p.priors(3, 2, func(step int) []float64 { return row([]float64{2, 1, 2}[step]) })
	if want := p.priors(1, 2, func(int) []float64 { return row(2) }); !slices.Equal(got.alphas, want.alphas) ||
		got.beta != want.beta || got.alphas[1] != 1 {
		t.Errorf("priors are %v, want those after one step, %v", got, want)
	}
}
