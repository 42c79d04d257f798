package lda

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/datasets"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

func trained(t testing.TB, c Config, flags ...string) (out *Outcome, err error) {
	t.Helper()
	cfg, err := volley.ParseConfig(append(flags, "--data-dir", t.TempDir())...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = volley.Run(context.Background(), cfg, "lda", c, Build,
		func(ctx context.Context, s *rdd.Session, c Config, p *Plan) (string, error) {
			var err error
			out, err = Train(ctx, s, c, p)
			return "", err
		})
	return out, err
}

func saved(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "docs.dat")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// drawn returns documents in the format of lda-c, drawn from topics that do not share words, and how many tokens they
// have: each document is mostly of two topics.
func drawn(documents, topics, wordsOfEach int, seed uint64) (text string, tokens int64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for range documents {
		counts := map[int]int{}
		two := [2]int{rng.IntN(topics), rng.IntN(topics)}
		for range 20 + rng.IntN(60) {
			k := two[rng.IntN(2)]
			if rng.IntN(20) == 0 {
				k = rng.IntN(topics)
			}
			u := rng.Float64()
			counts[k*wordsOfEach+int(u*u*float64(wordsOfEach))]++ // the first words of a topic are more frequent
			tokens++
		}
		fmt.Fprint(&b, len(counts))
		for w := range topics * wordsOfEach {
			if n := counts[w]; n > 0 {
				fmt.Fprintf(&b, " %d:%d", w, n)
			}
		}
		b.WriteByte('\n')
	}
	return b.String(), tokens
}

func defaults(data string, k, iterations int) Config {
	return Config{Data: []string{data}, Topics: k, Alpha: 0.1, Beta: 0.01, MaxIterations: iterations, Splits: 4,
		Seed:  1,
		Model: tables.BSP()}
}

// TestPlantedTopicsAreFound: under each kind of model every topic that documents were drawn from is one of those that
// are found, with a cosine of 0.95 at least, and no token is lost or counted twice.
func TestPlantedTopicsAreFound(t *testing.T) {
	t.Parallel()
	const k, each = 8, 25
	text, tokens := drawn(600, k, each, 1)
	path := saved(t, text)
	for _, m := range []tables.Model{tables.BSP(), tables.SSP(2), tables.ASP(), tables.CAP(1), tables.VAP(64, false),
		tables.CVAP(2, 64, true)} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			c := defaults(path, k+4, 150) // a few more, so that two do not have to share one
			if c.Model = m; m == tables.CAP(1) {
				c.PerClock = 3
			}
			flags := []string{"--executors", "2"}
			if m == tables.ASP() || m == tables.VAP(64, false) { // on a busy machine one worker may end before another
				flags = append(flags, "--clock", "virtual", "--pace-rate", "10000", "--pace", "static:1,0.8")
			}
			out, err := trained(t, c, flags...)
			if err != nil {
				t.Fatal(err)
			}
			total := int64(0)
			for _, n := range out.Model.totals {
				total += n
			}
			n := out.Model.Samples
			if n < 3 || total != tokens*int64(n) || out.Iterations != 150 || out.Documents != 600 {
				t.Errorf("%d tokens of %d, %d documents, %d iterations", total, tokens, out.Documents, out.Iterations)
			}
			for topic := range k {
				if best := closest(out.Model, topic, each); best < 0.95 {
					t.Errorf("the topic nearest to the planted topic %d has a cosine of %.3f", topic, best)
				}
			}
		})
	}
}

// closest returns the greatest cosine between a planted topic and one that was found.
func closest(m *Model, topic, each int) (best float64) {
	planted := make([]float64, m.Vocabulary)
	for i := range each {
		planted[topic*each+i] = math.Sqrt(float64(i+1)/float64(each)) - math.Sqrt(float64(i)/float64(each))
	}
	for k := range m.Topics {
		var dot, a, b float64
		for w, row := range m.words {
			x := float64(row.At(k))
			dot, a, b = dot+x*planted[w], a+x*x, b+planted[w]*planted[w]
		}
		best = max(best, dot/math.Sqrt(a*b))
	}
	return best
}

