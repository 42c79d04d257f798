package lda

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/tables"
)

// Model is topics: of each word how many of the training documents' tokens are of each, summed over some samples of
// all of them. A saved one is plain data, a row for each word that there are tokens of: the word, its topics, and how
// many tokens of each.
type Model struct {
	Topics     int       `json:"topics"`
	Alpha      []float64 `json:"alpha"`
	Beta       float64   `json:"beta"`
	Vocabulary int       `json:"vocabulary"`
	Tokens     int64     `json:"tokens"`
	Samples    int       `json:"samples,omitempty"` // that counts are the sums of; none is 1
	Known      int       `json:"known"`             // words that there are tokens of
	Named      bool      `json:"named"`             // they are those of a vocabulary, beside which there are none
	Coherence  []float64 `json:"coherence"`
	Format     Format    `json:"format,omitempty"` // of documents; none is LDAC
	words      []tables.Row[int32]
	totals     []int64
	names      []string
}

type file struct {
	model.Head
	*Model
}

// Name returns a word by its number.
func (m *Model) Name(w int32) string {
	if int(w) < len(m.names) {
		return m.names[w]
	}
	return strconv.Itoa(int(w))
}

// Save writes the model's directory.
func (m *Model) Save(dir string, overwrite bool) error {
	var ids []int64
	var names []string
	var topics, counts [][]int64
	for w, row := range m.words {
		if len(row.Values) == 0 {
			continue
		}
		t, n := make([]int64, len(row.Values)), make([]int64, len(row.Values))
		for i, k := range row.Columns {
			t[i], n[i] = int64(k), int64(row.Values[i])
		}
		ids, names = append(ids, int64(w)), append(names, m.Name(int32(w)))
		topics, counts = append(topics, t), append(counts, n)
	}
	var c model.Columns
	c.Ints("number", ids).Texts("word", names).IntLists("topics", topics).IntLists("tokens", counts)
	return model.Save(dir, overwrite, file{model.Head{Version: model.Version, Job: "lda"}, m}, &c)
}

// load reads a saved model.
func (m *Model) load(head, numbers []byte) error {
	if err := json.Unmarshal(head, m); err != nil {
		return err
	}
	if m.Topics < 2 || m.Topics > mostTopics || len(m.Alpha) != m.Topics || m.Vocabulary < 1 ||
		m.Vocabulary > mostWord+1 {
		return fault.Newf(fault.Corrupt, "read", "model.json", "%d topics with %d alphas, and %d words cannot be",
			m.Topics, len(m.Alpha), m.Vocabulary)
	}
	if m.Samples < 0 || m.Samples > mostSamples {
		return fault.Newf(fault.Corrupt, "read", "model.json", "counts cannot be the sums of %d samples", m.Samples)
	}
	return model.LoadColumns(numbers, m.Known, m.parse)
}

// parse reads a row for each word.
func (m *Model) parse(s *model.Stored) {
	ids, names, topics, counts := s.Ints("number"), s.Texts("word"), s.IntLists("topics"), s.IntLists("tokens")
	if len(names) != len(ids) || len(topics) != len(ids) || len(counts) != len(ids) {
		return // which is noted
	}
	m.words, m.totals, m.names = make([]tables.Row[int32], m.Vocabulary), make([]int64, m.Topics),
		make([]string, m.Vocabulary)
	for w := range m.names {
		m.names[w] = strconv.Itoa(w)
	}
	for i, w := range ids {
		if w < 0 || w >= int64(m.Vocabulary) || len(topics[i]) != len(counts[i]) {
			s.Fail("its words are not those of its vocabulary")
			return
		}
		m.names[w] = names[i]
		row := tables.Row[int32]{}
		for j, k := range topics[i] {
			if k < 0 || k >= int64(m.Topics) || counts[i][j] < 1 || counts[i][j] > 1<<31-1 {
				s.Fail("its topics are not those that it says")
				return
			}
			row.Columns, row.Values = append(row.Columns, int32(k)), append(row.Values, int32(counts[i][j]))
			m.totals[k] += counts[i][j]
		}
		m.words[w] = row
	}
}

