package scheduler

import "slices"

// StageRun is one request: a call, preceded by the stages that it reads; a stage
// alone; or work of the session itself, repeated when rows of a loop's round are
// lost meanwhile. Step takes the outcome of the last command, and returns the next.
type StageRun struct {
	s       *Stages
	ask     StageCommand // work of the session itself; StageCall: none
	root    stageCall
	replays bool         // lost rounds are recomputed
	anew    bool         // it restarts when rounds are lost
	again   int          // how often it has restarted
	calls   []*stageCall // the innermost last: the map tasks of a stage above its reader
	numbers int
}

// stageCall is a call: an action's tasks, or the map tasks of a stage.
type stageCall struct {
	number int
	node   int
	parts  []int
	left   []int // indexes of parts without a result
	phase  callPhase
	round  int   // calls since the last one that made progress
	last   error // why its input was lost
	looks  int   // how often its input was checked, in this round
	reads  []int // stages that this check has yet to visit
	made   bool  // this check recomputed something: meanwhile something else may be lost
	keeps  bool  // its tasks are the map tasks of a stage: their outputs are kept
	only   bool  // there are no tasks but those of its input
	copies int   // holders of the outputs
}

// callPhase is the state of a call.
type callPhase uint8

const (
	callBegins callPhase = iota
	callLooks            // for its input
	callRuns
	callKeeps // the outputs of its tasks are held by enough executors
	callEnds
)

// Call runs a node's tasks on partitions.
func (s *Stages) Call(node int, parts []int, replays bool) *StageRun {
	return &StageRun{s: s, replays: replays, anew: replays, root: newCall(node, parts)}
}

// Make computes the missing outputs of a stage.
func (s *Stages) Make(id int, replays bool) *StageRun {
	return &StageRun{s: s, replays: replays, anew: replays, root: stageCall{node: id, only: true}}
}

// Settle settles a node.
func (s *Stages) Settle(node int) *StageRun {
	return &StageRun{s: s, replays: true, anew: true, ask: StageCommand{Kind: StageSettle, Node: node}}
}

// Rerun runs the rounds of a loop again from the beginning.
func (s *Stages) Rerun(loop int) *StageRun {
	return &StageRun{s: s, anew: true, ask: StageCommand{Kind: StageRestart, Node: loop}}
}

func newCall(node int, parts []int) stageCall {
	c := stageCall{node: node, parts: parts}
	for i := range parts {
		c.left = append(c.left, i)
	}
	return c
}

// Step takes an event and returns the next command.
func (r *StageRun) Step(ev StageEvent) StageCommand {
	switch ev.Kind {
	case StageBegin, StageReplayed:
		return r.begin()
	case StageRoundLost:
		return r.roundLost()
	case StageSettled:
		return StageCommand{Kind: StageDone}
	}
	c := r.calls[len(r.calls)-1]
	switch ev.Kind {
	case StageOpened:
		r.s.open(c.reads[0], ev)
	case StageCalled:
		c.called(r.s, ev)
		if len(ev.Rest) > 0 {
			return StageCommand{Kind: StageFinish, Call: c.number, Node: c.node, Parts: c.parts, Left: ev.Rest}
		}
	case StageElsewhere:
		r.elsewhere(c)
	case StageKept:
		r.s.keep(c.node, c.parts, ev.Holders)
		c.phase, c.copies = callKeeps, 1
	case StageCopied:
		r.s.copied(c.node, c.parts, ev.Holders)
	}
	return r.next()
}

// elsewhere looks again at what a call reads, or at what the call itself was to make.
func (r *StageRun) elsewhere(c *stageCall) {
	if c.phase == callRuns && c.keeps {
		r.calls = r.calls[:len(r.calls)-1]
		c = r.calls[len(r.calls)-1]
	}
	c.made = true
}

// begin begins or restarts a run: what was computed under a lost round is dropped.
func (r *StageRun) begin() StageCommand {
	r.calls = nil
	if r.ask.Kind != StageCall {
		return r.ask
	}
	root := r.root
	r.push(&root)
	return r.next()
}

func (r *StageRun) push(c *stageCall) {
	c.number = r.numbers
	r.numbers++
	r.calls = append(r.calls, c)
}

// roundLost recomputes lost rows of loops' rounds, or gives up.
func (r *StageRun) roundLost() StageCommand {
	if !r.anew || plantedGiveUp(r.again == MaxRounds) {
		return StageCommand{Kind: StageGiveUp}
	}
	if r.again++; r.replays {
		return StageCommand{Kind: StageReplay}
	}
	return r.begin()
}

