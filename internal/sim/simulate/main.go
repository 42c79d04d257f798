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
	trace := flag.Bool("trace", false, "tell of everything that the jobs of the seeds see and say")
	flag.Parse()
	if *bug != 0 && !mutant.Built {
		fmt.Println("bugs can be planted only in a build with the tag mutants")
		os.Exit(2)
	}
	mutant.Plant(mutant.Bug(*bug))
	os.Exit(run(*from, *seeds, *steps, mutant.Bug(*bug), *trace))
}

func run(from uint64, seeds, steps int, bug mutant.Bug, trace bool) int {
	options := sim.Options{Steps: steps}
	if bug != mutant.None {
		options.Until = "any"
	}
	if trace {
		options.Trace = func(line string) { fmt.Println(line) }
	}
	results := make([]*sim.Result, seeds)
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < seeds; i += workers {
				results[i] = sim.Simulate(from+uint64(i), options)
			}
		})
	}
	wg.Wait()
	faults, bad, violations, oracles, known := map[string]int{}, 0, 0, map[string]int{}, map[string]int{}
	for _, r := range results {
		for k, n := range r.Faults {
			faults[k] += n
		}
		for _, v := range r.Known {
			known[v.Oracle]++
		}
		if r.Ended != "" {
			faults["ended as it had to"]++
		}
		for _, v := range r.Violations[:min(1, len(r.Violations))] {
			oracles[v.Oracle]++
		}
		if len(r.Violations) > 0 {
			bad++
			violations += len(r.Violations)
			if oracles[r.Violations[0].Oracle] <= 2 {
				fmt.Printf("seed %d: %s\n  again with: make sim SEEDS=1 FROM=%d BUG=%d\n", r.Seed, r.Violations[0], r.Seed, bug)
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(faults)) {
		fmt.Printf("%-24s %d\n", k, faults[k])
	}
	for _, k := range slices.Sorted(maps.Keys(oracles)) {
		fmt.Printf("first found by %-16s %d\n", k, oracles[k])
	}
	for _, k := range slices.Sorted(maps.Keys(known)) {
		fmt.Printf("known to fail: %-16s %d\n", k, known[k])
	}
	if bug != mutant.None {
		fmt.Printf("bug %d: found in %d of %d seeds\n", bug, bad, seeds)
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
