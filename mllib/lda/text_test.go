package lda

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// three writes the same documents in each format, of which words of text sort as their numbers do; the second half of
// UCI's lines of a document come after all others' firsts where they are to be apart.
func three(t *testing.T, lines string) (ldac, uci, text string) {
	t.Helper()
	var bags, words strings.Builder
	entries, doc := 0, 0
	for line := range strings.Lines(lines) {
		doc++
		d, err := parseDocument(strings.TrimSpace(line), 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range d.words {
			entries++
			fmt.Fprintf(&bags, "%d %d %d\n", doc, w+1, d.counts[i])
			for range d.counts[i] {
				fmt.Fprintf(&words, "W%05d, ", w)
			}
		}
		words.WriteString("\n")
	}
	head := fmt.Sprintf("%d\n%d\n%d\n", doc, 200, entries)
	ldac = saved(t, lines)
	uci, text = filepath.Join(t.TempDir(), "docword.txt"), filepath.Join(t.TempDir(), "docs.txt")
	for path, what := range map[string]string{uci: head + bags.String(), text: words.String()} {
		if err := os.WriteFile(path, []byte(what), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return ldac, uci, text
}

// TestFormatsSayTheSame: text gives the bits of lda-c, as each line is a document in both and all words are known;
// UCI's bags come in another order, and find the planted topics. A saved model reads new documents in its format.
func TestFormatsSayTheSame(t *testing.T) {
	t.Parallel()
	const k, each = 6, 20
	lines, tokens := drawn(500, k, each, 3)
	ldac, uci, text := three(t, lines)
	var first string
	for format, path := range map[Format]string{LDAC: ldac, Text: text, UCI: uci} {
		c := defaults(path, k+3, 120)
		c.Format = format
		out, err := trained(t, c, "--executors", "2")
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if out.Model.Tokens != tokens || out.Documents != 500 {
			t.Errorf("%s: %d tokens of %d, %d documents", format, out.Model.Tokens, tokens, out.Documents)
		}
		for topic := range k {
			if best := closest(out.Model, topic, each); best < 0.95 {
				t.Errorf("%s: the topic nearest to the planted topic %d has a cosine of %.3f", format, topic, best)
			}
		}
		if format != UCI {
			if told := fmt.Sprint(out.Model.words); first != "" && told != first {
				t.Error("text has other bits than lda-c")
			} else {
				first = told
			}
		}
		dir := filepath.Join(t.TempDir(), "m")
		if err := out.Model.Save(dir, false); err != nil {
			t.Fatal(err)
		}
		m, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		rows, err := m.Predict(context.Background(), rdd.Input{}, []string{path}, &said)
		if err != nil || rows != 500 {
			t.Errorf("%s: %d rows, %v", format, rows, err)
		}
		held, err := m.Perplexity(context.Background(), []string{path})
		if err != nil || held.Perplexity > 60 || held.Unknown != 0 {
			t.Errorf("%s: %+v, %v", format, held, err)
		}
	}
}

// TestWordsOfTexts: case, marks and digits, and what is no word.
func TestWordsOfTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"The cat's 2 hats, THE dog!":     "the cat hats the dog",
		"Über naïve café—déjà-vu":        "über naïve café déjà vu",
		"covid19 covid-19 3d 42 1,000 x": "covid19 covid 3d",
		"  \t ":                          "",
		"日本語 данные":                     "日本語 данные",
	} {
		if got := strings.Join(slices.Collect(wordsOf(text)), " "); got != want {
			t.Errorf("%q has the words %q, want %q", text, got, want)
		}
	}
}

// TestWordsAreChosen by documents that have them, and are left out by name; where none is left that is an error.
func TestWordsAreChosen(t *testing.T) {
	t.Parallel()
	f := frequencies{Documents: 10, Of: map[string]int64{"the": 10, "cat": 5, "dog": 2, "emu": 1}}
	for _, c := range []struct {
		Chosen
		want string
	}{
		{Chosen{}, "cat dog emu the"}, {Chosen{Least: 2}, "cat dog the"}, {Chosen{Most: 0.5}, "cat dog emu"},
		{Chosen{Least: 2, Most: 0.9, Stop: []string{"dog"}}, "cat"},
	} {
		if words, err := c.of(f); err != nil || strings.Join(words, " ") != c.want {
			t.Errorf("%+v: %v, %v", c.Chosen, words, err)
		}
	}
	if _, err := (&Chosen{Least: 11}).of(f); err == nil || !strings.Contains(err.Error(), "--min-df") {
		t.Errorf("%v", err)
	}
}

// TestBadTextsAreNamed: lines of UCI's that are wrong with their file and line; documents of which no word is known.
func TestBadTextsAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2\n3\n2\n1 1 1\n2 0 1\n": `line 5 of`, "2\n3\n2\n1 1\n": "line 4 of", "1\n1\n1\n1 1 x\n": `"x" is no number`,
		"1\n1\n1\n": "no",
	} {
		path := saved(t, text)
		c := defaults(path, 2, 3)
		c.Format = UCI
		if _, err := trained(t, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	c := defaults(saved(t, "a b\n\n!\n"), 2, 3)
	c.Format = Text
	if _, err := trained(t, c); err == nil || !strings.Contains(err.Error(), "of 0 words none is left") {
		t.Errorf("%v", err)
	}
	c = defaults(saved(t, "apple pear\nplum apple\n\n?!\n"), 2, 3)
	c.Format, c.Model = Text, tables.BSP()
	if out, err := trained(t, c); err != nil || out.Documents != 2 || out.Wordless != 1 || out.Model.Vocabulary != 3 {
		t.Errorf("%+v, %v", out, err)
	}
	c.Words = []string{"fig"}
	if _, err := trained(t, c); err == nil || !strings.Contains(err.Error(), c.Data[0]+": no document has a word") {
		t.Errorf("%v", err)
	}
}

// TestAVocabularyOfTextsHasTheirWords: in lower case, each once, and none that no text can have; of numbered words it
// has whatever names there are.
func TestAVocabularyOfTextsHasTheirWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"Fig\nPLUM\n": "", "fig\nplum\nFig\n": "line 3 of",
		"fig\nnew york\n": "line 2 of", "fig\n42\n": `the word "42"`, "fig\n\n": "it has no word"} {
		words, err := ReadVocabulary(t.Context(), saved(t, text), Text)
		if want == "" && (err != nil || !slices.Equal(words, []string{"fig", "plum"})) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v", text, words, err)
		}
	}
	words, err := ReadVocabulary(t.Context(), saved(t, "Fig\nFig\nnew york\n"), LDAC)
	if err != nil || len(words) != 3 {
		t.Errorf("%q, %v", words, err)
	}
	if words, err := ReadStopWords(t.Context(), saved(t, "The\ndon't\n")); err != nil ||
		!slices.Equal(words, []string{"the", "don't"}) {
		t.Errorf("%q, %v", words, err)
	}
}
