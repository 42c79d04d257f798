package lda

import (
	"errors"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// Config configures latent Dirichlet allocation (Blei, Ng and Jordan 2003): each document mixes Topics, each of which
// is a distribution of words. Mixtures have a Dirichlet prior with Alpha for each topic at first, made asymmetric by
// what the documents say unless FixedAlpha, topics one with Beta for each word at first, made as wide as the counts say
// unless FixedBeta.
type Config struct {
	Data          []string
	Format        Format   `json:",omitempty"` // none is LDAC
	Words         []string // of the vocabulary; none is numbers, or of Text those that are Chosen
	Chosen        Chosen
	Topics        int
	Alpha, Beta   float64
	FixedAlpha    bool // it stays as it is
	FixedBeta     bool
	MaxIterations int
	PerClock      int // iterations between two looks at what others have done; 0 is 1
	Splits        int
	Seed          uint64
	Model         tables.Model
	// Help has workers do parts of one another's clocks (FlexRR); nil has none do.
	Help *tables.Help `json:",omitempty"`
}

// mostTopics is the greatest number of topics.
const mostTopics = 1 << 16

// Check refuses configurations that no data could make right.
func (c *Config) Check() error {
	switch {
	case c.Topics < 2 || c.Topics > mostTopics:
		return fault.Newf(fault.Usage, "find", "--topics", "%d does not lie in [2, %d]", c.Topics, mostTopics)
	case !(c.Alpha > 0 && c.Alpha <= 1e6):
		return fault.Newf(fault.Usage, "find topics with", "--alpha", "%v does not lie in (0, 1e6]", c.Alpha)
	case !(c.Beta >= leastPrior && c.Beta <= 1e6):
		return fault.Newf(fault.Usage, "find topics with", "--beta", "%v does not lie in [%v, 1e6]", c.Beta, leastPrior)
	case c.PerClock < 0:
		return fault.Newf(fault.Usage, "find topics in", "--wpc", "%d iterations a clock", c.PerClock)
	case c.PerClock > 1 && c.Help != nil:
		return fault.Newf(fault.Usage, "find topics in", "--wpc", "%d iterations a clock: words that are visited "+
			"twice cannot be handed over under --sync flexrr; ssp takes it", c.PerClock)
	case c.MaxIterations < 1:
		return fault.Newf(fault.Usage, "find topics in", "--max-iterations", "%d iterations", c.MaxIterations)
	}
	return errors.Join(c.Chosen.check(), c.Model.Check())
}

// lexicon returns what the lines of packed documents are read by.
func (c *Config) lexicon(words []string) lexicon {
	if c.Format == Text {
		return lexicon{Format: Text, Words: words}
	}
	return lexicon{Format: LDAC, Vocabulary: len(c.Words)}
}

// perClock returns how many iterations a clock has.
func (c *Config) perClock() int { return max(1, c.PerClock) }

// Plan is the plan of a topic model.
type Plan struct {
	docs  rdd.Packed[string]
	sizes rdd.Step[lexicon, sizes]
	pairs rdd.Step[topWords, together]
	// counts has in how many documents each word of texts is.
	counts rdd.Step[int, frequencies]
	// words has of each word how many of its tokens are of each topic, wordsOfRow a row; totals of all words.
	words  *tables.Table[int32]
	totals *tables.Table[int64]
	// measured has, a row each time, what a step of priors needs of all documents and words.
	measured *tables.Table[float64]
	work     tables.Work[params, string, topics]
}

// params are those of a run.
type params struct {
	Config
	Vocabulary int
	Lexicon    lexicon
}

// sizes are those of a corpus.
type sizes struct {
	Documents, Tokens, Pairs int64
	Words                    int64 // the greatest number of a word, and one more
	Wordless                 int64 // documents of text, not counted otherwise, that have no word that is known
}

// topics are the topics of a worker's tokens: of each document, in the order of its words.
type topics struct{ Of []uint16 }

// Build declares the plan.
func Build(g *rdd.Graph, c Config) *Plan {
	lines := rdd.TextFile(g, c.Data...)
	switch c.Format {
	case UCI:
		lines = bags(lines, len(c.Words))
	case Text:
		lines = rdd.Filter(lines, func(line string) bool { return strings.TrimSpace(line) != "" })
	default:
		lines = rdd.MapErr(lines, func(line string) (string, error) {
			_, err := parseDocument(line, len(c.Words))
			return line, err
		})
	}
	docs := rdd.Pack(lines, rdd.Splits(c.Splits), rdd.Seed(c.Seed))
	p := &Plan{docs: docs, sizes: rdd.Aggregate(docs, sizing()), pairs: rdd.Aggregate(docs, pairing()),
		words:  tables.New[int32](g, "words", tables.Sparse(0, wordsOfRow*c.Topics), c.Model),
		totals: tables.New[int64](g, "totals", tables.Dense(1, c.Topics), c.Model),
		measured: tables.New[float64](g, "measured", tables.Dense(scheduleOf(c.Model).until(c.MaxIterations)+1,
			c.Topics+measures), c.Model)}
	if c.Format == Text {
		p.counts = rdd.Aggregate(docs, counting())
	}
	if c.Help == nil {
		p.work = tables.Worker(docs, p.clock, p.words, p.totals, p.measured)
		return p
	}
	p.work = tables.HelpedWorker(docs, p.clock, tables.Helping[params, string, topics, given, made]{By: *c.Help,
		Give: p.give, Do: p.help, Take: p.take, NoRows: true}, p.words, p.totals, p.measured)
	return p
}

// sizing measures documents.
func sizing() rdd.Aggregator[lexicon, string, sizes] {
	var by readers
	return rdd.Aggregator[lexicon, string, sizes]{
		Zero: func(lexicon) sizes { return sizes{} },
		Add: func(s sizes, l lexicon, line string) sizes {
			d, err := by.of(l).read(line)
			if err != nil {
				return s // it was refused when it was packed
			}
			if len(d.words) == 0 {
				s.Wordless++
				return s
			}
			for _, w := range d.words {
				s.Words = max(s.Words, int64(w)+1)
			}
			s.Documents, s.Tokens, s.Pairs = s.Documents+1, s.Tokens+int64(d.tokens()), s.Pairs+int64(len(d.words))
			return s
		},
		Merge: func(a, b sizes) sizes {
			return sizes{a.Documents + b.Documents, a.Tokens + b.Tokens, a.Pairs + b.Pairs, max(a.Words, b.Words),
				a.Wordless + b.Wordless}
		},
	}
}
