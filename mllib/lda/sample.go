package lda

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/tables"
)

// corpus is a worker's documents as it samples them: all tokens of a word after one another, so that its row is looked
// at once (WarpLDA, Chen et al. 2016, section 5).
type corpus struct {
	words  []int32 // in order; the tokens of words[i] are those from ends[i] to ends[i+1]
	ends   []int
	begins []int    // of words by row of the table, and where the last ends
	cuts   []int    // of rows, by the parts of a sweep that are handed over as a whole, if any are
	doc    []int32  // by token
	place  []int32  // by token: where its topic is in the worker's state
	topic  []uint16 // by token
	docs   []extent
	mixes  []share // by document: topics that its tokens are of, in the places of its tokens
	topics int
	alphas []float64
	sum    float64 // of alphas
	sampler
}

// extent is where a document's tokens are in the worker's state, and its topics in mixes.
type extent struct{ first, tokens, topics int32 }

// share is how many of a document's tokens are of a topic. One of more tokens than fit has several, all full but the
// last.
type share struct{ topic, n uint16 }

// most is how many tokens a share holds.
const most = math.MaxUint16

// newCorpus lays documents out. Topics are those of a worker's state, or drawn where there are none.
func newCorpus(docs []document, k int, of []uint16, rng *rand.Rand) *corpus {
	c := &corpus{ends: []int{0}, topics: k, sampler: newSampler(k)}
	type token struct{ word, doc, place int32 }
	var all []token
	for d, doc := range docs {
		c.docs = append(c.docs, extent{first: int32(len(all)), tokens: int32(doc.tokens())})
		for i, w := range doc.words {
			for range doc.counts[i] {
				all = append(all, token{w, int32(d), int32(len(all))})
			}
		}
	}
	drawn := c.drawn(of, rng, len(all))
	c.mixes = make([]share, len(all))
	slices.SortFunc(all, func(a, b token) int {
		return cmp.Or(cmp.Compare(a.word, b.word), cmp.Compare(a.place, b.place))
	})
	for i, t := range all {
		if i == 0 || t.word != all[i-1].word {
			c.words, c.ends = append(c.words, t.word), append(c.ends, i)
		}
		c.ends[len(c.ends)-1] = i + 1
		topic := drawn[t.place]
		c.doc, c.place, c.topic = append(c.doc, t.doc), append(c.place, t.place), append(c.topic, topic)
		c.more(int(t.doc), topic)
	}
	for i, w := range c.words {
		if i == 0 || w/wordsOfRow != c.words[i-1]/wordsOfRow {
			c.begins = append(c.begins, i)
		}
	}
	c.begins = append(c.begins, len(c.words))
	c.cut()
	return c
}

// partsOfSweep is how many parts a sweep has, about, where there are as many rows: of as many tokens each, as words are
// of very different numbers of them.
const partsOfSweep = 200

// cut finds the parts of a sweep.
func (c *corpus) cut() {
	c.cuts = []int{0}
	least, from := max(1, len(c.topic)/partsOfSweep), 0
	for line := range c.lines() {
		if end := c.ends[c.begins[line+1]]; end-from >= least || line == c.lines()-1 {
			c.cuts, from = append(c.cuts, line+1), end
		}
	}
}

// row returns the table's row of a line.
func (c *corpus) row(line int) int { return int(c.words[c.begins[line]] / wordsOfRow) }

// lines returns how many rows of the table the corpus has words of.
func (c *corpus) lines() int { return len(c.begins) - 1 }

// beginning is how many tokens weigh as much as any topic does, where a document's topics are drawn: about
// 3 log(1 + tokens / 3) topics then have all of its tokens. Documents that begin with a token of each topic tell words
// nothing of one another, and the first sweeps, which go by word, take each to topics of its own.
const beginning = 3