// TestTopicsHaveTheSameBits on any number of executors under bsp and ssp(0), and a saved model is what it was.
func TestTopicsHaveTheSameBits(t *testing.T) {
	t.Parallel()
	text, _ := drawn(200, 4, 20, 2)
	c := defaults(saved(t, text), 6, 30)
	want, err := trained(t, c, "--executors", "1")
	if err != nil {
		t.Fatal(err)
	}
	for _, executors := range []string{"2", "8"} {
		c.Model = tables.SSP(0)
		got, err := trained(t, c, "--executors", executors)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.Model.words, got.Model.Alpha) != fmt.Sprint(want.Model.words, want.Model.Alpha) {
			t.Errorf("%s executors: other topics", executors)
		}
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := want.Model.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	words, counts := []int32{0, 21, 22}, []int32{3, 1, 1}
	if fmt.Sprint(m.Mixture(words, counts)) != fmt.Sprint(want.Model.Mixture(words, counts)) ||
		fmt.Sprint(m.Top(5)) != fmt.Sprint(want.Model.Top(5)) {
		t.Error("the saved model is another")
	}
}

// TestTopicsGoOnAsIfNothingHadBeen: a run that is resumed from a checkpoint in its middle has the bits of one that was
// not.
func TestTopicsGoOnAsIfNothingHadBeen(t *testing.T) {
	t.Parallel()
	text, _ := drawn(100, 4, 20, 3)
	c := defaults(saved(t, text), 5, 39)
	want, err := trained(t, c)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(ctx context.Context, executors string, ticked func()) (out *Outcome, err error) {
		cfg, err := volley.ParseConfig("--data-dir", t.TempDir(), "--executors", executors)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Checkpoints, cfg.CheckpointEach, cfg.Resume = dir, 1, true
		cfg.Progress = func(p rdd.Progress) {
			if p.Iteration == 3 { // whose sample is one of two
				ticked()
			}
		}
		_, err = volley.Run(ctx, cfg, "lda", c, Build, func(ctx context.Context, s *rdd.Session, c Config, p *Plan) (
			string, error) {
			var err error
			out, err = Train(ctx, s, c, p)
			return "", err
		})
		return out, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := run(ctx, "2", cancel); err == nil {
		t.Fatal("it was not interrupted")
	}
	got, err := run(context.Background(), "3", func() {})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got.Model.words, got.Model.Alpha) != fmt.Sprint(want.Model.words, want.Model.Alpha) {
		t.Error("it has other topics")
	}
}

// TestSamplingIsFromThePosterior: of two words in one document and two topics, of which one token each, the pairs of
// topics come as often as the posterior has them.
func TestSamplingIsFromThePosterior(t *testing.T) {
	t.Parallel()
	const alpha, beta, draws = 0.3, 0.2, 400_000
	rng := rand.NewPCG(1, 2)
	docs := []document{{[]int32{0, 1}, []int32{2, 1}}}
	c := newCorpus(docs, 2, nil, rand.New(rng))
	c.setPriors(priors{[]float64{alpha, 2 * alpha}, beta})
	weight := func(z [3]int) float64 { // p(w, z) by definition, words 0, 0, 1
		n, nk := [2][2]float64{}, [2]float64{}
		p, v := 1.0, 2.0
		for i, k := range z {
			w := i / 2
			p *= (nk[k] + []float64{alpha, 2 * alpha}[k]) * (n[w][k] + beta) / (nk[k] + v*beta)
			n[w][k]++
			nk[k]++
		}
		return p
	}
	counted, rows, totals := map[[3]int]float64{}, [2][2]int32{}, []int64{0, 0}
	for i, w := range []int{0, 0, 1} {
		rows[w][c.topic[i]]++
		totals[c.topic[i]]++
	}
	for range draws {
		c.begin(totals, 2)
		for i, w := range c.words {
			row := tables.Row[int32]{Columns: []int32{}, Values: []int32{}}
			for k, n := range rows[w] {
				if n > 0 {
					row.Columns, row.Values = append(row.Columns, int32(k)), append(row.Values, n)
				}
			}
			c.load(row)
			for j := c.ends[i]; j < c.ends[i+1]; j++ {
				c.sample(j, rng)
			}
			c.columns, c.changes = c.columns[:0], c.changes[:0]
			c.unload(0)
			for i, k := range c.columns {
				rows[w][k] += c.changes[i]
				totals[k] += int64(c.changes[i])
			}
		}
		counted[[3]int{int(c.topic[0]), int(c.topic[1]), int(c.topic[2])}]++
	}
	sum := 0.0
	for i := range 8 {
		sum += weight([3]int{i & 1, i >> 1 & 1, i >> 2})
	}
	for i := range 8 {
		z := [3]int{i & 1, i >> 1 & 1, i >> 2}
		want, got := weight(z)/sum, counted[z]/draws
		if math.Abs(got-want) > 0.005 {
			t.Errorf("topics %v: a share of %.4f, want %.4f", z, got, want)
		}
	}
}

