package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

var section = regexp.MustCompile(`(?m)^## (\S+)\n\n(\d+ of \d+ killed, \d+ argued: [\d.]+ %)$`)

// mutantsOf reads what the last run of make mutate has left of each package.
func mutantsOf(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[string]string{}
	for _, m := range section.FindAllStringSubmatch(string(raw), -1) {
		out[m[1]] = m[2]
	}
	return out, nil
}

const preface = `# The house in figures

Written by ` + "`make house`" + ` from the tree; generated files do not count. A function's length is from its first line to its last. Tests
are lines of ` + "`_test.go`" + ` and ` + "`testdata`" + ` for a line of the package. Mutants are those of the last ` + "`make mutate`" + `; docs/mutants.md lists
which survive.

`

// report returns the text of docs/house.md.
func report(t *tree, mutants map[string]string) string {
	var b strings.Builder
	b.WriteString(preface)
	whole(&b, t)
	b.WriteString("\n## Packages\n\n| package | files | lines | functions: median, p90 | files: median, p90 | " +
		"exported | tests | mutants |\n|---|---|---|---|---|---|---|---|\n")
	for _, dir := range slices.Sorted(maps.Keys(t.rooms)) {
		r := t.rooms[dir]
		fmt.Fprintf(&b, "| `%s` | %d | %d | %s | %s | %d | %s | %s |\n", dir, len(r.files), r.lines,
			spread(r.functions), spread(r.files), len(r.exported), ratio(r.tests, r.lines), mutants[dir])
	}
	b.WriteString("\n## What others use of the driver and the executor\n\nTop-level names, methods and fields apart: " +
		"a type whose values are passed on without being named counts as unused.\n")
	for _, dir := range watched {
		exports(&b, t, dir)
	}
	return b.String()
}

// whole is the module.
func whole(b *strings.Builder, t *tree) {
	var all room
	products := 0
	for _, r := range t.rooms {
		all.files, all.functions = append(all.files, r.files...), append(all.functions, r.functions...)
		all.lines, all.tests = all.lines+r.lines, all.tests+r.tests
		all.wide, all.wideTests = all.wide+r.wide, all.wideTests+r.wideTests
		if len(r.files) > 0 {
			products++
		}
	}
	fmt.Fprintf(b, "| the module | |\n|---|---|\n| packages | %d |\n| lines | %d in %d files |\n| lines a package "+
		"| %d |\n", products, all.lines, len(all.files), all.lines/max(products, 1))
	fmt.Fprintf(b, "| functions: median, p90 | %s of %d |\n| files: median, p90 | %s |\n", spread(all.functions),
		len(all.functions), spread(all.files))
	fmt.Fprintf(b, "| tests | %d lines, %s a line |\n| lines wider than %d columns | %d, in tests %d |\n", all.tests,
		ratio(all.tests, all.lines), wide, all.wide, all.wideTests)
}

func spread(lines []int) string {
	if len(lines) == 0 {
		return "–"
	}
	return fmt.Sprintf("%d, %d", quantile(lines, 50), quantile(lines, 90))
}

// quantile returns the least number that a given percentage of them do not exceed.
func quantile(of []int, percent int) int {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max((len(sorted)*percent+99)/100, 1)-1]
}

func ratio(a, b int) string {
	if b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}

// exports lists which exported names of a package others use, and which are unused.
func exports(b *strings.Builder, t *tree, dir string) {
	r := t.rooms[dir]
	if r == nil {
		return
	}
	var tests, unused []string
	for _, name := range slices.Sorted(slices.Values(r.exported)) {
		switch u := t.uses[dir+"."+name]; {
		case u.product:
		case u.tests:
			tests = append(tests, name)
		default:
			unused = append(unused, name)
		}
	}
	fmt.Fprintf(b, "\n`%s`: %d exported, %d used elsewhere.%s%s\n", dir, len(r.exported),
		len(r.exported)-len(tests)-len(unused),
		listed(" In tests only: ", tests), listed(" Nowhere: ", unused))
}

func listed(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return what + "`" + strings.Join(names, "`, `") + "`."
}
