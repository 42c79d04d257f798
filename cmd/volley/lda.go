package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
)

// ldaFlags are the flags of topic models.
type ldaFlags struct {
	placedFlags
	bounded    helpedFlags
	data, test []string
	vocabulary string
	format     string
	stopWords  string
	job        mllib.LDAConfig
}

func (f *ldaFlags) name() string { return "lda" }

// keepsModel marks a job whose --out is a model.
func (f *ldaFlags) keepsModel() {}

func (f *ldaFlags) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "lda --data URI…",
		Short: "Find topics in documents",
		Long: `Finds --topics topics: distributions of words, of which each document mixes some
(latent Dirichlet allocation by collapsed Gibbs sampling; a token takes as long as its
document has topics, however many there are). The mixtures' prior becomes
asymmetric by what the documents say, unless --fixed-alpha, that of words as wide as the
counts say, unless --fixed-beta. The model is the mean of up to five samples of the
topics, of the second half of the run. Data is in the format
of lda-c: a document a line, as the number of its different words and then each as
number:count, numbers from 0; or, by --format, in that of UCI's bags of words (document,
word and count a line, numbers from 1), or text, a document a line, whose words are
runs of letters and digits in lower case, of --min-df documents and of no more than
--max-df of all; --vocab has the words, one a line. With --test,
perplexity is that of one half of each test document's tokens, dealt out in turn,
its mixture being that of the other; coherence is the mean normalized pointwise mutual
information of each topic's ten first words.`,
		Example: "  volley run lda --data docs.dat --vocab vocab.txt --topics 20 --max-iterations 200 " +
			"--test test.dat --out model",
		Args: exactArgs(0, "no arguments beside flags"),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	fs := c.Flags()
	fs.StringSliceVar(&f.data, "data", nil, "documents: paths, globs, directories, or names of objects")
	fs.StringSliceVar(&f.test, "test", nil, "test documents, for the perplexity")
	fs.StringVar(&f.format, "format", string(mllib.LDAC), "of documents: lda-c, uci or text")
	fs.IntVar(&f.job.Chosen.Least, "min-df", 1, "documents that a word of text is in at least, without --vocab")
	fs.Float64Var(&f.job.Chosen.Most, "max-df", 1, "share of documents that a word of text is in at most, in (0, 1]")
	fs.StringVar(&f.stopWords, "stop-words", "", "words of text that are left out: english, or a file, one a line")
	fs.StringVar(&f.vocabulary, "vocab", "", "file with the words, one a line (default: words are their numbers)")
	fs.IntVar(&f.job.Topics, "topics", 20, "number of topics")
	fs.Float64Var(&f.job.Alpha, "alpha", 0.1, "prior of each topic in a document, at first")
	fs.Float64Var(&f.job.Beta, "beta", 0.01, "prior of each word in a topic, at first")
	fs.BoolVar(&f.job.FixedAlpha, "fixed-alpha", false, "keep the prior of topics as it is")
	fs.BoolVar(&f.job.FixedBeta, "fixed-beta", false, "keep the prior of words as it is")
	fs.IntVar(&f.job.MaxIterations, "max-iterations", 200, "iterations: how often each token's topic is sampled")
	fs.IntVar(&f.job.PerClock, "wpc", 1, "work per clock: iterations between two looks at what other workers have "+
		"done; of flexrr 1")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of the topics that are drawn, and of the order of documents in splits")
	fs.StringVar(&f.out, "out", "",
		"directory for the model, or the name of one in a store (s3://, gs://); none is kept without it")
	fs.BoolVar(&f.overwrite, "overwrite", false, "replace the model directory if it exists")
	f.placedFlags.register(fs)
	f.registerCheckpoints(fs)
	f.bounded.register(fs)
	return c
}

