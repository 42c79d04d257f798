package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/volley-engine/volley/integration/reference"
)

// within is how much worse than the best peer a metric may be, relatively.
const within = 0.01

//go:embed peers.json
var measured []byte

// peers are what other libraries come to with their defaults: by data set and trial,
// each library's metric, the median of its seeds.
type peers struct {
	Versions map[string]string                        `json:"versions"`
	Figures  map[string]map[string]map[string]float64 `json:"figures"`
}

func readPeers() (p peers, err error) {
	return p, json.Unmarshal(measured, &p)
}

// best returns the peer whose metric is best; false where none does the trial.
func (p *peers) best(set string, t reference.Trial) (name string, value float64, ok bool) {
	for system, v := range p.Figures[set][t.Name()] {
		if d := better(t.Metric, v, value); !ok || d > 0 || d == 0 && system < name {
			name, value, ok = system, v, true
		}
	}
	return name, value, ok
}

// better returns by how much a metric is better than another: an error if it is less.
func better(metric string, a, b float64) float64 {
	if metric == "rmse" {
		return b - a
	}
	return a - b
}

// table prints a line for each data set and trial.
type table struct {
	program, only, home string
	peers               peers
	lines, good         int
}

func (t *table) print(ctx context.Context, sets []reference.Set) error {
	fmt.Println("| data set | job | metric | ours | best peer | its | relative difference | at most 1 % worse |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for i := range sets {
		for _, trial := range sets[i].Trials {
			if !strings.Contains(sets[i].Name+" "+trial.Name(), t.only) {
				continue
			}
			if err := t.line(ctx, &sets[i], trial); err != nil {
				return err
			}
		}
	}
	fmt.Printf("\n%d of %d lines are at most 1 %% worse than the best peer (%s).\n", t.good, t.lines, t.versions())
	return nil
}

func (t *table) versions() string {
	var out []string
	for name, v := range t.peers.Versions {
		out = append(out, name+" "+v)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// line runs one trial and prints how it compares.
func (t *table) line(ctx context.Context, s *reference.Set, trial reference.Trial) error {
	ours, err := t.train(ctx, s, trial)
	if err != nil {
		fmt.Printf("| %s | %s | %s | %v | | | | **no** |\n", s.Name, trial.Name(), trial.Metric, err)
		t.lines++
		return ctx.Err()
	}
	peer, its, ok := t.peers.best(s.Name, trial)
	if !ok {
		fmt.Printf("| %s | %s | %s | %.4f | none | | | |\n", s.Name, trial.Name(), trial.Metric, ours)
		return nil
	}
	off := better(trial.Metric, ours, its) / math.Abs(its)
	verdict := "**no**"
	if t.lines++; off >= -within {
		t.good++
		verdict = "yes"
	}
	fmt.Printf("| %s | %s | %s | %.4f | %s | %.4f | %+.2f %% | %s |\n",
		s.Name, trial.Name(), trial.Metric, ours, peer, its, 100*off, verdict)
	return nil
}

// train runs a job with its defaults: flags say where data is and what the task is.
func (t *table) train(ctx context.Context, s *reference.Set, trial reference.Trial) (float64, error) {
	dir, err := os.MkdirTemp(t.home, "run-*")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	args := []string{"run", trial.Job, "--json", "--data", s.Train, "--test", s.Test, "--data-dir", dir}
	args = slices.Concat(args, s.Columns, trial.Flags)
	cmd := exec.CommandContext(ctx, t.program, args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, last(complaint.String()))
	}
	var r struct{ Metrics map[string]float64 }
	if err := json.Unmarshal(out, &r); err != nil {
		return 0, err
	}
	v, ok := r.Metrics[trial.Metric]
	if !ok {
		return 0, fmt.Errorf("it prints no %s", trial.Metric)
	}
	return v, nil
}

func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// listed is a data set in the list that peers.py reads.
type listed struct {
	Name, Train, Test string
	Label             string // a column's number, where it has no name
	Trials            []listedTrial
}

type listedTrial struct{ Job, Name, Metric string }

// writeSets writes the files and sets.json, which has what is in them.
func writeSets(data, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	sets, err := reference.Sets(data, dir)
	if err != nil {
		return err
	}
	var all []listed
	for i := range sets {
		all = append(all, list(&sets[i]))
	}
	raw, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "sets.json"), append(raw, '\n'), 0o644)
}

func list(s *reference.Set) listed {
	train, _ := filepath.Abs(s.Train)
	test, _ := filepath.Abs(s.Test)
	l := listed{Name: s.Name, Train: train, Test: test}
	if len(s.Columns) > 1 {
		l.Label = s.Columns[1]
	}
	for _, t := range s.Trials {
		l.Trials = append(l.Trials, listedTrial{t.Job, t.Name(), t.Metric})
	}
	return l
}