// TestDocumentsBeginWithFewTopics: as many as the urn has them by expectation, each topic as often as another.
func TestDocumentsBeginWithFewTopics(t *testing.T) {
	t.Parallel()
	const documents, tokens, topics = 2_000, 300, 400
	c := newCorpus(slices.Repeat([]document{{[]int32{0, 7}, []int32{tokens - 40, 40}}}, documents), topics, nil,
		rand.New(rand.NewPCG(5, 6)))
	want, got, of := 0.0, 0, make([]float64, topics)
	for i := range tokens {
		want += beginning / (beginning + float64(i))
	}
	for d := range documents {
		got += len(c.mixture(d))
	}
	for _, k := range c.topic {
		of[k]++
	}
	mean := float64(got) / documents
	if want *= 0.983; math.Abs(mean-want) > 0.3 { // of 14 draws some are of the same topic
		t.Errorf("a document begins with %.2f topics, want %.2f", mean, want)
	}
	if slices.Min(of) < documents*tokens/topics/3 || slices.Max(of) > documents*tokens/topics*3 {
		t.Errorf("topics have from %v to %v tokens", slices.Min(of), slices.Max(of))
	}
}

// TestLongDocumentsAreCounted: one of more tokens of a topic than a share holds loses none, and its shares are the same
// whatever was sampled before.
func TestLongDocumentsAreCounted(t *testing.T) {
	t.Parallel()
	const tokens, topics = 300_000, 3
	rng := rand.NewPCG(3, 4)
	docs := []document{{[]int32{0, 1}, []int32{tokens - 5, 5}}, {[]int32{1}, []int32{2}}}
	c := newCorpus(docs, topics, nil, rand.New(rng))
	c.setPriors(priors{[]float64{5e6, 0.1, 0.1}, 0.1}) // nearly all are of the first
	sums := make([]int64, topics)
	for _, k := range c.topic {
		sums[k]++
	}
	for range 3 {
		c.begin(sums, 2)
		for i, w := range c.words {
			for j := c.ends[i]; j < c.ends[i+1]; j++ {
				c.sample(j, rng)
			}
			c.unload(w)
		}
		for k, n := range c.moved {
			sums[k] += n
		}
	}
	c.arrange()
	again := newCorpus(docs, topics, c.state(), nil)
	again.arrange()
	for d := range docs {
		got, want, n := c.mixture(d), again.mixture(d), 0
		for _, m := range got {
			n += int(m.n)
		}
		once := map[uint16]int{}
		for k, m := range c.counted(d) {
			if once[k] != 0 {
				t.Errorf("document %d: topic %d is counted twice", d, k)
			}
			once[k] = m
			n -= m
		}
		if n += docs[d].tokens(); n != docs[d].tokens() {
			t.Errorf("document %d: %v are not all of its tokens", d, once)
		}
		if !slices.Equal(got, want) || n != docs[d].tokens() || d == 0 && len(got) < tokens/most {
			t.Errorf("document %d: %v of %d tokens, rebuilt %v", d, got, docs[d].tokens(), want)
		}
	}
}