// ldaResult is the JSON object of a topic model.
type ldaResult struct {
	Job          string             `json:"job"`
	Sync         string             `json:"sync"`
	Documents    int64              `json:"documents"`
	Wordless     int64              `json:"documents_without_words,omitempty"` // texts, not among the documents
	Tokens       int64              `json:"tokens"`
	Words        int                `json:"words"`
	Topics       int                `json:"topics"`
	Iterations   int                `json:"iterations"`
	StoppedBy    string             `json:"stopped_by"`
	Objective    float64            `json:"objective"`
	Metrics      map[string]float64 `json:"metrics"`
	Top          [][]string         `json:"top_words"`
	Seconds      float64            `json:"seconds"`
	LoadSeconds  float64            `json:"load_seconds"`
	TrainSeconds float64            `json:"train_seconds"`
	Waited       float64            `json:"waited_share"`
	Helped       *float64           `json:"helped_share,omitempty"` // of parts of sweeps, by other workers: flexrr's
	Executors    int                `json:"executors"`
	Splits       int                `json:"splits"`
	Model        string             `json:"model"`
	LogDigest    string             `json:"log_digest,omitempty"`
}

// ready reads and checks the flags, and reads the vocabulary.
func (f *ldaFlags) ready(c *cobra.Command) (cfg volley.Config, err error) {
	if cfg, err = f.placedFlags.ready(c, append(f.data, f.test...)); err != nil {
		return cfg, err
	}
	if len(f.data) == 0 {
		return cfg, usage(c, "data", "it is missing: say which documents")
	}
	if f.out != "" {
		if err = mllib.CanSave(f.out, f.overwrite); err != nil {
			return cfg, err
		}
	}
	if f.vocabulary != "" {
		if f.job.Words, err = mllib.ReadVocabulary(c.Context(), f.vocabulary,
			mllib.DocumentFormat(f.format)); err != nil {
			return cfg, err
		}
	}
	if f.job.PerClock < 1 {
		return cfg, usage(c, "wpc", "%d is no number of iterations", f.job.PerClock)
	}
	if err = f.readyText(c); err != nil {
		return cfg, err
	}
	if f.job.Model, f.job.Help, err = f.bounded.asked(c); err != nil {
		return cfg, err
	}
	if f.job.Help != nil && f.job.PerClock > 1 {
		return cfg, usage(c, "wpc", "%d is above 1: a word that is visited twice in a clock cannot be handed over "+
			"under --sync flexrr; ssp takes it", f.job.PerClock)
	}
	f.job.Data, f.job.Splits, f.job.Seed = absolute(f.data), f.splits, f.seed
	// Checkpoints are counted in the job's reports, of which each tenth iteration has one.
	cfg.CheckpointEach = (f.every + 9) / 10
	if wire.ThisProcess().Role != wire.RunnerRole { // before anything is trained
		if err = mllib.CheckDocuments(c.Context(), f.test, f.job.Format, len(f.job.Words)); err != nil {
			return cfg, err
		}
	}
	return cfg, f.job.Check()
}

// readyText checks the flags of documents that are text, and reads the words that are left out.
func (f *ldaFlags) readyText(c *cobra.Command) (err error) {
	f.job.Format = mllib.DocumentFormat(f.format)
	err = volley.FirstError(volley.OneOf("format", f.format, string(mllib.LDAC), string(mllib.UCI), string(mllib.Text)),
		volley.Within("min-df", float64(f.job.Chosen.Least), 0, 1e12, false),
		volley.Within("max-df", f.job.Chosen.Most, 0, 1, true))
	if err != nil {
		return err
	}
	for _, flag := range []string{"min-df", "max-df", "stop-words"} {
		if c.Flags().Changed(flag) && (f.job.Format != mllib.Text || f.vocabulary != "") {
			return usage(c, flag, "it chooses the words of --format text, without --vocab")
		}
	}
	switch f.stopWords {
	case "":
	case "english":
		f.job.Chosen.Stop = mllib.EnglishStopWords()
	default:
		f.job.Chosen.Stop, err = mllib.ReadStopWords(c.Context(), f.stopWords)
	}
	return err
}

