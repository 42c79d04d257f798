package lda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volley-engine/volley/tables"
)

// TestAPartIsSampledAsByItsWorker: a helper draws the topics that the worker itself would by the same numbers, and what
// the worker has after it took them is what it would have: of tokens, documents, rows and totals.
func TestAPartIsSampledAsByItsWorker(t *testing.T) {
	t.Parallel()
	const k, vocabulary = 7, 100
	begun := func() (*corpus, map[int]tables.Row[int32]) {
		rng := rand.New(rand.NewPCG(3, 4))
		var docs []document
		for range 40 {
			var d document
			for w := range int32(vocabulary) {
				if rng.IntN(4) == 0 {
					d.words, d.counts = append(d.words, w), append(d.counts, 1+rng.Int32N(5))
				}
			}
			docs = append(docs, d)
		}
		c := newCorpus(docs, k, nil, rng)
		c.setPriors(priors{slices.Repeat([]float64{0.1}, k), 0.01})
		rows, totals := map[int]tables.Row[int32]{}, make([]int64, k)
		c.rows(0, c.lines(), func(int) {}, func(i int, w int32) {
			for _, topic := range c.topic[c.ends[i]:c.ends[i+1]] {
				c.change[topic]++
				c.touched[0] |= 1 << topic
				totals[topic]++
			}
			c.unload(w)
		}, func(row int, columns, changes []int32) {
			rows[row] = tables.Row[int32]{Columns: slices.Clone(columns), Values: slices.Clone(changes)}
		})
		c.begin(totals, vocabulary)
		return c, rows
	}
	own, rows := begun()
	other, _ := begun()
	part := tables.Part{From: 2, To: 6}
	var want, got []string
	note := func(all *[]string) func(row int, columns, changes []int32) {
		return func(row int, columns, changes []int32) {
			*all = append(*all, fmt.Sprint(row, columns, changes))
		}
	}
	var row tables.Row[int32]
	rng := rand.NewPCG(9, 1)
	own.rows(part.From, part.To, func(r int) { row = rows[r] }, func(i int, w int32) {
		own.sweepWord(i, ofWord(row, w, k), rng)
	}, note(&want))

	g, worked := other.give(part, func(r int) tables.Row[int32] { return rows[r] }), 0.0
	other.take(part, g.sample(k, vocabulary, rand.NewPCG(9, 1), func(d float64) { worked += d }), note(&got))
	if fmt.Sprint(want) != fmt.Sprint(got) || !slices.Equal(own.topic, other.topic) {
		t.Fatalf("changes of rows are %v, want %v", got, want)
	}
	if !slices.Equal(own.moved, other.moved) || !slices.Equal(own.totals, other.totals) {
		t.Errorf("totals are %v, want %v", other.totals, own.totals)
	}
	own.arrange()
	other.arrange()
	for d := range own.docs {
		if !slices.Equal(own.mixture(d), other.mixture(d)) {
			t.Errorf("document %d has %v, want %v", d, other.mixture(d), own.mixture(d))
		}
	}
	if n := len(g.Words); math.Abs(worked-float64(n)*other.documentsOfWord()) > 1e-9 || n == 0 {
		t.Errorf("%d words were as work of %v documents", n, worked)
	}
}

// TestHelpersLoseNoToken: on a cluster of which one slot is slow workers do parts of its clocks; no token is lost or
// counted twice (Train holds counts against tokens at each tick), planted topics are found, and workers wait less.
func TestHelpersLoseNoToken(t *testing.T) {
	t.Parallel()
	const k, each = 6, 60
	text, tokens := drawn(1500, k, each, 5)
	c := defaults(saved(t, text), k+2, 60)
	c.Model = tables.SSP(1)
	flags := []string{"--executors", "4", "--clock", "virtual", "--pace-rate", "1000", "--pace", "static:1,1,1,0.3"}
	alone, err := trained(t, c, flags...)
	if err != nil {
		t.Fatal(err)
	}
	help := tables.DefaultHelp()
	c.Help = &help
	out, err := trained(t, c, flags...)
	if err != nil {
		t.Fatal(err)
	}
	if out.Helped < 0.02 || alone.Helped != 0 || out.Waited > 0.8*alone.Waited || out.Model.Tokens != tokens {
		t.Errorf("helped %.3f, waited %.3f, alone %.3f", out.Helped, out.Waited, alone.Waited)
	}
	for topic := range k {
		if best := closest(out.Model, topic, each); best < 0.95 {
			t.Errorf("the topic nearest to the planted topic %d has a cosine of %.3f", topic, best)
		}
	}
}