// Kind is what is known of topic models.
var Kind = model.Kind{Is: model.JobIs("lda"),
	Load: func(head, numbers []byte) (model.Model, *input.Prepared, error) {
		m := &Model{}
		err := m.load(head, numbers)
		return m, nil, err
	}}

// lexicon returns what new documents are read by: in the format of those of training.
func (m *Model) lexicon() lexicon {
	l := lexicon{Format: m.Format}
	if m.Named {
		l.Words, l.Vocabulary = m.names, m.Vocabulary
	}
	return l
}

// Predict writes a line of CSV for each document: the topic that it has most of, and the share of each.
func (m *Model) Predict(ctx context.Context, _ rdd.Input, uris []string, w io.Writer) (rows int64, err error) {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "topic")
	for k := range m.Topics {
		fmt.Fprintf(out, ",share_%d", k)
	}
	fmt.Fprintln(out)
	err = readDocuments(ctx, uris, m.lexicon(), func(d document) {
		mix := m.Mixture(d.words, d.counts)
		best := 0
		for k, x := range mix {
			if x > mix[best] {
				best = k
			}
		}
		line := strconv.AppendInt(nil, int64(best), 10)
		for _, x := range mix {
			line = strconv.AppendFloat(append(line, ','), x, 'g', -1, 64)
		}
		rows++
		_, _ = out.Write(append(line, '\n')) // Flush has the error
	})
	return rows, cmp.Or(err, out.Flush())
}

// Evaluate computes the perplexity of documents, by the second half of the tokens of each.
func (m *Model) Evaluate(ctx context.Context, _ rdd.Input, uris []string) (map[string]float64, error) {
	h, err := m.Perplexity(ctx, uris)
	if err != nil {
		return nil, err
	}
	return map[string]float64{"perplexity": h.Perplexity, "documents": float64(h.Documents),
		"tokens": float64(h.Tokens), "unknown_tokens": float64(h.Unknown)}, nil
}

// InputOf returns what it is given: documents have a format of their own.
func (m *Model) InputOf(_ context.Context, in rdd.Input, _ []string) (rdd.Input, error) {
	return in, nil
}

// Says returns why nothing is said of rows: documents are read by Predict.
func (m *Model) Says(each bool) (*model.Says, error) {
	if each {
		return nil, fault.Newf(fault.Usage, "predict", "probabilities", "a model of lda has none: the share of each "+
			"topic is what it says")
	}
	return &model.Says{Header: "topic", Of: func(*input.Source, []string) (model.ChunkLines, error) {
		return nil, fault.Newf(fault.Usage, "predict", "on a cluster", "documents are read in one process so far").
			WithHint("volley predict")
	}}, nil
}

// mostDescribed is how many topics a description names.
const mostDescribed = 200

// Describe returns the topics with the words that they have most of.
func (m *Model) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d topics of %d words, from %d tokens", m.Topics, m.Known, m.Tokens)
	if m.Samples > 1 {
		fmt.Fprintf(&b, ", the mean of %d samples", m.Samples)
	}
	b.WriteByte('\n')
	shown, left := 0, 0
	for k, words := range m.Top(topMost) {
		if len(words) == 0 || shown == mostDescribed {
			left++
			continue
		}
		shown++
		names := make([]string, len(words))
		for i, w := range words {
			names[i] = m.Name(w)
		}
		fmt.Fprintf(&b, "topic %d (alpha %.3g): %s\n", k, m.Alpha[k], strings.Join(names, " "))
	}
	if left > 0 {
		fmt.Fprintf(&b, "and %d topics more, of which some may have no words\n", left)
	}
	return b.String()
}

// Load reads a saved model.
func Load(dir string) (*Model, error) { return model.LoadAs[*Model](dir, "lda", []model.Kind{Kind}) }