func (f *ldaFlags) run(c *cobra.Command) error {
	cfg, err := f.ready(c)
	if err != nil {
		return err
	}
	began := time.Now()
	var t *mllib.TopicsFound
	out, err := f.runs(c, cfg, func(ctx context.Context, cfg volley.Config) (*volley.Outcome, error) {
		return volley.Run(ctx, cfg, "lda", f.job, mllib.BuildLDA, findingTopics(&t))
	})
	if err != nil {
		return err
	}
	r := &ldaResult{Job: "lda", Sync: nameOf(f.job.Model, f.job.Help), Documents: t.Documents,
		Wordless: t.Wordless, Tokens: t.Model.Tokens,
		Words: t.Model.Known, Topics: t.Model.Topics, Iterations: t.Iterations, StoppedBy: t.StoppedBy,
		Objective: -t.LogWords, Metrics: map[string]float64{"coherence": mean(t.Model.Coherence)},
		LoadSeconds: out.Load.Seconds(), Waited: t.Waited, Executors: out.Executors, Splits: f.splits, Model: f.out,
		LogDigest: out.LogDigest}
	if f.job.Help != nil {
		r.Helped = &t.Helped
	}
	_, r.TrainSeconds = trained(cfg, out, began)
	if err := f.finish(c, t, r); err != nil {
		return err
	}
	r.Seconds, _ = trained(cfg, out, began)
	if f.json {
		return printJSON(r)
	}
	return r.show(t.Model.Describe())
}

// shows prints what a job on a cluster has come to.
func (f *ldaFlags) shows(result []byte, _ map[string][]byte) error {
	r := &ldaResult{}
	if err := json.Unmarshal(result, r); err != nil {
		return err
	}
	if r.Model = f.out; f.json {
		return printJSON(r)
	}
	var topics strings.Builder
	for k, words := range r.Top {
		fmt.Fprintf(&topics, "topic %d: %s\n", k, strings.Join(words, " "))
	}
	return r.show(topics.String())
}

// finish saves a model, and evaluates it.
func (f *ldaFlags) finish(c *cobra.Command, t *mllib.TopicsFound, r *ldaResult) error {
	if err := f.save(t.Model); err != nil {
		return err
	}
	if len(f.test) > 0 { // it is saved: nothing is lost
		held, err := t.Model.Evaluate(c.Context(), rdd.Input{}, f.test)
		if err != nil {
			return err
		}
		for name, v := range held {
			r.Metrics[name] = v
		}
	}
	for _, words := range t.Model.Top(10) {
		names := make([]string, len(words))
		for i, w := range words {
			names[i] = t.Model.Name(w)
		}
		r.Top = append(r.Top, names)
	}
	return nil
}

func (f *ldaFlags) save(m *mllib.TopicModel) error {
	if f.out == "" {
		return nil
	}
	return m.Save(f.out, f.overwrite)
}

func mean(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum / math.Max(1, float64(len(x)))
}

// show prints the result for people.
func (r *ldaResult) show(topics string) error {
	fmt.Fprintf(os.Stderr, "lda: %d documents, %d iterations, %.4f nats a token, coherence %.3f", r.Documents,
		r.Iterations, r.Objective, r.Metrics["coherence"])
	if p, ok := r.Metrics["perplexity"]; ok {
		fmt.Fprintf(os.Stderr, ", perplexity %.1f", p)
	}
	fmt.Fprintf(os.Stderr, "; %.3g s, of which loading %.3g s\n", r.Seconds, r.LoadSeconds)
	if r.Wordless > 0 {
		fmt.Fprintf(os.Stderr, "left out, as no word of them counts: %d of %d texts\n", r.Wordless,
			r.Wordless+r.Documents)
	}
	_, err := fmt.Print(topics)
	return err
}

// findingTopics returns how topics are found, into a result.
func findingTopics(t **mllib.TopicsFound) func(context.Context, *rdd.Session, mllib.LDAConfig, *mllib.LDAPlan) (string,
	error) {
	return func(ctx context.Context, s *rdd.Session, job mllib.LDAConfig, p *mllib.LDAPlan) (_ string, err error) {
		if *t, err = mllib.TrainLDA(ctx, s, job, p); err != nil {
			return "", err
		}
		return (*t).StoppedBy, nil
	}
}

func (f *ldaFlags) replay(ctx context.Context, r *replayed) error {
	var t *mllib.TopicsFound
	workers := func(c *mllib.LDAConfig) workersOf {
		return ofBounded(&mllib.Bounded{Model: c.Model, Help: c.Help})
	}
	return runAgain(ctx, r, workers, mllib.BuildLDA, findingTopics(&t))
}
