package lda

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
)

// Format is how documents are written.
type Format string

// The formats: of lda-c, a document a line by the numbers of its words; of UCI's bags of words, after three lines that
// say how much there is, a line for each word of a document as document, word and count, both numbers from 1; and text,
// a document a line.
const (
	LDAC Format = "lda-c"
	UCI  Format = "uci"
	Text Format = "text"
)

// lexicon is what lines are read by.
type lexicon struct {
	Format     Format
	Words      []string // of text: those that are known, by their numbers
	Vocabulary int      // how many words a document may have; 0 is any number
}

// reader reads lines of documents.
type reader struct {
	lexicon
	ids map[string]int32
}

func (l lexicon) reader() *reader {
	r := &reader{lexicon: l}
	if l.Format == Text {
		r.ids = make(map[string]int32, len(l.Words))
		for i, w := range l.Words {
			r.ids[w] = int32(i)
		}
	}
	return r
}

// read returns the document of a line. Words of text that are not known are left out: it may have none.
func (r *reader) read(line string) (d document, err error) {
	if r.Format != Text {
		return parseDocument(line, r.Vocabulary)
	}
	counts := map[int32]int32{}
	for word := range wordsOf(line) {
		if id, known := r.ids[word]; known {
			counts[id]++
		}
	}
	return bagOf(counts), nil
}

// bagOf returns a document of words and their counts.
func bagOf(counts map[int32]int32) (d document) {
	for w := range counts {
		d.words = append(d.words, w)
	}
	slices.Sort(d.words)
	for _, w := range d.words {
		d.counts = append(d.counts, counts[w])
	}
	return d
}

// line returns a document in the format of lda-c.
func (d *document) line() string {
	var b strings.Builder
	fmt.Fprint(&b, len(d.words))
	for i, w := range d.words {
		fmt.Fprintf(&b, " %d:%d", w, d.counts[i])
	}
	return b.String()
}

// readers keeps the reader that was asked for last: steps are given the same words with each line.
type readers struct {
	mu   sync.Mutex
	last *reader
}

func (r *readers) of(l lexicon) *reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	same := r.last != nil && r.last.Format == l.Format && len(r.last.Words) == len(l.Words) &&
		(len(l.Words) == 0 || &r.last.Words[0] == &l.Words[0])
	if !same {
		r.last = l.reader()
	}
	return r.last
}

// shortest is how many letters a word of text has at least.
const shortest = 2

// wordsOf yields the words of a text: what has letters and digits alone, and marks on them, in lower case, of at least
// two, and not digits alone.
func wordsOf(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		parts := strings.FieldsFuncSeq(text, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.Is(unicode.Mn, r)
		})
		for w := range parts {
			if utf8.RuneCountInString(w) < shortest || strings.IndexFunc(w, unicode.IsLetter) < 0 {
				continue
			}
			if !yield(strings.ToLower(w)) {
				return
			}
		}
	}
}

// frequencies are in how many documents of all each word is.
type frequencies struct {
	Documents int64
	Of        map[string]int64
}

// counting counts documents with each word.
func counting() rdd.Aggregator[int, string, frequencies] {
	return rdd.Aggregator[int, string, frequencies]{
		Zero: func(int) frequencies { return frequencies{Of: map[string]int64{}} },
		Add: func(f frequencies, _ int, line string) frequencies {
			f.Documents++
			seen := map[string]bool{}
			for w := range wordsOf(line) {
				if !seen[w] {
					seen[w] = true
					f.Of[w]++
				}
			}
			return f
		},
		Merge: func(a, b frequencies) frequencies {
			if len(a.Of) < len(b.Of) {
				a, b = b, a
			}
			for w, n := range b.Of {
				a.Of[w] += n
			}
			a.Documents += b.Documents
			return a
		},
	}
}

// Chosen says which words of texts count.
type Chosen struct {
	Least int      // documents that have a word
	Most  float64  // share of documents that may have it
	Stop  []string // words that do not
}

// check refuses what no text could have.
func (c *Chosen) check() error {
	switch {
	case c.Least < 0:
		return fault.Newf(fault.Usage, "find topics in", "--min-df", "%d documents", c.Least)
	case !(c.Most >= 0 && c.Most <= 1):
		return fault.Newf(fault.Usage, "find topics in", "--max-df", "%v is no share of documents", c.Most)
	}
	return nil
}

// of returns the words that count, in their order.
func (c *Chosen) of(f frequencies) ([]string, error) {
	most := float64(f.Documents)
	if c.Most > 0 {
		most *= c.Most
	}
	stop := map[string]bool{}
	for _, w := range c.Stop {
		stop[w] = true
	}
	var words []string
	for w, n := range f.Of {
		if n >= int64(max(1, c.Least)) && float64(n) <= most && !stop[w] {
			words = append(words, w)
		}
	}
	slices.Sort(words)
	if len(words) == 0 {
		return nil, fault.Newf(fault.BadInput, "find topics in", "the documents",
			"of %d words none is left by --min-df, --max-df and --stop-words", len(f.Of))
	}
	if len(words) > mostWord {
		return nil, fault.Newf(fault.BadInput, "find topics in", "the documents", "%d words are too many", len(words)).
			WithHint("--min-df leaves out rare ones")
	}
	return words, nil
}

// entry is a word of a document, in the format of UCI.
type entry struct{ Doc, Word, Count int64 }

// parseEntry reads a line of UCI's; that of a header has no document.
func parseEntry(line string, vocabulary int) (e entry, err error) {
	fields := strings.Fields(line)
	if len(fields) != 1 && len(fields) != 3 {
		return e, fmt.Errorf("it has %d numbers: a line has a document, a word and a count", len(fields))
	}
	for i, to := range []*int64{&e.Doc, &e.Word, &e.Count}[:len(fields)] {
		if _, err := fmt.Sscan(fields[i], to); err != nil || *to < 1 || *to > 1<<40 {
			return e, fmt.Errorf("%q is no number from 1 on", fields[i])
		}
	}
	switch {
	case len(fields) == 1:
		return entry{}, nil
	case e.Word > mostWord || vocabulary > 0 && e.Word > int64(vocabulary):
		return e, fmt.Errorf("it has word %d, the vocabulary words 1 to %d", e.Word, cmp.Or(vocabulary, mostWord))
	case e.Count > mostTokens:
		return e, fmt.Errorf("its count is not between 1 and %d", mostTokens)
	}
	return e, nil
}

// bags groups the lines of UCI's by their documents, which are then in the format of lda-c.
func bags(lines rdd.Dataset[string], vocabulary int) rdd.Dataset[string] {
	entries := rdd.Filter(rdd.MapErr(lines, func(line string) (entry, error) { return parseEntry(line, vocabulary) }),
		func(e entry) bool { return e.Doc > 0 })
	return rdd.Map(rdd.GroupBy(entries, func(e entry) int64 { return e.Doc }),
		func(of rdd.Pair[int64, []entry]) string {
			counts := map[int32]int32{}
			for _, e := range of.Value {
				counts[int32(e.Word-1)] += int32(e.Count)
			}
			d := bagOf(counts)
			return d.line()
		})
}