// drawn returns topics of all tokens, document by document: those that there are, or some drawn from each document's
// urn (Blackwell and MacQueen 1973).
func (c *corpus) drawn(of []uint16, rng *rand.Rand, tokens int) []uint16 {
	if of != nil { // nothing is drawn: a run that goes on samples as one that was never stopped
		return of
	}
	of = make([]uint16, tokens)
	for _, d := range c.docs {
		for i := range d.tokens {
			if float64(rng.Float64()*(beginning+float64(i))) < beginning {
				of[d.first+i] = uint16(rng.IntN(c.topics))
			} else {
				of[d.first+i] = of[d.first+rng.Int32N(i)]
			}
		}
	}
	return of
}

// state returns the topics of all tokens, document by document.
func (c *corpus) state() []uint16 {
	out := make([]uint16, len(c.topic))
	for i, t := range c.topic {
		out[c.place[i]] = t
	}
	return out
}

// documents returns how many there are.
func (c *corpus) documents() int { return len(c.docs) }

// mixture returns of which topics a document's tokens are.
func (c *corpus) mixture(d int) []share {
	of := &c.docs[d]
	return c.mixes[of.first : of.first+of.topics]
}

// more counts one more of a document's tokens to a topic.
func (c *corpus) more(d int, topic uint16) {
	mix := c.mixture(d)
	for i := range mix {
		if mix[i].topic == topic && mix[i].n < most {
			mix[i].n++
			return
		}
	}
	c.mixes[int(c.docs[d].first)+len(mix)] = share{topic, 1}
	c.docs[d].topics++
}

// fewer counts one less.
func (c *corpus) fewer(d int, topic uint16) {
	mix, at := c.mixture(d), -1
	for i := range mix {
		if mix[i].topic == topic {
			if at = i; mix[i].n < most {
				break
			}
		}
	}
	if mix[at].n--; mix[at].n == 0 {
		mix[at] = mix[len(mix)-1]
		c.docs[d].topics--
	}
}

// arrange has each document's topics in an order that follows from how many tokens are of them, whatever was sampled
// before; those that are drawn most are found first.
func (c *corpus) arrange() {
	for d := range c.docs {
		slices.SortFunc(c.mixture(d), func(a, b share) int {
			return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.topic, b.topic))
		})
	}
}

// sampler has what a token's weights are made of, for the word at hand: each topic's is the sum of a part that its
// document's tokens of the topic have, and one that the topic's prior has. The first is summed over the document's own
// topics; the second is kept up to date, with its sums over blocks of topics, so that a token takes as long as its
// document has topics, and not as there are any (F+LDA, Yu et al. 2015, section 3.2, with blocks in place of its tree).
type sampler struct {
	beta    float64
	least   float64   // β for each word
	totals  []float64 // by topic: tokens of all words, and β for each word; at the least β for each word
	moved   []int64   // by topic: tokens that a sweep has moved to it, less those away from it
	inverse []float64 // by topic: 1 / totals
	now     []int32   // by topic: tokens of the word
	change  []int32   // by topic: of these, how many more than there were
	word    []float64 // by topic: (now + β) / totals
	prior   []float64 // by topic: that times its alpha
	blocks  []float64 // of prior: sums of 1 << shift topics
	shift   int
	all     float64  // of blocks
	touched []uint64 // a bit for each topic that the word has, or had
	columns []int32
	changes []int32
	ahead   [16]uint32
}

func newSampler(k int) sampler {
	s := sampler{totals: make([]float64, k), moved: make([]int64, k), inverse: make([]float64, k),
		now:    make([]int32, k),
		change: make([]int32, k), word: make([]float64, k), prior: make([]float64, k),
		touched: make([]uint64, k/64+1), shift: bits.Len(uint(k-1))/2 + 1}
	s.blocks = make([]float64, (k-1)>>s.shift+1)
	return s
}

