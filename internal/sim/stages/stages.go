package stages

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/volley-engine/volley/internal/sim"
	"github.com/volley-engine/volley/scheduler"
)

// world is a session of a random plan, its executors with faults, and the oracles that watch
// what it is told to do.
type world struct {
	rng    *rand.Rand
	opt    sim.Options
	result sim.Result
	stages *scheduler.Stages
	nodes  []node
	loops  []loop
	execs  []exec
	law    laws
	watch  watch
	next   int // attempt
	others int // runs beside the one in hand
	over   bool
}

// node is a node of the plan: a stage, or an action.
type node struct {
	stage  bool
	reads  []int // stages, all of them before it
	tasks  int
	copies int
	file   bool // what its tasks write all executors reach
}

// loop is a loop: the stage that holds its rows, and the one that writes the next.
type loop struct {
	now, next   int
	done, again int // rounds
}

// exec is an executor with what it holds.
type exec struct {
	name   string
	dead   int // for a number of tasks more
	cursed bool
	holds  map[output]int // attempts
}

// output is that of a map task.
type output struct{ stage, task int }

// laws are how often, in a thousand tasks, something goes wrong.
type laws struct{ deaths, damages, rests, wraps, besides int }

// Simulate runs a session under a seed.
func Simulate(seed uint64, opt sim.Options) *sim.Result {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x737461676573)), opt: opt,
		result: sim.Result{Seed: seed, Faults: map[string]int{}}}
	w.draw()
	w.stages = scheduler.NewStages(func(n int) []int { return w.nodes[n].reads })
	w.watch = newWatch(w)
	for range 30 {
		if w.over || w.found() {
			break
		}
		w.act()
	}
	return &w.result
}

func (w *world) fired(kind string) { w.result.Faults["stages: "+kind]++ }

func (w *world) between(lo, hi int) int { return lo + w.rng.IntN(hi-lo+1) }

// chance reports true a given number of times in a thousand.
func (w *world) chance(permille int) bool { return w.rng.IntN(1000) < permille }

func (w *world) draw() {
	for range w.between(3, 10) {
		w.nodes = append(w.nodes, w.drawNode())
	}
	for now := range w.nodes {
		if n := &w.nodes[now]; n.stage && w.chance(250) {
			w.nodes = append(w.nodes, node{stage: true, reads: []int{now}, tasks: n.tasks, copies: 2})
			w.loops = append(w.loops, loop{now: now, next: len(w.nodes) - 1})
			n.copies, n.file = 2, false
		}
	}
	for i := range w.between(1, 5) {
		w.execs = append(w.execs, exec{name: fmt.Sprint("e", i), holds: map[output]int{}})
	}
	w.execs[0].cursed = w.chance(150)
	w.law = laws{deaths: w.between(0, 40), damages: w.between(0, 30), rests: w.between(0, 30), wraps: w.between(0, 300),
		besides: w.between(0, 100)}
	if w.chance(300) {
		w.law.deaths, w.law.damages = w.law.deaths/10, w.law.damages/10
	}
}

func (w *world) drawNode() node {
	n := node{stage: w.chance(700), tasks: w.between(0, 12), copies: 1, file: w.chance(100)}
	if w.chance(100) {
		n.tasks = 40
	}
	if w.chance(250) {
		n.copies = w.between(2, 3)
	}
	for in := range w.nodes {
		if w.nodes[in].stage && w.chance(500) {
			n.reads = append(n.reads, in)
		}
	}
	return n
}

// act has the session do something: an action, on some partitions, a round of a loop, or that
// outputs are given up.
func (w *world) act() {
	n := w.rng.IntN(len(w.nodes))
	switch k := w.rng.IntN(10); {
	case k == 0 && w.nodes[n].stage && !w.inLoop(n):
		w.fired("dropped")
		w.drop(n)
	case k <= 3 && len(w.loops) > 0:
		w.end(w.round(&w.loops[w.rng.IntN(len(w.loops))], true))
	case w.nodes[n].stage:
		w.end(w.carryOut(w.stages.Make(n, true), want{node: n, replays: true}))
	default:
		var parts []int
		for p := range w.nodes[n].tasks {
			if !w.chance(100) {
				parts = append(parts, p)
			}
		}
		w.end(w.carryOut(w.stages.Settle(n), want{node: -1, replays: true}))
		if !w.over {
			w.end(w.carryOut(w.stages.Call(n, parts, true), want{node: n, parts: parts, call: true, replays: true}))
		}
	}
}

// end ends a session that has given up.
func (w *world) end(how outcome) {
	if how != done {
		w.over, w.result.Ended = true, "what it reads is lost again and again"
		w.fired("gave up")
	}
}

func (w *world) inLoop(stage int) bool {
	return slices.ContainsFunc(w.loops, func(l loop) bool { return l.next == stage || l.now == stage && l.done > 0 })
}

func (w *world) drop(stage int) {
	w.stages.Drop(stage)
	w.watch.dropped(stage)
}

// round runs a round of a loop.
func (w *world) round(l *loop, replays bool) outcome {
	if how := w.carryOut(w.stages.Make(l.next, replays), want{node: l.next, replays: replays}); how != done {
		return how
	}
	w.tell("round %d of %d", l.done+1, l.now)
	for up := range w.nodes {
		if up != l.next && w.above(up, l.now) && w.nodes[up].stage && !w.inLoop(up) {
			w.drop(up)
		}
	}
	w.stages.Turn(l.now, l.next)
	w.watch.turned(l.now, l.next)
	for e := range w.execs {
		for o, attempt := range w.execs[e].holds {
			if o.stage == l.next {
				delete(w.execs[e].holds, o)
				w.execs[e].holds[output{l.now, o.task}] = attempt
			}
		}
	}
	l.done++
	return done
}

// above reports whether a node is computed from another.
func (w *world) above(up, node int) bool {
	return slices.ContainsFunc(w.nodes[up].reads, func(in int) bool { return in == node || w.above(in, node) })
}

// replay runs the rounds again of the loops that have lost theirs.
func (w *world) replay() outcome {
	for _, id := range w.stages.LostRounds() {
		l := &w.loops[slices.IndexFunc(w.loops, func(l loop) bool { return l.now == id })]
		l.again = l.done
		if how := w.carryOut(w.stages.Rerun(id), want{node: -1}); how != done {
			return how
		}
	}
	return done
}

// restart runs a loop's rounds from the beginning.
func (w *world) restart(now int) outcome {
	l := &w.loops[slices.IndexFunc(w.loops, func(l loop) bool { return l.now == now })]
	l.done = 0
	w.stages.Restart(now)
	w.watch.rounds[now] = false
	w.drop(now)
	for l.done < l.again {
		if how := w.round(l, false); how != done {
			return how
		}
	}
	return done
}

// found reports whether what is looked for has been found.
func (w *world) found() bool {
	return slices.ContainsFunc(w.result.Violations, func(v sim.Violation) bool {
		return w.opt.Until == "any" || w.opt.Until == v.Oracle
	})
}

// violate notes what an oracle has found.
func (w *world) violate(oracle, format string, args ...any) {
	w.tell("!!! "+oracle+": "+format, args...)
	if len(w.result.Violations) < 10 || oracle == w.opt.Until {
		v := sim.Violation{Oracle: oracle, Text: fmt.Sprintf(format, args...)}
		w.result.Violations = append(w.result.Violations, v)
	}
}

func (w *world) tell(format string, args ...any) {
	if w.opt.Trace != nil {
		w.opt.Trace(fmt.Sprintf("stages: "+format, args...))
	}
}
