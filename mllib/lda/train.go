package lda

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// clock does a worker's clock: the first draws the topics of its tokens, each other one samples them once.
func (p *Plan) clock(c *tables.Clock[params, string, topics]) error {
	rng := rand.NewPCG(c.Param.Seed, uint64(c.Worker())<<32|uint64(c.Number()))
	var failed error
	own := corpusOf(c, func() *corpus {
		reads := c.Param.Lexicon.reader()
		var docs []document
		for line := range c.Rows() {
			d, err := reads.read(line)
			if failed = err; err != nil {
				break
			}
			docs = append(docs, d)
		}
		return newCorpus(docs, c.Param.Topics, c.State.Of, rand.New(rng))
	})
	if failed != nil {
		return failed
	}
	words, totals := p.words.In(c), p.totals.In(c)
	if c.Number() == 0 {
		own.setPriors(c.Param.priors(0, 0, nil))
		own.tell(words, totals)
	} else {
		p.iterate(c, own, rng)
	}
	c.State.Of = own.state()
	return nil
}

// corpusOf returns a worker's documents, which are made once.
func corpusOf(c *tables.Clock[params, string, topics], made func() *corpus) *corpus {
	return c.Notes(func() any { return made() }).(*corpus)
}

// tell counts the tokens of topics that were drawn.
func (c *corpus) tell(words *tables.Access[int32], totals *tables.Access[int64]) {
	sums := make([]int64, c.topics)
	c.rows(0, c.lines(), func(int) {}, func(i int, w int32) {
		for _, k := range c.topic[c.ends[i]:c.ends[i+1]] {
			c.change[k]++
			c.touched[k/64] |= 1 << (k % 64)
			sums[k]++
		}
		c.unload(w)
	}, words.IncCells)
	totals.IncRow(0, sums)
}

// iterate samples all topics, once or several times. Priors have a step where all workers have measured for it.
func (p *Plan) iterate(c *tables.Clock[params, string, topics], own *corpus, rng *rand.PCG) {
	measured, steps := p.measured.In(c), scheduleOf(c.Param.Model)
	own.setPriors(c.Param.priors(priorSteps(c.Param.Model, c.Number()), c.Workers(), func(step int) []float64 {
		return measured.Row(step).Values
	}))
	due, sums := steps.due(c.Number()) && !(c.Param.FixedAlpha && c.Param.FixedBeta), []float64(nil)
	if due {
		sums = p.measureTables(c, own.beta)
	}
	for range c.Param.perClock() {
		p.sweep(c, own, rng)
	}
	if due {
		own.measure(sums)
		measured.IncRow(steps.until(c.Number())-1, sums)
	}
}

// measureTables measures a worker's share of the tables' rows, before the clock changes them.
func (p *Plan) measureTables(c *tables.Clock[params, string, topics], beta float64) []float64 {
	k := c.Param.Topics
	sums := make([]float64, k+measures)
	if c.Param.FixedBeta {
		return sums
	}
	var rows []int
	for r := c.Worker(); r*wordsOfRow < c.Param.Vocabulary; r += c.Workers() {
		rows = append(rows, r)
	}
	if sums[k+ofWords] = measureWords(p.words.In(c), rows, beta); c.Worker() == 0 {
		sums[k+ofTopics] = measureTopics(p.totals.In(c).Row(0).Values, beta, c.Param.Vocabulary)
	}
	return sums
}

// sweep samples all topics once.
func (p *Plan) sweep(c *tables.Clock[params, string, topics], own *corpus, rng *rand.PCG) {
	totals := p.totals.In(c)
	own.begin(totals.Row(0).Values, c.Param.Vocabulary)
	words := p.words.In(c)
	c.Share(len(own.cuts)-1, func(from, to int) { own.sweep(own.cuts[from], own.cuts[to], words, rng, c.Worked) })
	totals.IncRow(0, own.moved)
}

// priorSteps returns how many steps of priors a worker knows at a clock: those for which all workers have measured in
// clocks that it sees.
func priorSteps(m tables.Model, clock int) int { return scheduleOf(m).until(clock - 1 - unseen(m)) }

// priors returns those after a number of steps, but for those that some of the workers have not been seen to measure
// for.
func (p *params) priors(steps, workers int, of func(step int) []float64) priors {
	all := priors{slices.Repeat([]float64{p.Alpha}, p.Topics), p.Beta}
	for step := range steps {
		sums := of(step)
		if sums[p.Topics+ofWorkers] < float64(workers) {
			break
		}
		next := all.stepped(sums, p.Vocabulary)
		if !p.FixedAlpha {
			all.alphas = next.alphas
		}
		all.beta = next.beta
	}
	return all
}

// What a token takes in its worker's corpus and state, and a word's count of a topic in the table: in its shard, its
// executor's cache and a worker's log.
const (
	bytesOfToken = 24
	bytesOfCount = 3 * 8
	bytesOfWord  = 3 * 48  // of two models and their samples' sums, whichever number a word has
	bytesOfSum   = 2 * 8   // as one is added to others
	bytesOfOffer = 4 * 8   // a token's share of what helpers are given, of which some waits
	bytesOfTopic = 2 << 10 // of what is measured, totals, priors and samplers, whichever words a topic has
)

