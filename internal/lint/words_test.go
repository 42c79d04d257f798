package lint

import (
	"bytes"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// out are words that are not used: each with the field's own.
var out = []struct {
	word *regexp.Regexp
	say  string
}{
	{regexp.MustCompile(`\b(says?|tells?) whether\b`), "reports whether"},
	{regexp.MustCompile(`(?i)\bsigns? of life\b`), "heartbeat"},
	{regexp.MustCompile(`\bliv(es|ing) with (the |its )?rows\b`), "row state"},
	{regexp.MustCompile(`\bas (it lies|they lie)\b`), "as it is"},
	{regexp.MustCompile(`\bat its word\b`), "trusted"},
	{regexp.MustCompile(`\bdealers?\b`), "partitioned aggregation"},
	{regexp.MustCompile(`\b[Vv]igil\b`), "failure detector"},
	{regexp.MustCompile(`\bso many\b`), "n, or a number of"},
	{regexp.MustCompile(`(?i)\bwhoever\b`), "the reader, the client, the executor that"},
	{regexp.MustCompile(`(?i)\b(doorkeepers?|strangers)\b`), "listener, unauthenticated"},
	{regexp.MustCompile(`\bunless told otherwise\b`), "by default"},
	{regexp.MustCompile(`\bmade anew\b`), "rebuilt, recomputed"},
}

// persons are no actors of code, tests apart: an executor, a task, a client is.
var persons = regexp.MustCompile(`(?i)\b(some|no|any|every)body\b`)

// tracked are the files of the tree, by ending.
func tracked(t *testing.T, endings ...string) (paths []string) {
	cmd := exec.Command("git", append([]string{"ls-files"}, endings...)...)
	cmd.Dir = rootPath
	raw, err := cmd.Output()
	if err != nil {
		t.Skip("this is no clone: ", err)
	}
	return strings.Fields(string(raw))
}

// TestWordsOfTheField: what was there changed once is not said in another way again.
func TestWordsOfTheField(t *testing.T) {
	for _, path := range tracked(t, "*.go", "*.md", "*.proto") {
		if strings.HasPrefix(path, "internal/lint/") || path == "CHANGELOG.md" {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(rootPath, path))
		if err != nil {
			continue // it is not committed that it is gone
		}
		for n, line := range bytes.Split(raw, []byte("\n")) {
			for _, o := range out {
				if o.word.Match(line) {
					t.Errorf("%s:%d: %q: say %s", path, n+1, o.word.Find(line), o.say)
				}
			}
			if code := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"); code &&
				persons.Match(line) {
				t.Errorf("%s:%d: %q: say which process, task or user", path, n+1, persons.Find(line))
			}
		}
	}
}

// TestFunctionsReturn: the comment of a function with results says what it does ("F returns …", "F reports
// whether …"), not what it is.
func TestFunctionsReturn(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.gen {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Type.Results == nil {
				continue
			}
			for _, verb := range []string{" is ", " are ", " says ", " tells "} {
				if strings.HasPrefix(strings.Join(strings.Fields(f.Doc.Text()), " "), f.Name.Name+verb) {
					t.Errorf("%s: the comment begins %q: say what it returns, or does", s.path, f.Name.Name+verb)
				}
			}
		}
	}
}

// TestGlossaryNamesWhatIsThere: each file that it and CONTRIBUTING name.
func TestGlossaryNamesWhatIsThere(t *testing.T) {
	named := regexp.MustCompile("`((?:[a-z]+/)+[a-z._]+\\.[a-z]+)`")
	for _, doc := range []string{"docs/glossary.md", "CONTRIBUTING.md", "docs/architecture.md"} {
		raw, err := os.ReadFile(filepath.Join(rootPath, doc))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllSubmatch(raw, -1) {
			if _, err := os.Stat(filepath.Join(rootPath, string(m[1]))); err != nil {
				t.Errorf("%s names %s, which is not there", doc, m[1])
			}
		}
	}
}

// widest is how many columns a line of code may have, tabs counted as four.
const widest = 120

// TestLinesAreNotTooWide, but for texts in backquotes and tables in comments.
func TestLinesAreNotTooWide(t *testing.T) {
	for _, path := range tracked(t, "*.go") {
		raw, err := os.ReadFile(filepath.Join(rootPath, path))
		if err != nil || bytes.Contains(raw[:min(200, len(raw))], []byte("DO NOT EDIT")) {
			continue
		}
		within := false // a text in backquotes
		for n, line := range strings.Split(string(raw), "\n") {
			quotes := strings.Count(line, "`")
			text := within || quotes > 0 || strings.HasPrefix(strings.TrimSpace(line), "//\t")
			within = within != (quotes%2 == 1)
			if columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); columns > widest && !text {
				t.Errorf("%s:%d: %d columns, at most %d", path, n+1, columns, widest)
			}
		}
	}
}
