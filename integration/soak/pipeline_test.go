package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/volley-engine/volley/rdd"
)

// pipeline is a plan that was drawn, and what is asked of it.
type pipeline struct {
	seed   uint64
	steps  []*step
	checks []check
	files  []input
}

// How many rows a dataset may come to: mostly some thousands, and now and then more than
// tasks have memory for.
const (
	fewRows  = 8_000
	manyRows = 60_000
)

// drawPipeline draws the pipeline of a seed.
func drawPipeline(seed uint64) *pipeline {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 16)), pool: map[string][]any{}, limit: fewRows}
	if d.IntN(8) == 0 {
		d.limit = manyRows
	}
	s := begin(d)
	for range 1 + d.IntN(3) {
		for range 1 + d.IntN(4) {
			s = s.grow(d)
		}
		if d.IntN(2) == 0 {
			s = one(d, kinds()...).of(d, s.numbers(d))
		}
	}
	return &pipeline{seed: seed, checks: s.check(d), steps: reached(s.last()), files: d.files}
}

// begin is the first source.
func begin(d *draw) stage {
	k := one(d, kinds()...)
	switch d.IntN(8) {
	case 0, 1:
		return k.of(d, records(d))
	case 2:
		return k.of(d, lines(d))
	}
	return k.source(d)
}

// reached are the steps that one is made by, the first of them first.
func reached(last *step) (all []*step) {
	seen := map[int]bool{}
	var visit func(*step)
	visit = func(s *step) {
		if seen[s.id] {
			return
		}
		seen[s.id] = true
		for _, f := range s.from {
			visit(f)
		}
		all = append(all, s)
	}
	visit(last)
	return all
}

// String is the pipeline in words.
func (p *pipeline) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pipeline %d:\n", p.seed)
	for _, s := range p.steps {
		fmt.Fprintf(&b, "  %v\n", s)
	}
	for _, c := range p.checks {
		fmt.Fprintf(&b, "  ask for %s\n", c.words)
	}
	return b.String()
}

// build declares the plan. Files go to a directory.
func (p *pipeline) build(g *rdd.Graph, dir string) *built {
	b := &built{g: g, dir: dir, made: map[int]any{}}
	var last []func(context.Context, *rdd.Session) error
	for _, c := range p.checks {
		last = append(last, c.ask(b))
	}
	b.asked = append(last, b.asked...)
	return b
}

// run asks everything.
func (b *built) run(ctx context.Context, s *rdd.Session) error {
	for _, do := range slices.Concat(b.ready, b.asked[:1], b.after, b.asked[1:]) {
		if err := do(ctx, s); errors.Is(err, errEnded) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}