// TestWorkersThatMissUpdatesLoseNoToken: whatever a worker sees of the tables, also less than its own tokens, what it
// adds to them comes to nothing in all, and is of its own tokens.
func TestWorkersThatMissUpdatesLoseNoToken(t *testing.T) {
	t.Parallel()
	rng := rand.NewPCG(7, 8)
	docs := []document{{[]int32{0, 1, 2}, []int32{30, 20, 10}}, {[]int32{1, 2}, []int32{40, 5}}}
	const topics = 70
	c := newCorpus(docs, topics, nil, rand.New(rng))
	c.setPriors(priors{slices.Repeat([]float64{0.1}, topics), 0.01})
	for turn := range 50 {
		totals := make([]int64, topics)
		for k := range totals {
			totals[k] = int64(k%5) - 3
		}
		before := slices.Clone(c.topic)
		c.begin(totals, 3)
		for i, w := range c.words {
			row := tables.Row[int32]{Columns: []int32{int32(turn % topics), topics - 1}, Values: []int32{-4, 2}}
			if turn%topics == topics-1 {
				row = tables.Row[int32]{}
			}
			c.columns, c.changes = c.columns[:0], c.changes[:0]
			c.load(row)
			for j := c.ends[i]; j < c.ends[i+1]; j++ {
				c.sample(j, rng)
			}
			c.unload(w)
			want := make([]int32, topics)
			for j := c.ends[i]; j < c.ends[i+1]; j++ {
				want[before[j]]--
				want[c.topic[j]]++
			}
			for i, column := range c.columns {
				want[column%topics] -= c.changes[i]
			}
			if slices.ContainsFunc(want, func(n int32) bool { return n != 0 }) {
				t.Fatalf("turn %d, word %d: %v are not what its tokens have moved by", turn, w, c.changes)
			}
		}
		sum, moved := int64(0), make([]int64, topics)
		for j, k := range c.topic {
			moved[k]++
			moved[before[j]]--
		}
		for _, n := range c.moved {
			sum += n
		}
		if sum != 0 || !slices.Equal(moved, c.moved) {
			t.Fatalf("turn %d: totals change by %v, tokens have moved by %v", turn, c.moved, moved)
		}
	}
}

// TestDigamma holds ψ against values of Abramowitz and Stegun's table 6.1 and its recurrence.
func TestDigamma(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]float64{1: -0.5772156649015329, 0.5: -1.9635100260214235, 10: 2.251752589066721,
		1e-3: -1000.5755719318337} {
		if got := digamma(x); math.Abs(got-want) > 1e-12*math.Abs(want) {
			t.Errorf("ψ(%v) = %v, want %v", x, got, want)
		}
	}
}

// TestHalvesAreAllOfADocument, and differ by one token at most.
func TestHalvesAreAllOfADocument(t *testing.T) {
	t.Parallel()
	d := document{[]int32{3, 5, 9, 11}, []int32{1, 2, 3, 1}}
	a, b := d.halves()
	if a.tokens()-b.tokens() > 1 || a.tokens()-b.tokens() < 0 {
		t.Errorf("%d and %d tokens", a.tokens(), b.tokens())
	}
	counts := map[int32]int32{}
	for _, h := range []document{a, b} {
		for i, w := range h.words {
			counts[w] += h.counts[i]
		}
	}
	for i, w := range d.words {
		if counts[w] != d.counts[i] {
			t.Errorf("word %d: %d of %d", w, counts[w], d.counts[i])
		}
	}
}

