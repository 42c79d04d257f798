package soak

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// seedsOfATest is how many pipelines are tried where nobody asks for more.
const seedsOfATest = 40

// patience is how long a pipeline may take.
const patience = 2 * time.Minute

// seeds are the pipelines to try, from 1 up to, but without, to: a few, or in a soak one
// in VOLLEY_SOAK. VOLLEY_SOAK_SEED is one alone.
func seeds(t *testing.T, few, oneIn uint64) (from, to uint64) {
	t.Helper()
	if n, err := strconv.ParseUint(os.Getenv("VOLLEY_SOAK_SEED"), 10, 64); err == nil {
		return n, n + 1
	}
	if n, err := strconv.ParseUint(os.Getenv("VOLLEY_SOAK"), 10, 64); err == nil {
		few = max(few, n/oneIn)
	}
	return 1, few + 1
}

// atOnce is how many pipelines run at the same time: they mostly wait for slow machines.
const atOnce = 4

// TestPipelinesComeToWhatTheyShould, whatever the executors are like and whatever
// happens to them.
func TestPipelinesComeToWhatTheyShould(t *testing.T) {
	defer goleak.VerifyNone(t)
	from, to := seeds(t, seedsOfATest, 1)
	next, dir := make(chan uint64), t.TempDir()
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for seed := range next {
				comesToWhatItShould(t, dir, seed)
			}
		})
	}
	for ; from < to; from++ {
		next <- from
	}
	close(next)
	wg.Wait()
}

func comesToWhatItShould(t *testing.T, all string, seed uint64) {
	p := drawPipeline(seed)
	dir, err := os.MkdirTemp(all, "")
	if err != nil {
		t.Error(err)
		return
	}
	defer os.RemoveAll(dir)
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("panic: %v\n%s\n%v", r, debug.Stack(), p)
		}
	}()
	if said, err := p.onRack(dir); err != nil {
		t.Errorf("%v\n%v%sagain: VOLLEY_SOAK_SEED=%d go test %s./integration/soak -run WhatTheyShould", err, p, said,
			seed, tags)
	} else if os.Getenv("VOLLEY_SOAK_SEED") != "" {
		t.Logf("%v%s", p, said)
	}
}

// onRack runs the pipeline on the rack of its seed.
func (p *pipeline) onRack(dir string) (said string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	files := filepath.Join(dir, "files")
	if err := p.write(files); err != nil {
		return "", err
	}
	g := rdd.NewGraph()
	b := p.build(g, files)
	if g.Err() != nil {
		return "", fmt.Errorf("the plan is refused: %w", g.Err())
	}
	r, err := newRack(ctx, dir, p.seed, g, func() *rdd.Graph {
		g := rdd.NewGraph()
		p.build(g, files)
		return g
	})
	if err != nil {
		return "", err
	}
	defer r.close()
	cache, err := pack.OpenCache(filepath.Join(dir, "cache"), 0)
	if err != nil {
		return "", err
	}
	r.known, r.maker = map[int]*pack.Pack{},
		&rdd.Maker{Graph: g, Cache: cache, Workers: 2, Program: fmt.Sprint("soak ", p.seed)}
	defer r.maker.Close()
	s := rdd.NewSession(g, r, rdd.Config{OutDir: dir, Copies: true, TaskMemory: memories[p.seed%uint64(len(memories))]})
	err = b.run(ctx, s)
	return r.String(), err
}
