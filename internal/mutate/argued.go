package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// readArgued reads the survivors that are argued to be equivalent: a key on a line, and below
// it, behind a tab, the argument. Lines that begin with # are for the reader.
func readArgued(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	} else if err != nil {
		return nil, err
	}
	out, key := map[string]string{}, ""
	for line := range strings.Lines(string(raw)) {
		switch text := strings.TrimSpace(line); {
		case text == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, "\t"):
			key = text
			out[key] = ""
		case key == "":
			return nil, fmt.Errorf("%s: a reason stands before the first mutant", path)
		default:
			out[key] = strings.TrimSpace(out[key] + " " + text)
		}
	}
	for k, reason := range out {
		if reason == "" {
			return nil, fmt.Errorf("%s: no reason is given for %s", path, k)
		}
	}
	return out, nil
}

// summary is what became of the mutants of a package.
type summary struct {
	dir       string
	total     int
	killed    int
	survivors []outcome // without an argument
	argued    []outcome
	reasons   map[string]string
	stale     []string // arguments for what is killed, or is not there
}

func summarize(dir string, all []outcome, reasons map[string]string) summary {
	s := summary{dir: dir, total: len(all), reasons: reasons}
	needed := map[string]bool{}
	for _, o := range all {
		switch key := o.key(); {
		case o.killed:
			s.killed++
		case reasons[key] != "":
			needed[key] = true
			s.argued = append(s.argued, o)
		default:
			s.survivors = append(s.survivors, o)
		}
	}
	for key := range reasons {
		if file, _, _ := strings.Cut(key, " | "); dirOf(file) == dir && !needed[key] {
			s.stale = append(s.stale, key)
		}
	}
	slices.Sort(s.stale)
	return s
}

func dirOf(file string) string {
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		return file[:i]
	}
	return "."
}

// share returns how many percent of the mutants without an argument are killed.
func (s summary) share() float64 {
	n := s.total - len(s.argued)
	if n == 0 {
		return 100
	}
	return 100 * float64(s.killed) / float64(n)
}

func (s summary) String() string {
	return fmt.Sprintf("%d of %d killed, %d argued: %.1f %%", s.killed, s.total, len(s.argued), s.share())
}

func (s summary) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n", s.dir, s)
	for _, o := range s.survivors {
		fmt.Fprintf(w, "%s:%d:%d %s: %s -> %s%s\n", o.file, o.line, o.col, o.kind, o.before, o.after, o.remark())
	}
	for _, key := range s.stale {
		fmt.Fprintf(w, "argued, but killed or not there: %s\n", key)
	}
}

func (o outcome) remark() string {
	if o.seen {
		return ""
	}
	return " (no test comes by)"
}

const preface = `# Mutants

What ` + "`make mutate`" + ` has left of each package: small changes of conditions, constants and statements that no test of the package
or of its oracles notices (` + "`internal/mutate`" + `). Lines are those of the last run. Equivalent mutants are argued in
` + "`internal/mutate/argued.txt`" + `, and does not count.
`

// write puts the package's section into a file, in place of the one that is there.
func (s summary) write(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parts := strings.Split(string(raw), "\n## ")[1:]
	own := s.section()
	at := slices.IndexFunc(parts, func(p string) bool { return strings.HasPrefix(p, s.dir+"\n") })
	if at < 0 {
		at, parts = len(parts), append(parts, "")
	}
	parts[at] = own
	for i, p := range parts {
		parts[i] = strings.TrimSpace(p) + "\n"
	}
	slices.Sort(parts)
	return os.WriteFile(path, []byte(preface+"\n## "+strings.Join(parts, "\n## ")), 0o644)
}

func (s summary) section() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", s.dir, s)
	s.list(&b, "Survivors", s.survivors, outcome.remark)
	s.list(&b, "Argued", s.argued, func(o outcome) string { return ": " + s.reasons[o.key()] })
	return b.String()
}

func (s summary) list(b *strings.Builder, title string, all []outcome, more func(outcome) string) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n", title)
	for _, o := range all {
		fmt.Fprintf(b, "- `%s:%d:%d` %s in `%s`: `%s` → `%s`%s\n", o.file, o.line, o.col, o.kind, o.fn, o.before,
			o.after, more(o))
	}
}
