package lda

import (
	"math/rand/v2"

	"github.com/volley-engine/volley/tables"
)

// given is what a helper samples topics by: words of a worker's, whose documents are told by their places among those
// that come along.
type given struct {
	Words, Ends []int32  // the tokens of Words[i] end at Ends[i]
	Docs        []int32  // by token
	Topics      []uint16 // by token
	// Mixes are topics of each document, and how many of its tokens are of each, in turn; those of one end at MixEnds.
	MixEnds []int32
	Mixes   []uint16
	// Columns are topics of each word, and Counts how many of its tokens are of each; those of one end at RowEnds.
	RowEnds, Columns, Counts []int32
	Totals                   []int64 // by topic
	Alphas                   []float64
	Beta                     float64
	Documents                float64 // that a token stands for
}

// made is what they have become: the topics of its tokens.
type made struct{ Topics []uint16 }

// give returns words of a worker's clock, with what they are sampled by.
func (p *Plan) give(c *tables.Clock[params, string, topics], part tables.Part) given {
	own, words := corpusOf(c, nil), p.words.In(c)
	var rows []int
	for line := own.cuts[part.From]; line < own.cuts[part.To]; line++ {
		rows = append(rows, own.row(line))
	}
	words.Prefetch(rows...)
	return own.give(part, words.Row)
}

func (p *Plan) help(c *tables.Clock[params, string, topics], part tables.Part, g given) made {
	rng := rand.NewPCG(c.Param.Seed^uint64(part.From+1)<<32, uint64(part.Worker)<<32|uint64(part.Clock))
	return g.sample(c.Param.Topics, c.Param.Vocabulary, rng, c.Worked)
}

func (p *Plan) take(c *tables.Clock[params, string, topics], part tables.Part, m made) {
	corpusOf(c, nil).take(part, m, p.words.In(c).IncCells)
}

// give returns the words of a part of a sweep; rows has the counts of a row of the table.
func (c *corpus) give(part tables.Part, rows func(row int) tables.Row[int32]) given {
	g := given{Alphas: c.alphas, Beta: c.beta, Documents: c.documentsOfToken(), Totals: make([]int64, c.topics)}
	for k, n := range c.totals {
		g.Totals[k] = int64(n - c.least + 0.5)
	}
	at := make([]int32, c.documents()) // place among those given, and one more
	for line := c.cuts[part.From]; line < c.cuts[part.To]; line++ {
		row := rows(c.row(line))
		for i := c.begins[line]; i < c.begins[line+1]; i++ {
			g.addWord(c, i, ofWord(row, c.words[i], c.topics))
			for _, d := range c.doc[c.ends[i]:c.ends[i+1]] {
				if at[d] == 0 {
					g.addMixture(c.mixture(int(d)))
					at[d] = int32(len(g.MixEnds))
				}
				g.Docs = append(g.Docs, at[d]-1)
			}
		}
	}
	return g
}

// addWord adds a word, its part of its row, and its tokens' topics.
func (g *given) addWord(c *corpus, i int, row tables.Row[int32]) {
	g.Topics = append(g.Topics, c.topic[c.ends[i]:c.ends[i+1]]...)
	for k, column := range row.Columns {
		g.Columns, g.Counts = append(g.Columns, column%int32(c.topics)), append(g.Counts, row.Values[k])
	}
	g.Words, g.Ends = append(g.Words, c.words[i]), append(g.Ends, int32(len(g.Topics)))
	g.RowEnds = append(g.RowEnds, int32(len(g.Columns)))
}

func (g *given) addMixture(mix []share) {
	for _, m := range mix {
		g.Mixes = append(g.Mixes, m.topic, m.n)
	}
	g.MixEnds = append(g.MixEnds, int32(len(g.Mixes)))
}

// corpus lays what is given out as a worker's own documents are, each with room for the topics that its tokens may get.
func (g *given) corpus(topics int) *corpus {
	c := &corpus{words: g.Words, ends: []int{0}, doc: g.Docs, topic: g.Topics, topics: topics,
		docs: make([]extent, len(g.MixEnds)), sampler: newSampler(topics)}
	for _, end := range g.Ends {
		c.ends = append(c.ends, int(end))
	}
	for _, d := range g.Docs {
		c.docs[d].tokens++
	}
	from := int32(0)
	for d, end := range g.MixEnds {
		of := &c.docs[d]
		of.first, of.topics = int32(len(c.mixes)), (end-from)/2
		for ; from < end; from += 2 {
			c.mixes = append(c.mixes, share{g.Mixes[from], g.Mixes[from+1]})
		}
		c.mixes = append(c.mixes, make([]share, of.tokens)...)
	}
	c.setPriors(priors{g.Alphas, g.Beta})
	return c
}

// sample samples the topics of all tokens that are given. It calls worked with how many documents they stand for.
func (g *given) sample(topics, vocabulary int, rng *rand.PCG, worked func(documents float64)) made {
	c := g.corpus(topics)
	c.begin(g.Totals, vocabulary)
	from := int32(0)
	for i := range c.words {
		worked(g.Documents * float64(c.ends[i+1]-c.ends[i]))
		to := g.RowEnds[i]
		c.sweepWord(i, tables.Row[int32]{Columns: g.Columns[from:to], Values: g.Counts[from:to]}, rng)
		from = to
		c.columns, c.changes = c.columns[:0], c.changes[:0]
	}
	return made{c.topic}
}

// take has the topics that a helper has sampled be the worker's own, and adds what has changed of rows.
func (c *corpus) take(part tables.Part, m made, add func(row int, columns, changes []int32)) {
	next := m.Topics
	c.rows(c.cuts[part.From], c.cuts[part.To], func(int) {}, func(i int, w int32) {
		for j := c.ends[i]; j < c.ends[i+1]; j++ {
			if had, is := c.topic[j], next[0]; is != had {
				c.move(j, int(c.doc[j]), had, is)
			}
			next = next[1:]
		}
		c.unload(w)
	}, add)
}
