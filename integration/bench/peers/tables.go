package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// quality is what a system came to, in the job's own measure, and how long that took.
type quality struct {
	System  string  `json:"system"`
	Quality float64 `json:"quality"`
	Seconds float64 `json:"seconds"`
}

// match is a job of parameter tables beside other systems, on data that it makes. Ours has the flags of own, and each
// peer a script in this folder with its arguments; what is compared is the quality and the time.
type match struct {
	name, measure string
	make          [][]string // arguments of volley generate, but for --out
	own           []string
	metric        string // of our JSON object; "" is none
	load          bool   // time counts from the beginning
	peers         [][]string
	alone         string // it is run only where it is asked for by this name
}

// matches are run in a folder of their data: 0.txt, 1.txt … as made. Settings of both sides are those of the least test
// error of a few that were tried; topics are found in fewer iterations than the others need for as good ones.
var matches = []match{
	{"lda", "held-out perplexity, 100 topics",
		[][]string{{"documents", "--rows", "6600", "--words", "20000", "--k", "100", "--length", "330"}},
		[]string{"--data", "train", "--test", "test", "--topics", "100", "--splits", "2", "--max-iterations", "40"},
		"perplexity", false,
		[][]string{{"lda.py", "tomotopy", "train", "test", "20000", "100", "50"},
			{"lda.py", "mallet", "train", "test", "20000", "100", "50"}}, ""},
	{"lda", "held-out perplexity, 1,000 topics",
		[][]string{{"documents", "--rows", "6600", "--words", "20000", "--k", "100", "--length", "330"}},
		[]string{"--data", "train", "--test", "test", "--topics", "1000", "--splits", "2", "--max-iterations", "20"},
		"perplexity", false,
		[][]string{{"lda.py", "tomotopy", "train", "test", "20000", "1000", "50"},
			{"lda.py", "mallet", "train", "test", "20000", "1000", "50"}}, ""},
	{"lda", "held-out perplexity, articles, 100 topics",
		[][]string{{articles}},
		[]string{"--data", "train", "--test", "test", "--topics", "100", "--splits", "2", "--max-iterations", "120"},
		"perplexity", false,
		[][]string{{"lda.py", "tomotopy", "train", "test", "10473", "100", "200"},
			{"lda.py", "mallet", "train", "test", "10473", "100", "200"}}, ""},
	{"lda", "held-out perplexity, articles, 1,000 topics",
		[][]string{{articles}},
		[]string{"--data", "train", "--test", "test", "--topics", "1000", "--splits", "2", "--fixed-beta",
			"--max-iterations", "120"}, "perplexity", false,
		[][]string{{"lda.py", "tomotopy", "train", "test", "10473", "1000", "200"},
			{"lda.py", "mallet", "train", "test", "10473", "1000", "200"}}, ""},
	{"mf", "test rmse",
		[][]string{{"als", "--rows", "5000000", "--users", "200000", "--items", "20000", "--noise", "0.4"}},
		[]string{"--data", "train.csv", "--test", "test.csv", "--rank", "10", "--biases=false", "--splits", "2",
			"--reg", "0.07", "--rate", "0.4", "--decay", "1", "--max-iterations", "30"}, "rmse", false,
		[][]string{{"mf.py", "train.csv", "test.csv", "10", "0.3", "0.07", "30"}}, ""},
	{"pagerank", "20 rounds, with loading",
		[][]string{{"graph", "--rows", "20000000", "--scale", "20"}},
		[]string{"--data", "0.txt", "--max-iterations", "20", "--tol", "0"}, "", true,
		[][]string{{"graph.py", "networkit", "0.txt"}, {"graph.py", "igraph", "0.txt"}}, ""},
	{"pagerank", "20 rounds of web-Stanford, with loading",
		[][]string{{webStanford}},
		[]string{"--data", "0.txt", "--max-iterations", "20", "--tol", "0"}, "", true,
		[][]string{{"graph.py", "networkit", "0.txt"}, {"graph.py", "igraph", "0.txt"}}, ""},
	{"lda", "held-out perplexity, beside Spark",
		[][]string{{"documents", "--rows", "2200", "--words", "5000", "--k", "50", "--length", "200"}},
		[]string{"--data", "train", "--test", "test", "--topics", "50", "--splits", "2", "--max-iterations", "50"},
		"perplexity", false,
		[][]string{{"lda.py", "spark_em", "train", "test", "5000", "50", "50"},
			{"lda.py", "spark_online", "train", "test", "5000", "50", "50"}}, "spark"},
	{"pagerank", "20 rounds, with loading, beside GraphX", [][]string{{"graph", "--rows", "20000000", "--scale", "20"}},
		[]string{"--data", "0.txt", "--max-iterations", "20", "--tol", "0"}, "", true,
		[][]string{{"graph.py", "graphx", "0.txt"}}, "spark"},
}

// Published data beside the peers' scripts: a graph of the web, and articles of the Associated Press.
const (
	webStanford = "data/web-Stanford/web-Stanford.relabelled.txt.gz"
	articles    = "data/ap/ap.dat.gz"
)

// published reports whether data is published, not made.
func published(data string) bool { return strings.HasSuffix(data, ".gz") }