// begin takes over how many tokens are of each topic, before the first word.
func (c *corpus) begin(totals []int64, vocabulary int) {
	clear(c.blocks)
	clear(c.moved)
	c.least = c.beta * float64(vocabulary)
	for k, n := range totals { // they may be below 0, as a worker may not see what others have added
		c.totals[k] = float64(max(0, n)) + c.least
		c.inverse[k] = 1 / c.totals[k]
		c.word[k] = c.beta * c.inverse[k]
		c.prior[k] = c.alphas[k] * c.word[k]
		c.blocks[k>>c.shift] += c.prior[k]
	}
	c.arrange()
}

// sweep samples the topics of tokens once, by lines. It calls done with each part of its documents that it begins.
func (c *corpus) sweep(from, to int, words *tables.Access[int32], rng *rand.PCG, done func(documents float64)) {
	part := c.documentsOfToken()
	var row tables.Row[int32]
	c.rows(from, to, func(r int) { row = words.Row(r) }, func(i int, w int32) {
		done(part * float64(c.ends[i+1]-c.ends[i]))
		c.sweepWord(i, ofWord(row, w, c.topics), rng)
	}, words.IncCells)
}

// documentsOfToken returns how many of its documents a token stands for.
func (c *corpus) documentsOfToken() float64 {
	return float64(c.documents()) / float64(max(1, len(c.topic)))
}

// sweepWord samples the topics of a word's tokens once, by its part of its row.
func (c *corpus) sweepWord(i int, row tables.Row[int32], rng *rand.PCG) {
	c.load(row)
	for j := c.ends[i]; j < c.ends[i+1]; {
		next := min(j+len(c.ahead), c.ends[i+1])
		for c.look(j, next); j < next; j++ {
			c.sample(j, rng)
		}
	}
	c.unload(c.words[i])
}

// look has the processor fetch what tokens' documents have of topics.
func (c *corpus) look(from, to int) {
	for j, d := range c.doc[from:to] {
		c.ahead[j] = uint32(c.docs[d].first)
	}
	kernel.PrefetchAt(c.mixes, c.ahead[:to-from])
}

// wordsOfRow is of how many words a row of the table is: most words are of few tokens, and a row of one would take
// longer to ask for than to sample.
const wordsOfRow = 16

// rows goes through words, those of a row after one another, and adds what has changed of it.
func (c *corpus) rows(from, to int, begin func(row int), each func(i int, w int32),
	add func(row int, columns, changes []int32)) {
	for line := from; line < to; line++ {
		row := c.row(line)
		begin(row)
		c.columns, c.changes = c.columns[:0], c.changes[:0]
		for i := c.begins[line]; i < c.begins[line+1]; i++ {
			each(i, c.words[i])
		}
		add(row, c.columns, c.changes)
	}
}

// firstColumn returns where a word's topics begin in its row.
func firstColumn(w int32, topics int) int32 { return w % wordsOfRow * int32(topics) }

// ofWord returns a word's part of a row; its columns are those of the row.
func ofWord(row tables.Row[int32], w int32, topics int) tables.Row[int32] {
	first := firstColumn(w, topics)
	from, _ := slices.BinarySearch(row.Columns, first)
	to, _ := slices.BinarySearch(row.Columns[from:], first+int32(topics))
	return tables.Row[int32]{Columns: row.Columns[from : from+to], Values: row.Values[from : from+to]}
}

// load takes a word's part of its row.
func (c *corpus) load(row tables.Row[int32]) {
	for i, column := range row.Columns {
		k := column % int32(c.topics)
		c.now[k] = row.Values[i]
		c.touched[k/64] |= 1 << (k % 64)
		c.weigh(k)
	}
	c.all = 0
	for _, b := range c.blocks {
		c.all += b
	}
}

// unload lets go of the word, and notes what has changed of its row.
func (c *corpus) unload(w int32) {
	first := firstColumn(w, c.topics)
	for i, set := range c.touched {
		for ; set != 0; set &= set - 1 {
			k := int32(i*64 + bits.TrailingZeros64(set))
			if c.change[k] != 0 {
				c.columns, c.changes = append(c.columns, first+k), append(c.changes, c.change[k])
			}
			c.now[k], c.change[k] = 0, 0
			c.weigh(k)
		}
		c.touched[i] = 0
	}
}