// TestBadDocumentsAreNamed with their file and line.
func TestBadDocumentsAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1 0:1\n0\n":            `line 2 of %s: the document has no words`,
		"1 0:1\n\n":             `line 2 of %s: the line is empty`,
		"2 0:1\n":               `line 1 of %s: it begins with "2", and 1 words follow`,
		"1 0:0\n":               `"0:0" is no word: its count`,
		"1 -1:2\n":              `"-1:2" is no word`,
		"1 x:2\n":               `"x:2" is no word`,
		"1 2\n":                 `"2" is no word`,
		"2 1:1 7:1\n":           `it has word 7, the vocabulary words 0 to 2`,
		"1 0:99999999999999999": `is no word: its count`,
	} {
		path := saved(t, text)
		c := defaults(path, 2, 3)
		c.Words = []string{"a", "b", "c"}
		if _, err := trained(t, c); err == nil || !strings.Contains(err.Error(), strings.Replace(want, "%s", path, 1)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for want, change := range map[string]func(*Config){
		"1 does not lie in [2, 65536]": func(c *Config) { c.Topics = 1 },
		"--alpha":                      func(c *Config) { c.Alpha = 0 },
		"--wpc: 2 iterations a clock": func(c *Config) {
			help := tables.DefaultHelp()
			c.PerClock, c.Help = 2, &help
		},
		"--beta: NaN":    func(c *Config) { c.Beta = math.NaN() },
		"--beta: 1e-17":  func(c *Config) { c.Beta = 1e-17 },
		"0 iterations":   func(c *Config) { c.MaxIterations = 0 },
		"-3 is negative": func(c *Config) { c.Model = tables.SSP(-3) },
	} {
		c := defaults("x", 3, 3)
		if change(&c); c.Check() == nil || !strings.Contains(c.Check().Error(), want) {
			t.Errorf("%v, want %q", c.Check(), want)
		}
	}
}

// reference is the perplexity that tomotopy 0.14.0 has of the same documents, after as many iterations, the mean of two
// seeds (integration/bench/peers/lda.py).
const reference = 2782.5

// TestTopicsOfTheAssociatedPress: documents that were held out are foretold within 1 % as well as by the reference.
func TestTopicsOfTheAssociatedPress(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long")
	}
	ap := datasets.Path(t, "ap/ap.dat.gz")
	all, err := readLines(ap)
	if err != nil {
		t.Fatal(err)
	}
	var held, kept []string
	for i, line := range all {
		if i%10 == 0 {
			held = append(held, line)
		} else {
			kept = append(kept, line)
		}
	}
	test := saved(t, strings.Join(held, "\n")+"\n")
	c := defaults(saved(t, strings.Join(kept, "\n")+"\n"), 20, 200)
	words, err := ReadVocabulary(context.Background(), datasets.Path(t, "ap/vocab.txt"), LDAC)
	if err != nil {
		t.Fatal(err)
	}
	c.Words = words
	out, err := trained(t, c, "--executors", "2")
	if err != nil {
		t.Fatal(err)
	}
	h, err := out.Model.Perplexity(context.Background(), []string{test})
	if err != nil {
		t.Fatal(err)
	}
	if h.Perplexity > 1.01*reference || h.Documents != 225 || h.Tokens < 22_000 {
		t.Errorf("perplexity %.1f of %d documents, %d tokens; the reference has %.1f", h.Perplexity, h.Documents,
			h.Tokens, reference)
	}
	t.Logf("perplexity %.1f, %.4f nats a training token\n%s", h.Perplexity, out.LogWords, out.Model.Describe())
}

func readLines(path string) (lines []string, err error) {
	err = readDocuments(context.Background(), []string{path}, lexicon{}, func(d document) {
		line := fmt.Sprint(len(d.words))
		for i, w := range d.words {
			line += fmt.Sprintf(" %d:%d", w, d.counts[i])
		}
		lines = append(lines, line)
	})
	return slices.Clip(lines), err
}

// TestManyTopicsAreDescribedInShort: those without words, and of a great many the rest, are counted.
func TestManyTopicsAreDescribedInShort(t *testing.T) {
	t.Parallel()
	m := &Model{Topics: 500, Vocabulary: 400, Alpha: make([]float64, 500)}
	for w := range int32(400) {
		m.words = append(m.words, tables.Row[int32]{Columns: []int32{w}, Values: []int32{1}})
	}
	got := m.Describe()
	if strings.Count(got, "topic ") != mostDescribed || !strings.Contains(got, "and 300 topics more") {
		t.Error(got)
	}
}