// planted returns a match on a planted corpus of a number of documents, whose words grow as those of articles do. More
// words take half as many iterations more to find topics as good.
func (m match) planted(documents int) match {
	if m.make[0][0] != "documents" || m.alone != "" || documents == 6000 {
		return m
	}
	words := strconv.Itoa(20_000 + documents*80/300)
	as := func(args []string) []string {
		args = slices.Clone(args)
		for i, arg := range args {
			switch arg {
			case "20000":
				args[i] = words
			case "6600":
				args[i] = strconv.Itoa(documents * 11 / 10)
			}
		}
		return args
	}
	peers := make([][]string, len(m.peers))
	for i, p := range m.peers {
		peers[i] = as(p)
	}
	m.make, m.peers, m.own = [][]string{as(m.make[0])}, peers, slices.Clone(m.own)
	if n, err := strconv.Atoi(m.own[len(m.own)-1]); err == nil && documents > 6000 {
		m.own[len(m.own)-1] = strconv.Itoa(n * 3 / 2)
	}
	return m
}

// tablePeers runs matches, those of a job where one is named, and of those that measure what follows it. The scripts
// need the packages that they name; PYTHON is the interpreter that has them.
func tablePeers(peers, scripts, volley, only string, documents int) error {
	only, measure, _ := strings.Cut(only, ",")
	volley, err := filepath.Abs(volley)
	if err != nil {
		return err
	}
	scripts, err = filepath.Abs(scripts)
	if err != nil {
		return err
	}
	for _, m := range matches {
		if m.alone != only && (m.alone != "" || only != "" && only != m.name) ||
			!strings.Contains(m.measure, measure) {
			continue
		}
		m = m.planted(documents)
		if of := m.make[0][0]; published(of) {
			from := filepath.Join(peers, "..", of)
			if _, err := os.Stat(from); err != nil {
				fmt.Printf("%s, %s: skipped: %v\n", m.name, m.measure, err)
				continue
			}
			m.make = [][]string{{of, from}}
		}
		if err := m.play(scripts, volley); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// play makes the data, runs all, and prints a line for each.
func (m match) play(scripts, volley string) error {
	dir, err := os.MkdirTemp("", "volley-peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := m.data(dir, volley); err != nil {
		return err
	}
	args := slices.Concat([]string{"run", m.name}, m.own, []string{"--json", "--data-dir", filepath.Join(dir, "packs")})
	out, err := output(dir, volley, args...)
	if err != nil {
		return err
	}
	var got struct {
		Metrics map[string]float64 `json:"metrics"`
		Load    float64            `json:"load_seconds"`
		Train   float64            `json:"train_seconds"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		return err
	}
	own := quality{"volley", got.Metrics[m.metric], got.Train}
	if m.load {
		own.Seconds += got.Load
	}
	fmt.Printf("%s, %s\n  %-10s %10.4g %8.2f s\n", m.name, m.measure, own.System, own.Quality, own.Seconds)
	python := "python3"
	if env := os.Getenv("PYTHON"); env != "" {
		python = env
	}
	for _, p := range m.peers {
		out, err := output(dir, python, slices.Concat([]string{filepath.Join(scripts, p[0])}, p[1:])...)
		if err != nil {
			return err
		}
		q, err := lastObject(out)
		if err != nil {
			return err
		}
		fmt.Printf("  %-10s %10.4g %8.2f s  %.2f × ours\n", q.System, q.Quality, q.Seconds, q.Seconds/own.Seconds)
	}
	return nil
}

// data makes the files, and of documents and ratings two: every tenth line, or the last tenth, is held out.
func (m match) data(dir, volley string) error {
	for i, args := range m.make {
		name := map[string]string{"documents": ".dat", "als": ".csv", "graph": ".txt", webStanford: ".txt",
			articles: ".dat"}[args[0]]
		path := filepath.Join(dir, strconv.Itoa(i)+name)
		if published(args[0]) {
			if err := plainLines(args[1], path); err != nil {
				return err
			}
		} else {
			args = slices.Concat([]string{"generate"}, args, []string{"--out", path})
			if _, err := output(dir, volley, args...); err != nil {
				return err
			}
		}
		if name == ".txt" {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := split(dir, name, strings.SplitAfter(strings.TrimSuffix(string(raw), "\n"), "\n")); err != nil {
			return err
		}
	}
	return nil
}

// plainLines writes the lines of a compressed file as all systems read them: with one blank, and no comments.
func plainLines(from, to string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	var out strings.Builder
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if text := lines.Text(); !strings.HasPrefix(text, "#") {
			out.WriteString(strings.Join(strings.Fields(text), " ") + "\n")
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return os.WriteFile(to, []byte(out.String()), 0o600)
}

// split writes every eleventh line of documents, every tenth of ratings, to the file of the test, and the others to
// that of training.
func split(dir, kind string, lines []string) error {
	var train, test strings.Builder
	ext, each := "", 11
	if kind == ".csv" {
		ext, each = kind, 10
		train.WriteString(lines[0])
		test.WriteString(lines[0])
		lines = lines[1:]
	}
	for i, line := range lines {
		if i%each == 0 {
			test.WriteString(line)
		} else {
			train.WriteString(line)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "train"+ext), []byte(train.String()), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "test"+ext), []byte(test.String()), 0o600)
}

// output runs a program, and returns what it prints; what it says goes to where ours does if it fails.
func output(dir, name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said.String())
	}
	return out, nil
}

// lastObject returns what the last line of an output has.
func lastObject(out []byte) (q quality, err error) {
	text := string(out)
	from, to := strings.LastIndex(text, "{"), strings.LastIndex(text, "}")
	if from < 0 || to < from {
		return q, fmt.Errorf("no JSON in %q", text)
	}
	return q, json.Unmarshal([]byte(text[from:to+1]), &q)
}
