package stages

import (
	"slices"

	"github.com/volley-engine/volley/scheduler"
)

// outcome is how a run has ended.
type outcome int

const (
	done outcome = iota
	gaveUp
	roundLost
)

// want is what a run was asked for.
type want struct {
	node    int // -1: something that the session does itself
	call    bool
	parts   []int
	replays bool
}

// carryOut carries out a run as a session does.
func (w *world) carryOut(run *scheduler.StageRun, of want) outcome {
	seen := w.watch.begin(of)
	for ev := (scheduler.StageEvent{}); ; {
		cmd := run.Step(ev)
		w.tell("%v, so %v", ev, cmd)
		w.watch.after(seen, cmd)
		switch {
		case w.over || w.found():
			return gaveUp
		case cmd.Kind == scheduler.StageDone:
			return done
		case cmd.Kind == scheduler.StageGiveUp && cmd.Rounds == 0:
			return roundLost
		case cmd.Kind == scheduler.StageGiveUp:
			return gaveUp
		}
		var how outcome
		if ev, how = w.do(cmd); how == roundLost {
			ev = scheduler.StageEvent{Kind: scheduler.StageRoundLost}
		} else if how == gaveUp {
			return gaveUp
		}
		w.watch.before(seen, cmd, ev)
	}
}

// do carries out a command.
func (w *world) do(cmd scheduler.StageCommand) (ev scheduler.StageEvent, how outcome) {
	if w.beside(cmd) {
		return scheduler.StageEvent{Kind: scheduler.StageElsewhere}, done
	}
	switch cmd.Kind {
	case scheduler.StageCall:
		return w.call(cmd), done
	case scheduler.StageFinish:
		ev.Kind = scheduler.StageFinished
		if w.chance(200) {
			w.lose(cmd.Node, scheduler.Loss{Holder: w.execs[w.rng.IntN(len(w.execs))].name, All: true})
		}
	case scheduler.StageOpen:
		ev.Kind, ev.Tasks, ev.Copies = scheduler.StageOpened, w.nodes[cmd.Node].tasks, w.nodes[cmd.Node].copies
		how = w.decide(cmd.Node)
	case scheduler.StageKeep:
		ev.Kind, ev.Holders = scheduler.StageKept, w.keep(cmd)
	case scheduler.StageCopy:
		ev.Kind, ev.Holders = scheduler.StageCopied, w.copy(cmd)
	case scheduler.StageLook:
		ev.Kind = scheduler.StageLooked
	case scheduler.StageReplay:
		w.fired("round lost")
		ev.Kind, how = scheduler.StageReplayed, w.replay()
		if how == roundLost {
			how = gaveUp
		}
	case scheduler.StageRestart:
		ev.Kind, how = scheduler.StageSettled, w.restart(cmd.Node)
	case scheduler.StageSettle:
		ev.Kind, how = scheduler.StageSettled, w.decide(cmd.Node)
	}
	return ev, how
}

// beside has another run do what a command says, as where two actions run side by side, and reports whether it has.
func (w *world) beside(cmd scheduler.StageCommand) bool {
	makes := cmd.Kind == scheduler.StageOpen || cmd.Kind == scheduler.StageCall && cmd.Maps
	if !makes || w.others > 0 || len(w.loops) > 0 || !w.chance(w.law.besides) { // where loops are, actions run in turn
		return false
	}
	w.fired("stage made by another run")
	w.others++
	defer func() { w.others-- }()
	w.carryOut(w.stages.Make(cmd.Node, false), want{node: cmd.Node})
	return true
}

// decide settles a node: what is decided about it may need a stage that it reads.
func (w *world) decide(node int) outcome {
	if reads := w.nodes[node].reads; len(reads) > 0 && w.chance(w.law.wraps) {
		w.fired("decided by a stage")
		stage := reads[w.rng.IntN(len(reads))]
		return w.carryOut(w.stages.Make(stage, false), want{node: stage})
	}
	return done
}

