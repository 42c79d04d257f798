package lda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volley-engine/volley/tables"
)

// begunWords are the words of begun's documents.
const begunWords = 100

// begun returns a corpus before its first sweep, and the counts of its words by row.
func begun() (*corpus, map[int]tables.Row[int32]) {
	const k = 7
	rng := rand.New(rand.NewPCG(3, 4))
	var docs []document
	for range 40 {
		var d document
		for w := range int32(begunWords) {
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
	c.begin(totals, begunWords)
	return c, rows
}

// TestAPartIsSampledAsByItsWorker: a helper draws the topics that the worker itself would by the same numbers, and what
// the worker has after it took them is what it would have: of tokens, documents, rows and totals.
func TestAPartIsSampledAsByItsWorker(t *testing.T) {
	t.Parallel()
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
	own.rows(own.cuts[part.From], own.cuts[part.To], func(r int) { row = rows[r] }, func(i int, w int32) {
		own.sweepWord(i, ofWord(row, w, own.topics), rng)
	}, note(&want))

	g, worked := other.give(part, func(r int) tables.Row[int32] { return rows[r] }), 0.0
	other.take(part, g.sample(own.topics, begunWords, rand.NewPCG(9, 1), func(d float64) { worked += d }), note(&got))
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
	if n := len(g.Topics); math.Abs(worked-float64(n)*other.documentsOfToken()) > 1e-9 || n == 0 {
		t.Errorf("%d tokens were as work of %v documents", n, worked)
	}
}

// TestAPartIsTakenWhereItsWorkerWentOn: documents and totals are those of all tokens' topics, of those that the worker
// has sampled since it gave the part away, and of the part.
func TestAPartIsTakenWhereItsWorkerWentOn(t *testing.T) {
	t.Parallel()
	c, rows := begun()
	before := map[uint16]int64{}
	for _, topic := range c.topic {
		before[topic]++
	}
	part := tables.Part{From: 3, To: 7}
	g := c.give(part, func(r int) tables.Row[int32] { return rows[r] })
	var row tables.Row[int32]
	rng, changed := rand.NewPCG(1, 2), int32(0)
	add := func(_ int, _, changes []int32) {
		for _, n := range changes {
			changed += n
		}
	}
	c.rows(0, c.cuts[part.From], func(r int) { row = rows[r] }, func(i int, w int32) {
		c.sweepWord(i, ofWord(row, w, c.topics), rng)
	}, add)
	c.take(part, g.sample(c.topics, begunWords, rand.NewPCG(3, 4), func(float64) {}), add)
	mixes, totals := make(map[[2]int32]int), map[uint16]int64{}
	for j, topic := range c.topic {
		mixes[[2]int32{c.doc[j], int32(topic)}]++
		totals[topic]++
	}
	for d := range c.docs {
		for _, m := range c.mixture(d) {
			if at := [2]int32{int32(d), int32(m.topic)}; mixes[at] != int(m.n) {
				t.Errorf("document %d has %d tokens of topic %d, want %d", d, m.n, m.topic, mixes[at])
			} else {
				delete(mixes, at)
			}
		}
	}
	for k, n := range c.moved {
		if totals[uint16(k)]-before[uint16(k)] != n {
			t.Errorf("topic %d has %d tokens more, want %d", k, n, totals[uint16(k)]-before[uint16(k)])
		}
	}
	if len(mixes) > 0 || changed != 0 {
		t.Errorf("topics of documents that are not known: %v; counts of words grow by %d", mixes, changed)
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