// weigh brings a topic's weights up to date.
func (c *corpus) weigh(k int32) {
	w := float64(float64(max(0, c.now[k]))+c.beta) * c.inverse[k]
	p := float64(c.alphas[k] * w)
	more := p - c.prior[k]
	c.word[k], c.prior[k] = w, p
	c.blocks[k>>c.shift] += more
	c.all += more
}

// count counts a token of the word to a topic, or no more.
func (c *corpus) count(k uint16, by int32) {
	c.now[k] += by
	c.change[k] += by
	c.moved[k] += int64(by)
	c.touched[k/64] |= 1 << (k % 64)
	c.totals[k] = max(c.least, c.totals[k]+float64(by))
	c.inverse[k] = 1 / c.totals[k]
	c.weigh(int32(k))
}

// sample gives a token another topic, or the same, by the weights of all but itself (Griffiths and Steyvers 2004,
// equation 5). What it has to do with its own topic's weights is put aside first; where it stays, as most do, no count
// has changed.
func (c *corpus) sample(j int, rng *rand.PCG) {
	had, d := c.topic[j], int(c.doc[j])
	mix := c.mixture(d)
	with := c.word[had]
	without := float64(float64(max(0, c.now[had]-1))+c.beta) / max(c.least, c.totals[had]-1)
	c.word[had] = without
	own := c.own(mix) - without
	prior := c.all + float64(c.alphas[had]*(without-with))
	u := uniform(rng) * (own + prior)
	if u < own {
		is := c.ofDocument(mix, had, u)
		if c.word[had] = with; is != had {
			c.move(j, d, had, is)
		}
		return
	}
	c.count(had, -1)
	is := c.ofPrior(u - own)
	if c.count(is, 1); is != had {
		c.rename(j, d, had, is)
	}
}

// move counts a token to another topic.
func (c *corpus) move(j, d int, had, is uint16) {
	c.count(had, -1)
	c.count(is, 1)
	c.rename(j, d, had, is)
}

// rename gives a token another topic, in its document, too.
func (c *corpus) rename(j, d int, had, is uint16) {
	c.topic[j] = is
	c.fewer(d, had)
	c.more(d, is)
}

// uniform returns a number in [0, 1).
func uniform(rng *rand.PCG) float64 { return float64(rng.Uint64()>>11) / (1 << 53) }

// own returns the sum of what a document's tokens add to weights.
func (c *corpus) own(mix []share) float64 {
	word := c.word
	var a, b, e, f float64 // one after another they would wait for each other
	for ; len(mix) > 3; mix = mix[4:] {
		a += float64(float64(mix[0].n) * word[mix[0].topic])
		b += float64(float64(mix[1].n) * word[mix[1].topic])
		e += float64(float64(mix[2].n) * word[mix[2].topic])
		f += float64(float64(mix[3].n) * word[mix[3].topic])
	}
	for _, m := range mix {
		a += float64(float64(m.n) * word[m.topic])
	}
	return (a + b) + (e + f)
}

// ofDocument returns the topic at u of a document's weights, less those of the token itself.
func (c *corpus) ofDocument(mix []share, had uint16, u float64) uint16 {
	own := uint16(1)
	for _, m := range mix {
		n := m.n
		if m.topic == had {
			n, own = n-own, 0
		}
		if u -= float64(float64(n) * c.word[m.topic]); u < 0 {
			return m.topic
		}
	}
	return had
}

// ofPrior returns the topic at u of the prior's weights.
func (c *corpus) ofPrior(u float64) uint16 {
	block := 0
	for ; block < len(c.blocks)-1 && u >= c.blocks[block]; block++ {
		u -= c.blocks[block]
	}
	k, last := block<<c.shift, min(len(c.prior), (block+1)<<c.shift)-1
	for ; k < last && u >= c.prior[k]; k++ {
		u -= c.prior[k]
	}
	return uint16(k)
}
