package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/internal/plan"
)

// lesson is a program of examples/ and what it is run on.
type lesson struct {
	name  string
	flags []string // of the engine
	args  []string // of its own; OUT is its directory
}

func (b *bench) lessonsOf() []lesson {
	in := func(name string) string { return filepath.Join(b.data, name) }
	virtual := []string{"--sync", "absp", "--clock", "virtual", "--pace", "static:4,1"}
	return []lesson{
		{"01-wordcount", nil, []string{"--input", in("shakespeare/shakespeare.txt.gz"), "--output", "OUT"}},
		{"02-logs", nil, []string{"--input", in("gharchive/2015-01-01-0.masked.json.gz"), "--output", "OUT"}},
		{"03-joins", nil, []string{"--flights", in("nycflights13/flights_sample100k.parquet"), "--airlines",
			in("nycflights13/airlines.csv"), "--weather", in("nycflights13/weather.csv.gz")}},
		{"04-pagerank", nil, []string{"--input", in("wiki-Vote/Wiki-Vote.txt.gz"), "--rounds", "10"}},
		{"05-components", nil, []string{"--input", in("wiki-Vote/Wiki-Vote.txt.gz")}},
		{"06-kmeans", virtual, []string{"--input", in("sipu/s1.data.gz"), "--k", "15"}},
		{"07-etl", nil, []string{"--input", in("nycflights13/weather.csv.gz"), "--output", "OUT"}},
		{"08-mean", virtual, []string{"--input", b.numbers}},
	}
}

// lessons runs the lessons in one process, on one executor and on three.
func (b *bench) lessons() error {
	for _, l := range b.lessonsOf() {
		for _, executors := range []string{"1", "3"} {
			name := "lesson, " + executors + " executors: " + l.name
			if !b.wanted(name) || l.flags != nil && executors == "1" {
				continue
			}
			flags := l.flags
			if flags == nil {
				flags = []string{"--executors", executors}
			}
			program, err := b.build(l.name)
			if err != nil {
				return err
			}
			flags = append(slices.Clone(flags), "--data-dir", filepath.Join(b.dir, "packs"))
			if err := b.lesson(name, l, program, flags); err != nil {
				return err
			}
		}
	}
	return nil
}

// build makes the program of a lesson, once.
func (b *bench) build(name string) (string, error) {
	program := filepath.Join(b.dir, name)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, "./examples/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return program, nil
}

// lessonsOn runs the lessons on a cluster.
func (b *bench) lessonsOn(c *lab.Cluster) error {
	for _, l := range b.lessonsOf() {
		name := "processes: " + l.name
		if !b.wanted(name) || l.flags != nil { // computed time is for one process
			continue
		}
		program, err := b.build(l.name)
		if err != nil {
			return err
		}
		if err := b.lesson(name, l, b.program, []string{"submit", "--driver", c.Addr, "--binary",
			program}); err != nil {
			return err
		}
	}
	return nil
}

// lesson runs one, and says what it printed and saved.
func (b *bench) lesson(name string, l lesson, program string, flags []string) error {
	dir, err := os.MkdirTemp(b.dir, "lesson-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "out")
	args := append(slices.Clone(flags), "--")
	for _, a := range l.args {
		args = append(args, strings.ReplaceAll(a, "OUT", out))
	}
	cmd := exec.Command(program, args...)
	var said strings.Builder
	cmd.Stderr = &said
	printed, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, said.String())
	}
	saved := "nothing"
	if _, err := os.Stat(out); err == nil {
		if saved, err = filesDigest(out); err != nil {
			return err
		}
	}
	b.say(name, "printed "+digestOf(b.masked(strings.ReplaceAll(string(printed), dir, "DIR")))+" saved "+saved)
	return nil
}

// durations are what no two runs have in common.
var durations = regexp.MustCompile(`[0-9.]+(ns|µs|ms|s|m[0-9.]+s)\b`)

// masked returns a text without durations and the directory of this run.
func (b *bench) masked(text string) string {
	return durations.ReplaceAllString(strings.ReplaceAll(text, b.dir, "DIR"), "TIME")
}

// owners are the lines by which a saved directory names the job that saved it.
var owners = regexp.MustCompile(`(?m)^owner .*$`)

// filesDigest returns the digest of all files of a directory, by name.
func filesDigest(dir string) (string, error) {
	var all bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		raw = owners.ReplaceAll(raw, nil)
		rel, err := filepath.Rel(dir, path)
		fmt.Fprintf(&all, "%s %d\n%s", rel, len(raw), raw)
		return err
	})
	return digestOf(all.String()), err
}

func digestOf(text string) string { return plan.DigestOf([]byte(text)).Short() }
