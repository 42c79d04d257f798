package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/storage/pack"
)

// checks: what counting progress and looking at the stop flag cost a slot,
// against folding the same chunks in the same turns without either.
func checks(context.Context, string, int64) error {
	const splits, rows, d, rounds = 4, 20_000, 100, 60
	rng := rand.New(rand.NewPCG(3, 3))
	data := make([]*pack.Split, splits)
	for i := range data {
		b := pack.Batch{Rows: rows, Labels: make([]float64, rows), X64: make([]float64, rows*d)}
		for k := range b.X64 {
			b.X64[k] = rng.NormFloat64()
		}
		data[i] = &pack.Split{Rows: rows, Batches: []pack.Batch{b}}
	}
	page := runner.NewPage(splits, runner.NewGate())
	visit := func(tasks []runner.Task) error { return runner.Visit(tasks, page, nil, func(int) {}) }
	var with, without []float64
	for range rounds {
		for _, way := range []struct {
			fold func([]runner.Task) error
			took *[]float64
		}{{visit, &with}, {foldOnly, &without}} {
			seconds, err := twoSlots(tasksOf(data, d), way.fold)
			if err != nil {
				return err
			}
			*way.took = append(*way.took, seconds)
		}
	}
	a, b := quantile(with, 0.5), quantile(without, 0.5)
	fmt.Printf("progress and stop checks, two slots: %+.2f %% of a pass over dense rows (limit 1 %%)\n", 100*(a/b-1))
	return nil
}

// twoSlots folds half of the tasks on each of two slots.
func twoSlots(tasks []runner.Task, fold func([]runner.Task) error) (float64, error) {
	began := time.Now()
	other := make(chan error, 1)
	go func() { other <- fold(tasks[:len(tasks)/2]) }()
	err := fold(tasks[len(tasks)/2:])
	return time.Since(began).Seconds(), errors.Join(err, <-other)
}

func tasksOf(data []*pack.Split, d int) []runner.Task {
	tasks := make([]runner.Task, len(data))
	for i, s := range data {
		f := &gradientFolder{w: make([]float64, d), rows: make([]int32, 1024), y: make([]float64, 1024)}
		tasks[i] = runner.Task{Fold: runner.NewSplitFold(f, s, 0, 0, 16), Word: i}
	}
	return tasks
}

// foldOnly takes the same turns as runner.Visit and does nothing else.
func foldOnly(tasks []runner.Task) error {
	for left := true; left; {
		left = false
		for _, t := range tasks {
			if _, err := t.Fold.Advance(runner.ChunkRows(t.Fold.Rows())); err != nil {
				return err
			}
			left = left || t.Fold.Left() > 0
		}
	}
	return nil
}

// gradientFolder folds dense rows into a logistic gradient.
type gradientFolder struct {
	w, y []float64
	rows []int32
	acc  kernel.Losses
}

func (f *gradientFolder) Zero() any { return make([]float64, len(f.w)) }

func (f *gradientFolder) Fold(acc any, b *pack.Batch, from, to int, _ []float64) (any, int, error) {
	rows := f.rows[:to-from]
	b.Visit(rows, from)
	kernel.Gradient(&f.acc, kernel.Loss{}, acc.([]float64), f.w, 0, b.X64, rows, f.y[:len(rows)])
	return acc, len(rows), nil
}

func (f *gradientFolder) Merge(a, _ any) any         { return a }
func (f *gradientFolder) Scale(a any, _ float64) any { return a }
func (f *gradientFolder) Close(a any, _ float64) any { return a }
func (f *gradientFolder) State() int                 { return 0 }
func (f *gradientFolder) Weighted() bool             { return false }
func (f *gradientFolder) Encode(any) ([]byte, error) { return nil, nil }
