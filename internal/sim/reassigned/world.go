package reassigned

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/sim"
	"github.com/volley-engine/volley/tables/reassign"
)

// world is workers that have some clocks to do, and the oracles that watch them.
type world struct {
	rng     *rand.Rand
	opt     sim.Options
	result  sim.Result
	o       reassign.Options
	now     time.Duration
	agenda  sim.World
	workers []*worker
	clocks  int
	slack   int
	quiet   time.Duration // no more faults from then on
	loss    float64
	twice   float64
	most    time.Duration // that a message takes
}

// Simulate lets workers do their clocks under a seed.
func Simulate(seed uint64, opt sim.Options) *sim.Result {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x68656c70)), opt: opt,
		result: sim.Result{Seed: seed, Faults: map[string]int{}}}
	w.draw()
	for !w.found() && !w.done() && len(w.result.Violations) < 10 && w.agenda.Next() {
		if w.now > w.quiet+limit {
			w.violate("help.ends", "not all clocks are done %v after the last fault: %s", limit, w.standing())
			break
		}
	}
	w.result.Virtual = w.now
	return &w.result
}

// limit is how long a world may take once nothing is lost any more.
const limit = 20 * time.Second

func (w *world) draw() {
	w.o = reassign.Defaults()
	w.o.Patience = 15 * time.Second
	w.o.Again, w.o.Group, w.o.Checks = 40*time.Millisecond, 1+w.rng.IntN(4), 10+w.rng.IntN(30)
	if w.rng.IntN(2) == 0 {
		w.o.First = 0.05 + w.rng.Float64()/4
	}
	if w.rng.IntN(3) == 0 {
		w.o.Tail = 0.1 + 0.9*w.rng.Float64()
	}
	w.clocks, w.slack = 3+w.rng.IntN(6), w.rng.IntN(3)
	w.quiet, w.most = w.span(200*time.Millisecond, 2*time.Second), w.span(time.Millisecond, 15*time.Millisecond)
	if w.rng.IntN(3) > 0 {
		w.loss, w.twice = w.rng.Float64()*0.15, w.rng.Float64()*0.15
	}
	n := 2 + w.rng.IntN(6)
	machine := make([]int, n)
	for i := range machine {
		machine[i] = i * (1 + w.rng.IntN(n)) / n
	}
	helpers := reassign.Groups(machine, w.o.Group)
	helpees := make([][]reassign.Worker, n)
	for i, all := range helpers {
		for _, h := range all {
			helpees[h] = append(helpees[h], reassign.Worker(i))
		}
	}
	for i := range n {
		k := &worker{id: reassign.Worker(i), helpers: helpers[i], helpees: helpees[i],
			each: w.span(100*time.Microsecond, 2*time.Millisecond)}
		w.workers = append(w.workers, k)
	}
	for _, k := range w.workers {
		k.begin(w, 0)
	}
	for range w.rng.IntN(5) {
		w.after(w.span(0, w.quiet), w.pause)
	}
	for range w.rng.IntN(3) {
		w.after(w.span(0, w.quiet), w.lose)
	}
}

func (w *world) after(d time.Duration, do func()) {
	at := w.now + d
	w.agenda.At(at, func() {
		w.now = at
		do()
	})
}

func (w *world) span(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.rng.Int64N(int64(hi-lo)+1))
}

func (w *world) fired(kind string) { w.result.Faults["help: "+kind]++ }

// pause has a worker stand still for a while.
func (w *world) pause() {
	w.fired("worker stands still")
	w.workers[w.rng.IntN(len(w.workers))].still = w.now + w.span(10*time.Millisecond, 400*time.Millisecond)
}

// lose ends a worker's process: it begins its clock again on another, and the others are told, some late.
func (w *world) lose() {
	k := w.workers[w.rng.IntN(len(w.workers))]
	if k.over(w) {
		return
	}
	w.fired("worker lost")
	ended := k.life
	k.begin(w, k.clock)
	for _, o := range w.workers {
		if o != k {
			w.after(w.span(0, 50*time.Millisecond), func() { o.do(w, o.machine.Lost(k.id, ended, w.now)) })
		}
	}
}

// post delivers a message to a life of a worker, perhaps never, late or twice.
func (w *world) post(m *reassign.Send) {
	k := w.workers[m.To]
	deliver := func() { k.do(w, k.machine.Step(m.Message, k.begun(), w.now)) }
	faulty := w.now < w.quiet
	if faulty && w.rng.Float64() < w.loss {
		w.fired("message lost")
		return
	}
	w.after(w.span(0, w.most), deliver)
	if faulty && w.rng.Float64() < w.twice {
		w.fired("message twice, and late")
		w.after(w.span(0, 20*w.most), deliver)
	}
}

// done reports whether all workers have done all clocks.
func (w *world) done() bool {
	return !slices.ContainsFunc(w.workers, func(k *worker) bool { return !k.over(w) })
}

// found reports whether what is looked for has been found.
func (w *world) found() bool {
	return slices.ContainsFunc(w.result.Violations, func(v sim.Violation) bool {
		return w.opt.Until == "any" || w.opt.Until == v.Oracle
	})
}

// violate notes what an oracle has found.
func (w *world) violate(oracle, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.tell("!!! %s: %s", oracle, text)
	if len(w.result.Violations) < 10 || oracle == w.opt.Until {
		v := sim.Violation{Oracle: oracle, Text: fmt.Sprintf("at %v: %s", w.now, text)}
		w.result.Violations = append(w.result.Violations, v)
	}
}

func (w *world) tell(format string, args ...any) {
	if w.opt.Trace != nil {
		w.opt.Trace(fmt.Sprintf("help: %v: ", w.now) + fmt.Sprintf(format, args...))
	}
}

// standing returns how far all are.
func (w *world) standing() (text string) {
	for _, k := range w.workers {
		text += fmt.Sprintf("worker %d, life %d, at clock %d, item %d of %d; ", k.id, k.life, k.clock, k.item,
			len(k.counted))
	}
	return text
}
