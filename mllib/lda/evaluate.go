package lda

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
)

// logWords returns the mean log-likelihood of a token's word under its topic in one sample, topics being drawn from
// their prior (Griffiths and Steyvers 2004, equation 2).
func (m *Model) logWords() float64 {
	v := float64(m.Vocabulary)
	sum := float64(m.Topics) * logGamma(v*m.Beta)
	base := logGamma(m.Beta)
	for _, row := range m.words {
		for _, n := range row.Values {
			sum += logGamma(float64(n)+m.Beta) - base
		}
	}
	for _, n := range m.totals {
		sum -= logGamma(float64(n) + v*m.Beta)
	}
	return sum / float64(m.Tokens)
}

func logGamma(x float64) float64 {
	y, _ := math.Lgamma(x)
	return y
}

// share returns the probability of a word in each topic.
func (m *Model) share(w int32, out []float64) {
	beta := m.Beta * float64(max(1, m.Samples))
	v := float64(m.Vocabulary) * beta
	for k, n := range m.totals {
		out[k] = beta / (float64(n) + v)
	}
	if int(w) < len(m.words) {
		row := m.words[w]
		for i, k := range row.Columns {
			out[k] += float64(row.Values[i]) / (float64(m.totals[k]) + v)
		}
	}
}

// mixings is how often a mixture is made better by what a document's words say of it.
const mixings = 50

// Mixture returns the share of each topic in a document, by its words: the mean that the mixture has where each word is
// of each topic as likely as the mixture and the word say (one document's part of variational Bayes, Blei et al. 2003,
// with the counts' expectation in place of their log's).
func (m *Model) Mixture(words, counts []int32) []float64 {
	alpha := 0.0
	for _, a := range m.Alpha {
		alpha += a
	}
	tokens := 0.0
	shares := make([]float64, len(words)*m.Topics)
	for i, w := range words {
		m.share(w, shares[i*m.Topics:(i+1)*m.Topics])
		tokens += float64(counts[i])
	}
	mix, next := make([]float64, m.Topics), make([]float64, m.Topics)
	for k, a := range m.Alpha {
		mix[k] = a / alpha
	}
	for range mixings {
		copy(next, m.Alpha)
		for i := range words {
			of, sum := shares[i*m.Topics:(i+1)*m.Topics], 0.0
			for k, p := range of {
				sum += mix[k] * p
			}
			for k, p := range of {
				next[k] += float64(counts[i]) * mix[k] * p / sum
			}
		}
		for k := range mix {
			mix[k] = next[k] / (alpha + tokens)
		}
	}
	return mix
}

// halves deals a document's tokens out to two, in turn.
func (d *document) halves() (a, b document) {
	turn := int32(0)
	for i, w := range d.words {
		n := d.counts[i]
		one := (n + 1 - turn) / 2 // the first half's turn is 0
		if one > 0 {
			a.words, a.counts = append(a.words, w), append(a.counts, one)
		}
		if n > one {
			b.words, b.counts = append(b.words, w), append(b.counts, n-one)
		}
		turn = (turn + n) % 2
	}
	return a, b
}

// Held is how well a model says what documents go on with.
type Held struct {
	Perplexity float64
	Documents  int
	Tokens     int // that were foretold
	Unknown    int // of these, tokens whose word training has not had
}

// Perplexity returns that of one half of documents' tokens, whose mixtures are of the other (document
// completion, Wallach et al. 2009, section 5.1).
func (m *Model) Perplexity(ctx context.Context, uris []string) (*Held, error) {
	var docs []document
	if err := readDocuments(ctx, uris, m.lexicon(), func(d document) { docs = append(docs, d) }); err != nil {
		return nil, err
	}
	h, logs := &Held{Documents: len(docs)}, make([]float64, len(docs))
	var all sync.WaitGroup
	for worker := range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			share := make([]float64, m.Topics)
			for i := worker; i < len(docs) && ctx.Err() == nil; i += runtime.GOMAXPROCS(0) {
				first, second := docs[i].halves()
				logs[i] = m.logOf(&second, m.Mixture(first.words, first.counts), share)
			}
		})
	}
	all.Wait()
	sum := 0.0
	for i, d := range docs {
		_, second := d.halves()
		h.Tokens += second.tokens()
		for j, w := range second.words {
			if int(w) >= len(m.words) || len(m.words[w].Values) == 0 {
				h.Unknown += int(second.counts[j])
			}
		}
		sum += logs[i]
	}
	if h.Tokens == 0 {
		return nil, fault.Newf(fault.BadInput, "evaluate", "test documents", "none has two words")
	}
	h.Perplexity = math.Exp(-sum / float64(h.Tokens))
	return h, ctx.Err()
}

