// Command simulate runs seeds of the simulator and prints what broke.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/sim"
	"github.com/volley-engine/volley/internal/sim/drivers"
	"github.com/volley-engine/volley/internal/sim/life"
	"github.com/volley-engine/volley/internal/sim/reassigned"
	"github.com/volley-engine/volley/internal/sim/shares"
	"github.com/volley-engine/volley/internal/sim/stages"
	"github.com/volley-engine/volley/internal/sim/tables"
)

func main() {
	seeds := flag.Int("seeds", 200, "how many seeds")
	from := flag.Uint64("from", 1, "the first seed")
	bug := flag.Int("bug", 0, fmt.Sprintf("plant a bug, 1 to %d, and look for it", mutant.Count))
	steps := flag.Int("steps", 50, "steps a seed")
	trace := flag.Bool("trace", false, "tell of everything that the jobs of the seeds see and say")
	only := flag.String("world", "", "run one world alone: "+strings.Join(slices.Sorted(maps.Keys(worlds)), ", "))
	flag.Parse()
	if *only != "" && worlds[*only] == nil {
		fmt.Printf("there is no world %q\n", *only)
		os.Exit(2)
	}
	if *bug != 0 && !mutant.Built {
		fmt.Println("bugs can be planted only in a build with the tag mutants")
		os.Exit(2)
	}
	debug.SetGCPercent(garbage)
	mutant.Plant(mutant.Bug(*bug))
	os.Exit(run(*from, *seeds, *steps, mutant.Bug(*bug), *trace, *only))
}

// worlds has each part of the system that a seed runs, by name.
var worlds = map[string]func(uint64, sim.Options) *sim.Result{
	"control": sim.Simulate, "life": life.Simulate, "stages": stages.Simulate, "shares": shares.Simulate,
	"drivers": drivers.Simulate, "tables": tables.Simulate, "help": reassigned.Simulate,
}

// garbage is how much of it, as a percentage of what is alive, is worth collecting: a seed has
// little that is alive and is over soon, and collecting takes half of the time else.
const garbage = 1600

func run(from uint64, seeds, steps int, bug mutant.Bug, trace bool, only string) int {
	options := sim.Options{Steps: steps}
	if bug != mutant.None {
		options.Until = "any"
	}
	if trace {
		options.Trace = func(line string) { fmt.Println(line) }
	}
	began := time.Now()
	t := tally{faults: map[string]int{}, oracles: map[string]int{}, bug: bug}
	for r := range simulated(from, seeds, options, only) {
		t.add(r)
	}
	return t.print(time.Since(began))
}

// simulated returns the results of seeds, as they come, of as many at a time as there are cores.
func simulated(from uint64, seeds int, options sim.Options, only string) <-chan *sim.Result {
	results := make(chan *sim.Result)
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < uint64(seeds); i = next.Add(1) - 1 {
				results <- everything(from+i, options, only)
			}
		})
	}
	go func() {
		wg.Wait()
		close(results)
	}()
	return results
}

// everything runs a seed's control plane, its driver's life, its session's stages, its executor's slots and its several
// drivers, or one of them only, and adds up what they found.
func everything(seed uint64, opt sim.Options, only string) *sim.Result {
	r := &sim.Result{Seed: seed, Faults: map[string]int{}}
	for _, name := range slices.Sorted(maps.Keys(worlds)) {
		if only != "" && name != only {
			continue
		}
		found := worlds[name](seed, opt)
		for k, n := range found.Faults {
			r.Faults[k] += n
		}
		r.Violations = append(r.Violations, found.Violations...)
		r.Ended = cmp.Or(r.Ended, found.Ended)
	}
	return r
}

// tally is what seeds have come to so far.
type tally struct {
	faults, oracles        map[string]int
	seeds, bad, violations int
	bug                    mutant.Bug
}

// add counts a seed, and says at once what it violated, of each oracle twice.
func (t *tally) add(r *sim.Result) {
	t.seeds++
	for k, n := range r.Faults {
		t.faults[k] += n
	}
	if r.Ended != "" {
		t.faults["ended as it had to"]++
	}
	if len(r.Violations) == 0 {
		return
	}
	t.bad++
	t.violations += len(r.Violations)
	first := r.Violations[0]
	if t.oracles[first.Oracle]++; t.oracles[first.Oracle] <= 2 {
		fmt.Printf("seed %d: %s\n  again with: make sim SEEDS=1 FROM=%d BUG=%d\n", r.Seed, first, r.Seed, t.bug)
	}
}

// print returns what was met and found, and returns the exit code.
func (t *tally) print(took time.Duration) int {
	for _, k := range slices.Sorted(maps.Keys(t.faults)) {
		fmt.Printf("%-24s %d\n", k, t.faults[k])
	}
	for _, k := range slices.Sorted(maps.Keys(t.oracles)) {
		fmt.Printf("first found by %-16s %d\n", k, t.oracles[k])
	}
	if t.bug != mutant.None {
		fmt.Printf("bug %d: found in %d of %d seeds\n", t.bug, t.bad, t.seeds)
		if t.bad == 0 {
			return 1
		}
		return 0
	}
	fmt.Printf("%d seeds, %d violations; %.0f seeds an hour on %d cores\n", t.seeds, t.violations,
		float64(t.seeds)/took.Hours(), runtime.GOMAXPROCS(0))
	if t.violations > 0 {
		return 1
	}
	return 0
}
