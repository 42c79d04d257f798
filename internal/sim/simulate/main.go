// Command simulate runs seeds of the simulator and prints what broke.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/sim"
)

func main() {
	seeds := flag.Int("seeds", 200, "how many seeds")
	from := flag.Uint64("from", 1, "the first seed")
	bug := flag.Int("bug", 0, fmt.Sprintf("plant a bug, 1 to %d, and look for it", mutant.Count))
	steps := flag.Int("steps", 50, "steps a seed")
	flag.Parse()
	os.Exit(run(*from, *seeds, *steps, mutant.Bug(*bug)))
}

func run(from uint64, seeds, steps int, bug mutant.Bug) int {
	results := make([]*sim.Result, seeds)
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < seeds; i += workers {
				results[i] = sim.Simulate(from+uint64(i), sim.Options{Steps: steps, Bug: bug})
			}
		})
	}
	wg.Wait()
	faults, bad, violations := map[string]int{}, 0, 0
	for _, r := range results {
		for k, n := range r.Faults {
			faults[k] += n
		}
		if len(r.Violations) > 0 {
			bad++
			violations += len(r.Violations)
			if bad <= 3 {
				fmt.Printf("seed %d: %s\n  again with: make sim SEEDS=1 FROM=%d BUG=%d\n", r.Seed, r.Violations[0], r.Seed, bug)
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(faults)) {
		fmt.Printf("%-16s %d\n", k, faults[k])
	}
	if bug != mutant.None {
		fmt.Printf("bug %d (%v): found in %d of %d seeds\n", bug, bug, bad, seeds)
		if bad == 0 {
			return 1
		}
		return 0
	}
	fmt.Printf("%d seeds, %d violations\n", seeds, violations)
	if violations > 0 {
		return 1
	}
	return 0
}
