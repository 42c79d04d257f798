package scheduler

import (
	"maps"
	"slices"
)

// Shuffles divide a plan into stages: what is computed from a shuffle reads the
// outputs of all its map tasks. Before a call, the stages that it reads run, and
// before these the stages that they read: of each, the map tasks whose outputs
// are missing. Where a task cannot read an output, exactly the lost map tasks
// run again, and then the task.

// MaxRounds is how often lost outputs are recomputed without progress before a
// call fails.
const MaxRounds = 8

// Stages tracks the map outputs of a job's stages: which exist, and which
// executors hold them.
type Stages struct {
	reads  func(node int) []int
	opened map[int]*stage
	looked map[int]bool // stages all of whose outputs have been examined
	rounds map[int]bool // stages that hold the rows of a loop's round
}

// stage is the outputs of a stage's map tasks.
type stage struct {
	outputs []output // by map task
	copies  int      // number of executors to hold each, where there are enough
}

// output is what a map task has written.
type output struct {
	there   bool
	holders []string // each has all of it; none, where it is a file that all executors can read
}

// NewStages returns stages without outputs. Reads returns the stages that a
// node reads directly, in order.
func NewStages(reads func(node int) []int) *Stages {
	return &Stages{reads: reads, opened: map[int]*stage{}, looked: map[int]bool{}, rounds: map[int]bool{}}
}

// Opened reports whether the number of a stage's map tasks is known.
func (s *Stages) Opened(stage int) bool { return s.opened[stage] != nil }

// Holders returns the executors that hold an output; there is false where it has
// not been computed, or is lost.
func (s *Stages) Holders(stage, task int) (holders []string, there bool) {
	st := s.opened[stage]
	if st == nil || task >= len(st.outputs) {
		return nil, false
	}
	return st.outputs[task].holders, st.outputs[task].there
}

// Missing returns the map tasks of an opened stage whose outputs are missing.
func (s *Stages) Missing(stage int) (tasks []int) {
	st := s.opened[stage]
	if st == nil {
		return nil
	}
	for m, o := range st.outputs {
		if !o.there {
			tasks = append(tasks, m)
		}
	}
	return tasks
}

// Drop removes a stage and its outputs.
func (s *Stages) Drop(stage int) {
	delete(s.opened, stage)
	delete(s.looked, stage)
}

// Turn makes the outputs of a stage the rows of a loop's round. From now on
// they cannot be recomputed by map tasks alone.
func (s *Stages) Turn(loop, made int) {
	s.opened[loop], s.rounds[loop] = s.opened[made], true
	delete(s.opened, made)
}

// Restart notes that a loop begins anew.
func (s *Stages) Restart(loop int) { delete(s.rounds, loop) }

// LostRounds returns the loops that have lost rows of their round, in order.
func (s *Stages) LostRounds() []int {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.rounds)),
		func(loop int) bool { return len(s.Missing(loop)) == 0 })
}

// Loss is the loss of an output that a task was to read.
type Loss struct {
	Holder string
	All    bool // the holder cannot be reached: nothing of it can be read
}

// Lost removes a holder's outputs of the stages that a node reads, or all of its outputs.
func (s *Stages) Lost(node int, l Loss) {
	of := s.reads(node)
	for _, id := range slices.Sorted(maps.Keys(s.opened)) {
		if !l.All && !slices.Contains(of, id) {
			continue
		}
		for m := range s.opened[id].outputs {
			s.opened[id].outputs[m].lose(l.Holder)
		}
	}
}

// lose removes a holder of an output, which is lost with its last one.
func (o *output) lose(holder string) {
	if !o.there || !slices.Contains(o.holders, holder) {
		return
	}
	o.holders = slices.DeleteFunc(slices.Clone(o.holders), func(h string) bool { return h == holder })
	o.there = plantedThere(len(o.holders) > 0)
}

// open notes how many map tasks a stage has.
func (s *Stages) open(id int, ev StageEvent) {
	s.opened[id] = &stage{outputs: make([]output, ev.Tasks), copies: ev.Copies}
}

// keep records the outputs of map tasks, and their holders.
func (s *Stages) keep(id int, tasks []int, holders [][]string) {
	for k, m := range tasks {
		s.opened[id].outputs[m] = output{there: true, holders: holders[k]}
	}
}

// copied records further holders of outputs.
func (s *Stages) copied(id int, tasks []int, holders [][]string) {
	for k, m := range tasks {
		o := &s.opened[id].outputs[m]
		o.holders = append(o.holders, holders[k]...)
	}
}

// toLook reports whether all outputs of a stage are there and not examined yet,
// and marks them examined.
func (s *Stages) toLook(id int) bool {
	if s.looked[id] || len(s.Missing(id)) > 0 {
		return false
	}
	s.looked[id] = true
	return true
}

// StageCommandKind is what a session is to do for a run.
type StageCommandKind uint8

// The commands of a run, each of which is answered by the event beside it.
const (
	StageCall    StageCommandKind = iota // run what is left of a call's tasks: StageCalled
	StageFinish                          // compute the rest that tasks have handed back: StageFinished
	StageOpen                            // determine the inputs of a stage: StageOpened
	StageKeep                            // keep the outputs of a call's map tasks: StageKept
	StageCopy                            // copy the outputs to others: StageCopied
	StageLook                            // examine the outputs of all map tasks of a stage: StageLooked
	StageSettle                          // settle a node: StageSettled, or StageRoundLost
	StageRestart                         // restart a loop: StageSettled, or StageRoundLost
	StageReplay                          // recompute the lost rounds: StageReplayed
	StageDone                            // the run has ended
	StageGiveUp                          // it has failed: its input is lost again and again
)

// StageCommand is one thing to do.
type StageCommand struct {
	Kind   StageCommandKind
	Call   int   // number of the call within the run
	Node   int   // that it computes; the stage
	Maps   bool  // its tasks are the map tasks of a stage
	Parts  []int // partitions that it computes; map tasks
	Left   []int // indexes into Parts: of the tasks to run, or of those that have handed rows back
	Rounds int   // how often something was lost; 0 is that of a loop's round
	Err    error // the last loss
}

// StageEventKind is what has happened.
type StageEventKind uint8

// The events of a run. StageBegin is the first. StageRoundLost means that a
// command could not be carried out since rows of a loop's round are lost; StageElsewhere, that it was not,
// since another run has opened the stage meanwhile, or run its map tasks.
const (
	StageBegin StageEventKind = iota
	StageCalled
	StageFinished
	StageOpened
	StageKept
	StageCopied
	StageLooked
	StageSettled
	StageReplayed
	StageRoundLost
	StageElsewhere
)

// StageEvent is the outcome of a command.
type StageEvent struct {
	Kind    StageEventKind
	Tasks   int        // StageOpened: map tasks of the stage
	Copies  int        // StageOpened: number of executors to hold each output, where there are enough
	Lost    []LostTask // StageCalled
	Rest    []int      // StageCalled: indexes into Parts of tasks that have handed rows back
	Holders [][]string // StageKept: by map task; StageCopied: further holders
}

// LostTask is a task that could not read its input.
type LostTask struct {
	At   int // its index in Parts
	Loss Loss
	Err  error
}