// next returns what the innermost call waits for.
func (r *StageRun) next() StageCommand {
	for {
		c := r.calls[len(r.calls)-1]
		switch cmd, wait := r.progress(c); {
		case wait:
			return cmd
		case c.phase != callEnds:
		case len(r.calls) == 1:
			return StageCommand{Kind: StageDone, Call: c.number}
		default:
			r.calls = r.calls[:len(r.calls)-1]
			above := r.calls[len(r.calls)-1]
			above.reads, above.made = above.reads[1:], true
		}
	}
}

// progress advances a call, until there is something to wait for.
func (r *StageRun) progress(c *stageCall) (cmd StageCommand, wait bool) {
	switch c.phase {
	case callBegins:
		return c.begin(r.s)
	case callLooks:
		return r.look(c)
	case callRuns:
		return StageCommand{Kind: StageCall, Call: c.number, Node: c.node, Maps: c.keeps, Parts: c.parts, Left: c.left},
			true
	case callKeeps:
		return c.keep(r.s)
	}
	return cmd, false
}

// begin begins another round of a call, if there is anything left of it.
func (c *stageCall) begin(s *Stages) (cmd StageCommand, wait bool) {
	switch {
	case c.only:
		c.lookAgain([]int{c.node})
	case len(c.left) == 0 && c.keeps:
		return StageCommand{Kind: StageKeep, Call: c.number, Node: c.node, Parts: c.parts}, true
	case len(c.left) == 0:
		c.phase = callEnds
	case plantedGiveUp(c.round == MaxRounds):
		return StageCommand{Kind: StageGiveUp, Node: c.node, Rounds: c.round, Err: c.last}, true
	default:
		c.looks = 0
		c.lookAgain(s.reads(c.node))
	}
	return cmd, false
}

func (c *stageCall) lookAgain(reads []int) {
	c.phase, c.looks, c.made, c.reads = callLooks, c.looks+1, false, reads
}

// look checks the stages that a call reads, until one must run. Once it has checked all and
// none had to run, the call can run: while the outputs of one stage are computed, those of
// another may be lost.
func (r *StageRun) look(c *stageCall) (cmd StageCommand, wait bool) {
	switch {
	case len(c.reads) > 0:
		return r.see(c, c.reads[0])
	case !c.made && c.only:
		c.phase = callEnds
	case !c.made:
		c.phase = callRuns
	case c.looks == MaxRounds:
		return StageCommand{Kind: StageGiveUp, Node: c.node, Rounds: c.looks}, true
	case c.only:
		c.lookAgain([]int{c.node})
	default:
		c.lookAgain(r.s.reads(c.node))
	}
	return cmd, false
}

// see runs the missing map tasks of a stage.
func (r *StageRun) see(c *stageCall, id int) (cmd StageCommand, wait bool) {
	if !r.s.Opened(id) {
		return StageCommand{Kind: StageOpen, Node: id}, true
	}
	missing := plantedMissing(r.s, id, r.s.Missing(id))
	switch {
	case len(missing) == 0:
		c.reads = c.reads[1:]
		if empty := len(r.s.opened[id].outputs) == 0; empty && r.s.toLook(id) { // no map task will be the last
			return StageCommand{Kind: StageLook, Node: id}, true
		}
	case plantedRound(r.s.rounds[id]):
		return r.roundLost(), true
	default:
		made := newCall(id, missing)
		made.keeps = true
		r.push(&made)
	}
	return cmd, false
}

// called takes the outcomes of a call's tasks.
func (c *stageCall) called(s *Stages, ev StageEvent) {
	again := slices.Clone(ev.Rest)
	for _, l := range ev.Lost {
		s.Lost(c.node, l.Loss)
		c.last, again = l.Err, append(again, l.At)
	}
	slices.Sort(again)
	if plantedGotOn(len(again) < len(c.left) || len(ev.Rest) > 0) {
		c.round = 0
	}
	c.round++
	c.left, c.phase = again, callBegins
}

// keep copies map outputs to the number of executors requested, and examines them when the
// stage is complete.
func (c *stageCall) keep(s *Stages) (cmd StageCommand, wait bool) {
	gone := func(m int) bool { return !s.opened[c.node].outputs[m].there }
	if c.copies < s.opened[c.node].copies && !slices.ContainsFunc(c.parts, gone) {
		c.copies++
		return StageCommand{Kind: StageCopy, Node: c.node, Parts: c.parts}, true
	}
	if c.phase = callEnds; s.toLook(c.node) {
		return StageCommand{Kind: StageLook, Node: c.node}, true
	}
	return cmd, false
}
