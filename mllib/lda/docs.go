package lda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/storage/input"
)

// document is the words of a document, by number, and how often it has each.
type document struct {
	words  []int32
	counts []int32
}

// tokens returns how many words the document has, repetitions counted.
func (d *document) tokens() (n int) {
	for _, c := range d.counts {
		n += int(c)
	}
	return n
}

// mostWord is the greatest number of a word.
const mostWord = 1 << 28

// mostTokens bounds a document.
const mostTokens = 1 << 24

// parseDocument reads a line in the format of lda-c: how many different words there are, and then each as number:count,
// numbers from 0. A vocabulary of no words bounds nothing.
func parseDocument(line string, vocabulary int) (d document, err error) {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return d, fmt.Errorf("the line is empty: a document has words")
	}
	if n, err := strconv.Atoi(fields[0]); err != nil || n != len(fields)-1 {
		return d, fmt.Errorf("it begins with %q, and %d words follow", fields[0], len(fields)-1)
	}
	if len(fields) == 1 {
		return d, fmt.Errorf("the document has no words")
	}
	total := 0
	for _, f := range fields[1:] {
		id, count, ok := strings.Cut(f, ":")
		w, err := strconv.Atoi(id)
		if err != nil || !ok || w < 0 || w > mostWord {
			return d, fmt.Errorf("%q is no word: number:count, numbers from 0", f)
		}
		n, err := strconv.Atoi(count)
		if total += n; err != nil || n < 1 || total > mostTokens {
			return d, fmt.Errorf("%q is no word: its count is not between 1 and %d", f, mostTokens)
		}
		if vocabulary > 0 && w >= vocabulary {
			return d, fmt.Errorf("it has word %d, the vocabulary words 0 to %d", w, vocabulary-1)
		}
		d.words, d.counts = append(d.words, int32(w)), append(d.counts, int32(n))
	}
	return d, nil
}

// readDocuments reads files of documents; the first that is wrong is named by its file and line.
func readDocuments(ctx context.Context, uris []string, l lexicon, take func(document)) error {
	if l.Format == UCI {
		return readBags(ctx, uris, l.Vocabulary, take)
	}
	r := l.reader()
	return input.EachLine(ctx, uris, func(line []byte) error {
		d, err := r.read(string(line))
		if err == nil {
			take(d)
		}
		return err
	})
}

// readBags reads documents of UCI's, whose lines follow one another.
func readBags(ctx context.Context, uris []string, vocabulary int, take func(document)) error {
	of, counts := int64(0), map[int32]int32{}
	end := func() {
		if of > 0 {
			take(bagOf(counts))
		}
		clear(counts)
	}
	err := input.EachLine(ctx, uris, func(line []byte) error {
		e, err := parseEntry(string(line), vocabulary)
		if err != nil || e.Doc == 0 {
			return err
		}
		if e.Doc != of {
			end()
			of = e.Doc
		}
		counts[int32(e.Word-1)] += int32(e.Count)
		return nil
	})
	if err == nil {
		end()
	}
	return err
}

// CheckDocuments refuses files of documents of which a line is wrong, or has a word that the vocabulary does not have.
func CheckDocuments(ctx context.Context, uris []string, format Format, vocabulary int) error {
	if len(uris) == 0 {
		return nil
	}
	return readDocuments(ctx, uris, lexicon{Format: format, Vocabulary: vocabulary}, func(document) {})
}

// ReadVocabulary reads the words of a vocabulary of documents in a format, one a line. Those of texts are in lower
// case, as documents' are, and each is one that a text can have.
func ReadVocabulary(ctx context.Context, uri string, format Format) (words []string, err error) {
	seen := map[string]bool{}
	err = input.EachLine(ctx, []string{uri}, func(line []byte) error {
		word := string(bytes.TrimSpace(line))
		if word == "" {
			return errors.New("it has no word")
		}
		if format == Text {
			word = strings.ToLower(word)
			if all := slices.Collect(wordsOf(word)); len(all) != 1 || all[0] != word {
				return fmt.Errorf("no text has the word %q: those of texts are runs of %d letters and digits or more, "+
					"not digits alone", word, shortest)
			}
			if seen[word] {
				return fmt.Errorf("the word %q is there twice", word)
			}
			seen[word] = true
		}
		words = append(words, word)
		return nil
	})
	return words, err
}

// ReadStopWords reads words that texts may have and that do not count, one a line.
func ReadStopWords(ctx context.Context, uri string) ([]string, error) {
	words, err := ReadVocabulary(ctx, uri, LDAC)
	for i, w := range words {
		words[i] = strings.ToLower(w)
	}
	return words, err
}
