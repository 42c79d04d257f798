package scheduler

import (
	"maps"
	"slices"
)

// A plan falls into stages at its shuffles: whatever is computed from one reads
// the outputs of all its map tasks. Before a call runs, the stages run that it
// reads, and before these those that they read; of each the map tasks whose
// outputs are not there. Where a task finds an output gone, exactly what is lost
// is made again, and then the task.

// MaxRounds is how often what was lost is made again, while nothing gets on,
// before a call fails.
const MaxRounds = 8

// Stages are the outputs of the map tasks of a job's stages: which there are, and
// who holds them.
type Stages struct {
	reads  func(node int) []int
	opened map[int]*stage
	looked map[int]bool // stages of which all outputs have been looked at
	rounds map[int]bool // stages that hold the rows of a loop's round
}

// stage is what the map tasks of a stage have made.
type stage struct {
	outputs []output // by map task
	copies  int      // executors that are to hold each, where there are enough
}

// output is what a map task has made.
type output struct {
	there   bool
	holders []string // each has all of it; nobody, where it is a file that all executors reach
}

// NewStages knows of no outputs. Reads says which stages a node reads without
// another in between, in order.
func NewStages(reads func(node int) []int) *Stages {
	return &Stages{reads: reads, opened: map[int]*stage{}, looked: map[int]bool{}, rounds: map[int]bool{}}
}

// Opened reports whether it is known how many map tasks a stage has.
func (s *Stages) Opened(stage int) bool { return s.opened[stage] != nil }

// Holders returns the executors that hold an output; there is false where it has
// not been made, or is lost.
func (s *Stages) Holders(stage, task int) (holders []string, there bool) {
	st := s.opened[stage]
	if st == nil || task >= len(st.outputs) {
		return nil, false
	}
	return st.outputs[task].holders, st.outputs[task].there
}

// Missing returns the map tasks of a stage that has been opened whose outputs are
// not there.
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

// Drop forgets a stage: its outputs are given up.
func (s *Stages) Drop(stage int) {
	delete(s.opened, stage)
	delete(s.looked, stage)
}

// Turn puts what a stage has made into the place of a loop's rows. From now on
// these cannot be made again by map tasks of their own.
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

// Loss says that something that a task was to read is not where it should be.
type Loss struct {
	Holder string
	All    bool // the holder cannot be reached: nothing of it can be read
}

// Lost forgets what a holder held of the stages that a node reads, or all of it.
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

// lose takes a holder from an output, which is gone with its last one.
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

// keep notes what map tasks have made, and who holds it.
func (s *Stages) keep(id int, tasks []int, holders [][]string) {
	for k, m := range tasks {
		s.opened[id].outputs[m] = output{there: true, holders: holders[k]}
	}
}

// copied notes who else holds what map tasks have made.
func (s *Stages) copied(id int, tasks []int, holders [][]string) {
	for k, m := range tasks {
		o := &s.opened[id].outputs[m]
		o.holders = append(o.holders, holders[k]...)
	}
}

// toLook reports whether all outputs of a stage are there and have not been looked
// at, and notes that they are.
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
	StageFinish                          // have the rest computed that tasks have handed back: StageFinished
	StageOpen                            // settle what a stage is computed from: StageOpened
	StageKeep                            // take in what a call's map tasks have made: StageKept
	StageCopy                            // have others hold what they have made, too: StageCopied
	StageLook                            // look at what all map tasks of a stage have made: StageLooked
	StageSettle                          // settle a node: StageSettled, or StageRoundLost
	StageRestart                         // begin a loop anew: StageSettled, or StageRoundLost
	StageReplay                          // make the rounds again that have been lost: StageReplayed
	StageDone                            // the run has ended
	StageGiveUp                          // it has failed: what it reads is lost again and again
)

// StageCommand is one thing to do.
type StageCommand struct {
	Kind   StageCommandKind
	Call   int   // number of the call within the run
	Node   int   // that it computes; the stage
	Maps   bool  // its tasks are the map tasks of a stage
	Parts  []int // partitions that it computes; map tasks
	Left   []int // places in Parts: of the tasks to run, or of those that have handed rows back
	Rounds int   // how often something was lost; 0 is that of a loop's round
	Err    error // the last loss
}

// StageEventKind is what has happened.
type StageEventKind uint8

// The events of a run. StageBegin is the first. StageRoundLost says that a command
// could not be carried out since rows of a loop's round are lost.
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
)

// StageEvent is what has come of a command.
type StageEvent struct {
	Kind    StageEventKind
	Tasks   int        // StageOpened: map tasks of the stage
	Copies  int        // StageOpened: executors that are to hold each output, where there are enough
	Lost    []LostTask // StageCalled
	Rest    []int      // StageCalled: places in Parts of tasks that have handed rows back
	Holders [][]string // StageKept: by map task; StageCopied: who holds it, too
}

// LostTask is a task that did not find what it reads.
type LostTask struct {
	At   int // its place in Parts
	Loss Loss
	Err  error
}