func (w *world) lose(node int, l scheduler.Loss) {
	w.stages.Lost(node, l)
	w.watch.lost(node, l)
}

// call runs the tasks of a call, each on some executor. Between them executors die and forget.
func (w *world) call(cmd scheduler.StageCommand) (ev scheduler.StageEvent) {
	ev.Kind = scheduler.StageCalled
	for _, at := range cmd.Left {
		w.trouble()
		e := &w.execs[w.rng.IntN(len(w.execs))]
		if l, lost := w.read(cmd.Node); lost {
			ev.Lost = append(ev.Lost, scheduler.LostTask{At: at, Loss: l, Err: errLost})
			continue
		}
		if !cmd.Maps && w.chance(w.law.rests) {
			w.fired("rows handed back")
			ev.Rest = append(ev.Rest, at)
			continue
		}
		if cmd.Maps {
			w.next++
			e.holds[output{cmd.Node, cmd.Parts[at]}] = w.next
			w.watch.by[output{cmd.Node, cmd.Parts[at]}] = e.name
		}
	}
	return ev
}

// trouble has executors die, come back and forget.
func (w *world) trouble() {
	for i := range w.execs {
		e := &w.execs[i]
		e.dead = max(0, e.dead-1)
		if w.chance(w.law.deaths) {
			w.fired("executor dies")
			e.dead, e.holds = w.between(0, 20), map[output]int{}
		}
		for o := range e.holds {
			if w.rng.IntN(50_000) < w.law.damages*len(e.holds) {
				w.fired("output gone")
				o = w.oneOf(e)
				delete(e.holds, o)
			}
			break
		}
	}
}

// oneOf returns some output that an executor holds.
func (w *world) oneOf(e *exec) output {
	var all []output
	for o := range e.holds {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b output) int { return a.stage<<10 + a.task - b.stage<<10 - b.task })
	return all[w.rng.IntN(len(all))]
}

// read reads what a task of a node is computed from, where it is said to be.
func (w *world) read(node int) (l scheduler.Loss, lost bool) {
	for _, stage := range w.nodes[node].reads {
		for m := range w.nodes[stage].tasks {
			holders, there := w.stages.Holders(stage, m)
			if !there {
				return l, false // the oracle has said so
			}
			if len(holders) == 0 {
				continue // a file
			}
			e := w.exec(holders[0])
			if e == nil || e.dead > 0 || e.cursed {
				return scheduler.Loss{Holder: holders[0], All: true}, true
			}
			if e.holds[output{stage, m}] == 0 {
				return scheduler.Loss{Holder: holders[0]}, true
			}
		}
	}
	return l, false
}

func (w *world) exec(name string) *exec {
	if i := slices.IndexFunc(w.execs, func(e exec) bool { return e.name == name }); i >= 0 {
		return &w.execs[i]
	}
	return nil
}

// keep returns the holders of map outputs.
func (w *world) keep(cmd scheduler.StageCommand) (holders [][]string) {
	for _, m := range cmd.Parts {
		if w.nodes[cmd.Node].file {
			holders = append(holders, nil)
		} else {
			holders = append(holders, []string{w.watch.by[output{cmd.Node, m}]})
		}
	}
	return holders
}

// copy has others hold outputs, where they can be read and there are others.
func (w *world) copy(cmd scheduler.StageCommand) (holders [][]string) {
	for _, m := range cmd.Parts {
		o := output{cmd.Node, m}
		to := &w.execs[w.rng.IntN(len(w.execs))]
		held, _ := w.stages.Holders(cmd.Node, m)
		var from *exec
		if len(held) > 0 {
			from = w.exec(held[0])
		}
		if from == nil || from.dead > 0 || from.holds[o] == 0 || to.dead > 0 || slices.Contains(held, to.name) {
			holders = append(holders, nil)
			continue
		}
		w.fired("copied")
		to.holds[o] = from.holds[o]
		holders = append(holders, []string{to.name})
	}
	return holders
}
