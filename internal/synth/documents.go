package synth

import (
	"math"
	"slices"
	"sort"
	"strconv"
)

// Documents is the law of documents that mix topics, in the format of lda-c: each is of two or three topics, and of a
// number of tokens between half and three halves of Length; the words of a topic have probabilities of 1/(3+rank), in
// an order that is the topic's own. Document i is drawn from Random(42+i).
type Documents struct {
	Rows   int64
	Words  int
	Topics int
	Length int       // tokens, on average
	upTo   []float64 // probability of a rank or a lower one
}

// NewDocuments prepares the words' probabilities.
func NewDocuments(rows int64, words, topics, length int) Documents {
	d := Documents{Rows: rows, Words: words, Topics: topics, Length: length, upTo: make([]float64, words)}
	sum := 0.0
	for r := range d.upTo {
		sum += 1 / float64(3+r)
		d.upTo[r] = sum
	}
	for r := range d.upTo {
		d.upTo[r] /= sum
	}
	return d
}

// Columns returns none: documents are text.
func (d Documents) Columns() []string { return []string{"document"} }

// Blocks returns how many blocks there are.
func (d Documents) Blocks() int { return blocksOf(d.Rows) }

func (d Documents) block(k int) *block {
	b := &block{}
	first := int64(k) * blockRows
	for i := first; i < min(first+blockRows, d.Rows); i++ {
		b.text = d.appendDocument(b.text, i)
	}
	return b
}

// appendDocument adds a line: how many different words a document has, and each with its count.
func (d Documents) appendDocument(out []byte, i int64) []byte {
	r := NewRandom(rowSeed + i)
	below := func(n int) int { return min(n-1, int(r.NextDouble()*float64(n))) }
	about := []int{below(d.Topics), below(d.Topics), below(d.Topics)}[:2+below(2)]
	counts := map[int]int{}
	for range max(1, d.Length/2+below(d.Length+1)) {
		rank := sort.SearchFloat64s(d.upTo, r.NextDouble())
		counts[d.word(about[below(len(about))], min(rank, d.Words-1))]++
	}
	words := make([]int, 0, len(counts))
	for w := range counts {
		words = append(words, w)
	}
	slices.Sort(words)
	out = strconv.AppendInt(out, int64(len(words)), 10)
	for _, w := range words {
		out = append(out, ' ')
		out = strconv.AppendInt(out, int64(w), 10)
		out = append(out, ':')
		out = strconv.AppendInt(out, int64(counts[w]), 10)
	}
	return append(out, '\n')
}

// word returns the word of a rank in a topic: a step through all words, from a word on, that differ by the topic.
func (d Documents) word(topic, rank int) int {
	step := int(math.Mod(float64(topic)*0.6180339887498949, 1)*float64(d.Words)) | 1
	for gcd(step, d.Words) != 1 {
		step += 2
	}
	return (topic*(d.Words/d.Topics) + rank*(step%d.Words)) % d.Words
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// lineSink writes blocks that are text.
type lineSink struct{ textSink }

func (s *lineSink) encode(b *block) (any, error) { return b.text, nil }