// logOf returns the log-likelihood of a document's words under a mixture.
func (m *Model) logOf(d *document, mix, share []float64) (sum float64) {
	for i, w := range d.words {
		m.share(w, share)
		p := 0.0
		for k, x := range mix {
			p += x * share[k]
		}
		sum += float64(d.counts[i]) * math.Log(p)
	}
	return sum
}

// topMost is how many words of a topic its coherence is of.
const topMost = 10

// Top returns the words that a topic has most of, at most n of them.
func (m *Model) Top(n int) [][]int32 {
	type count struct{ word, n int32 }
	by := make([][]count, m.Topics)
	for w, row := range m.words {
		for i, k := range row.Columns {
			by[k] = append(by[k], count{int32(w), row.Values[i]})
		}
	}
	top := make([][]int32, m.Topics)
	for k, all := range by {
		slices.SortFunc(all, func(a, b count) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.word, b.word)) })
		for _, c := range all[:min(n, len(all))] {
			top[k] = append(top[k], c.word)
		}
	}
	return top
}

// topWords are the words whose documents are counted: of each topic.
type topWords struct {
	Of [][]int32
	By lexicon // of the documents' lines
}

// together counts documents: those that have a word of a topic, and those that have two.
type together struct {
	Documents int64
	Has       [][]int64 // by topic and word
	Pairs     [][]int64 // by topic, and of i < j at j·(j−1)/2 + i
}

func pairing() rdd.Aggregator[topWords, string, together] {
	var by readers
	return rdd.Aggregator[topWords, string, together]{
		Zero: func(t topWords) (z together) {
			for _, of := range t.Of {
				z.Has = append(z.Has, make([]int64, len(of)))
				z.Pairs = append(z.Pairs, make([]int64, len(of)*(len(of)-1)/2))
			}
			return z
		},
		Add: func(z together, t topWords, line string) together {
			if d, err := by.of(t.By).read(line); err == nil && len(d.words) > 0 {
				z.add(t, &d)
			}
			return z
		},
		Merge: func(a, b together) together {
			a.Documents += b.Documents
			for k := range a.Has {
				for i, n := range b.Has[k] {
					a.Has[k][i] += n
				}
				for i, n := range b.Pairs[k] {
					a.Pairs[k][i] += n
				}
			}
			return a
		},
	}
}

func (z *together) add(t topWords, d *document) {
	has := make(map[int32]bool, len(d.words))
	for _, w := range d.words {
		has[w] = true
	}
	z.Documents++
	for k, of := range t.Of {
		for j, w := range of {
			if !has[w] {
				continue
			}
			z.Has[k][j]++
			for i := range j {
				if has[of[i]] {
					z.Pairs[k][j*(j-1)/2+i]++
				}
			}
		}
	}
}

// coherence computes the mean over topics and pairs of their top words of the normalized pointwise mutual information
// of having both in a document (Bouma 2009; Röder et al. 2015), in [−1, 1].
func (p *Plan) coherence(ctx context.Context, s *rdd.Session, m *Model, by lexicon) error {
	z, err := p.pairs.Run(ctx, s, topWords{m.Top(topMost), by})
	if err != nil {
		return err
	}
	n := float64(z.Documents)
	for k := range z.Has {
		sum, pairs := 0.0, 0
		for j := range z.Has[k] {
			for i := range j {
				sum += npmi(float64(z.Has[k][i])/n, float64(z.Has[k][j])/n, float64(z.Pairs[k][j*(j-1)/2+i])/n)
				pairs++
			}
		}
		m.Coherence = append(m.Coherence, sum/float64(max(1, pairs)))
	}
	return nil
}

func npmi(a, b, both float64) float64 {
	switch both {
	case 0:
		return -1
	case 1:
		return 1
	}
	return math.Log(both/(a*b)) / -math.Log(both)
}
