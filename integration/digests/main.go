// Command digests prints a digest of everything that jobs and lessons come to: models,
// outputs and event logs, in one process and in several. Two versions of the engine that
// are to give the same answers print the same lines. Needs the data sets of make digests.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/volley-engine/volley/integration/lab"
)

func main() {
	data := flag.String("data", "../shared/data", "directory of the data sets")
	only := flag.String("only", "", "lines whose names contain this")
	check := flag.String("check", "", "file of lines of another version, to be held against these")
	flag.Parse()
	if err := run(*data, *only, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// bench is where everything is run.
type bench struct {
	data, dir, program, only string
	numbers                  string // a file of 4,000 numbers, one a line
	lines                    map[string]string
}

func run(data, only, check string) error {
	// Paths are as long in every run: what is sent holds them, and logs count its bytes.
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("volley-digests-%010d", os.Getpid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	data, err := filepath.Abs(data)
	if err != nil {
		return err
	}
	program, err := lab.Build(dir)
	if err != nil {
		return err
	}
	b := &bench{data: data, dir: dir, program: program, only: only, numbers: filepath.Join(dir, "numbers.txt"),
		lines: map[string]string{}}
	if err := os.WriteFile(b.numbers, numbers(4000), 0o600); err != nil {
		return err
	}
	for _, part := range []func() error{b.jobs, b.lessons, b.processes} {
		if err := part(); err != nil {
			return err
		}
	}
	if check == "" {
		return nil
	}
	return b.compare(check)
}

func numbers(n int) (out []byte) {
	for i := range n {
		out = fmt.Appendln(out, i)
	}
	return out
}

// wanted reports whether a line is asked for.
func (b *bench) wanted(name string) bool { return strings.Contains(name, b.only) }

// say prints a line as soon as it is known.
func (b *bench) say(name, digest string) {
	b.lines[name] = digest
	fmt.Printf("%s\t%s\n", name, digest)
}

// compare reports which lines of a file are others now.
func (b *bench) compare(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	before := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, digest, ok := strings.Cut(s.Text(), "\t"); ok && b.wanted(name) {
			before[name] = digest
		}
	}
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if b.lines[name] != before[name] {
			differ = append(differ, name)
		}
	}
	if len(differ) > 0 || len(before) != len(b.lines) {
		return fmt.Errorf("%d of %d digests differ, of %d before:\n%s", len(differ), len(b.lines), len(before),
			strings.Join(differ, "\n"))
	}
	fmt.Printf("%d digests are the same\n", len(before))
	return nil
}