// Outcome is what training has come to.
type Outcome struct {
	Model      *Model
	Documents  int64
	Wordless   int64 // texts that have no word that is known, and are not among the documents
	Iterations int
	StoppedBy  string
	LogWords   float64 // mean log-likelihood of a training token's word, under its topic
	Waited     float64 // share of their time that slots waited
	Helped     float64 // share of the parts of their sweeps that other workers have made for them
}

// ticksEvery is after how many clocks it is looked at how far training is.
const ticksEvery = 10

// Train finds the topics.
func Train(ctx context.Context, s *rdd.Session, c Config, p *Plan) (*Outcome, error) {
	if c.Format == Text && len(c.Words) == 0 {
		f, err := p.counts.Run(ctx, s, 0)
		if err == nil {
			c.Words, err = c.Chosen.of(f)
		}
		if err != nil {
			return nil, err
		}
	}
	lexicon := c.lexicon(c.Words)
	size, err := p.sizes.Run(ctx, s, lexicon)
	if err != nil {
		return nil, located(ctx, c, err)
	}
	if size.Tokens == 0 {
		return nil, fault.Newf(fault.BadInput, "find topics in", strings.Join(c.Data, ", "),
			"no document has a word that is known").WithHint("--vocab has the words that texts may have, one a line")
	}
	if !p.docs.Elsewhere(s) { // elsewhere documents are spread over executors
		counts := min(float64(size.Tokens), float64(size.Words)*float64(c.Topics))
		offers := 0.0
		if c.Help != nil {
			offers = bytesOfOffer * float64(size.Tokens)
		}
		if err := train.Fits("lda", "--data", "the topics of all tokens, and counts by word",
			offers+bytesOfToken*float64(size.Tokens)+bytesOfCount*counts+bytesOfWord*float64(size.Words)+
				bytesOfSum*min(mostSamples*counts, float64(size.Words)*float64(c.Topics))+
				bytesOfTopic*float64(c.Topics)); err != nil {
			return nil, err
		}
	}
	par := params{Config: c, Vocabulary: max(int(size.Words), len(c.Words)), Lexicon: lexicon}
	par.Words = nil
	p.words.Reshape((par.Vocabulary+wordsOfRow-1)/wordsOfRow, wordsOfRow*c.Topics)
	out := &Outcome{Documents: size.Documents, Wordless: size.Wordless, StoppedBy: "max-iterations"}
	clocks := (c.MaxIterations + c.perClock() - 1) / c.perClock()
	var last *Model
	var of samples
	for tick, err := range p.work.Clocks(ctx, s, par, clocks+1, ticksEvery, tables.Keep(&of)) {
		if err != nil {
			return nil, err
		}
		out.Iterations = (tick.Clock - 1) * c.perClock()
		if last, err = p.modelAt(tick, &par, &size, c.Words); err != nil {
			return nil, err
		}
		if due(tick.Clock, clocks+1) {
			of.add(last, tick.Clock)
		}
		out.LogWords = last.logWords()
		out.Waited, out.Helped = tick.WaitedShare(), tick.HelpedShare()
		tick.Report("objective", -out.LogWords)
	}
	out.Model = of.mean(last)
	return out, p.coherence(ctx, s, out.Model, lexicon)
}

// located returns an error about a line with its file and number.
func located(ctx context.Context, c Config, err error) error {
	if fault.KindOf(err) == fault.UserCode {
		l := lexicon{Format: c.Format, Vocabulary: len(c.Words)}
		if found := readDocuments(ctx, c.Data, l, func(document) {}); found != nil {
			return found
		}
	}
	return err
}

// modelAt returns the model of a tick. Its counts are those of exactly the tick's clocks, so that their sum is that of
// all tokens, and none is below 0.
func (p *Plan) modelAt(tick *tables.Tick, par *params, size *sizes, names []string) (*Model, error) {
	priors := par.priors(scheduleOf(par.Model).until(tick.Clock-1), 0, func(step int) []float64 { // all have measured
		return p.measured.At(tick, step).Values
	})
	m := &Model{Topics: par.Topics, Alpha: priors.alphas, Beta: priors.beta, Vocabulary: par.Vocabulary, names: names,
		Named: len(names) > 0, Format: par.Format, Tokens: size.Tokens}
	m.totals = make([]int64, par.Topics)
	sum := int64(0)
	for w := range par.Vocabulary {
		row := ofWord(p.words.At(tick, w/wordsOfRow), int32(w), par.Topics)
		row = tables.Row[int32]{Columns: slices.Clone(row.Columns), Values: slices.Clone(row.Values)}
		for i := range row.Columns {
			row.Columns[i] -= firstColumn(int32(w), par.Topics)
		}
		if m.words = append(m.words, row); len(row.Values) > 0 {
			m.Known++
		}
		for i, k := range row.Columns {
			if row.Values[i] < 0 {
				return nil, fault.Newf(fault.Internal, "count", fmt.Sprintf("word %d", w), "%d tokens are of topic %d",
					row.Values[i], k)
			}
			m.totals[k] += int64(row.Values[i])
			sum += int64(row.Values[i])
		}
	}
	if totals := p.totals.At(tick, 0).Values; sum != size.Tokens || !slices.Equal(totals, m.totals) {
		return nil, fault.Newf(fault.Internal, "count", "all words", "%d tokens of %d, by topic %v and %v", sum,
			size.Tokens, m.totals, totals)
	}
	return m, nil
}
