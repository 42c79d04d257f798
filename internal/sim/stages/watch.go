package stages

import (
	"errors"
	"slices"

	"github.com/volley-engine/volley/scheduler"
)

var errLost = errors.New("it is lost")

// watch holds what the stages decide against what a session knows: what has been made, what was
// said to be lost, and what is left to do.
type watch struct {
	w      *world
	opened map[int]bool
	looked map[int]bool
	rounds map[int]bool
	there  map[output][]string // the holders of what is there
	by     map[output]string   // the executor that made it last
}

func newWatch(w *world) watch {
	return watch{w: w, opened: map[int]bool{}, looked: map[int]bool{}, rounds: map[int]bool{},
		there: map[output][]string{}, by: map[output]string{}}
}

// seen is what was seen of a run.
type seen struct {
	want     want
	left     map[int][]int // of its calls
	idle     map[int]int   // how often nothing of them got on, one after the other
	kept     int
	replays  int
	copies   int
	commands int
}

func (t *watch) begin(of want) *seen {
	return &seen{want: of, left: map[int][]int{}, idle: map[int]int{}}
}

func (t *watch) dropped(stage int) {
	delete(t.opened, stage)
	delete(t.looked, stage)
	for m := range t.w.nodes[stage].tasks {
		delete(t.there, output{stage, m})
	}
}

func (t *watch) turned(now, next int) {
	t.opened[now], t.rounds[now] = t.opened[next], true
	for m := range t.w.nodes[now].tasks {
		t.there[output{now, m}] = t.there[output{next, m}]
		delete(t.there, output{next, m})
	}
	delete(t.opened, next)
}

func (t *watch) lost(node int, l scheduler.Loss) {
	for o, holders := range t.there {
		if !l.All && !slices.Contains(t.w.nodes[node].reads, o.stage) || !slices.Contains(holders, l.Holder) {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(holders), func(h string) bool { return h == l.Holder })
		if t.there[o] = left; len(left) == 0 {
			delete(t.there, o)
		}
	}
}

// missing returns the outputs of a stage that are not there.
func (t *watch) missing(stage int) (tasks []int) {
	for m := range t.w.nodes[stage].tasks {
		if _, there := t.there[output{stage, m}]; !there {
			tasks = append(tasks, m)
		}
	}
	return tasks
}

// before takes in what has come of a command, before the stages do.
func (t *watch) before(s *seen, cmd scheduler.StageCommand, ev scheduler.StageEvent) {
	switch ev.Kind {
	case scheduler.StageOpened:
		t.opened[cmd.Node] = true
	case scheduler.StageCalled:
		again := slices.Clone(ev.Rest)
		for _, l := range ev.Lost {
			t.lost(cmd.Node, l.Loss)
			again = append(again, l.At)
		}
		slices.Sort(again)
		if s.idle[cmd.Call]++; len(again) < len(cmd.Left) || len(ev.Rest) > 0 {
			s.idle[cmd.Call] = 0
		}
		s.left[cmd.Call] = again
	case scheduler.StageKept:
		s.kept, s.copies = s.kept+1, 1
		for k, m := range cmd.Parts {
			t.there[output{cmd.Node, m}] = ev.Holders[k]
		}
	case scheduler.StageCopied:
		for k, m := range cmd.Parts {
			o := output{cmd.Node, m}
			t.there[o] = append(slices.Clone(t.there[o]), ev.Holders[k]...)
		}
	case scheduler.StageReplayed:
		clear(s.left)
	}
}

// most is how many commands a run may take.
const most = 20_000

// after holds a command against what is known.
func (t *watch) after(s *seen, cmd scheduler.StageCommand) {
	if s.commands++; s.commands > most {
		t.w.violate("stage.bounded", "a run goes on after %d commands", most)
		t.w.over = true
	}
	t.agree()
	switch cmd.Kind {
	case scheduler.StageCall:
		t.call(s, cmd)
	case scheduler.StageOpen:
		if t.opened[cmd.Node] {
			t.w.violate("stage.open", "stage %d is opened again", cmd.Node)
		}
	case scheduler.StageCopy:
		if s.copies++; s.copies > t.w.nodes[cmd.Node].copies {
			t.w.violate("stage.copies", "outputs of stage %d are copied to %d executors", cmd.Node, s.copies)
		}
	case scheduler.StageLook:
		if t.looked[cmd.Node] || len(t.missing(cmd.Node)) > 0 {
			t.w.violate("stage.look", "stage %d is looked at again, or without its tasks %v", cmd.Node,
				t.missing(cmd.Node))
		}
		t.looked[cmd.Node] = true
	case scheduler.StageReplay:
		if s.replays++; s.replays > scheduler.MaxRounds || !s.want.replays {
			t.w.violate("stage.bounded", "rounds are made again %d times", s.replays)
		}
	case scheduler.StageGiveUp:
		t.gaveUp(s, cmd)
	case scheduler.StageDone:
		t.done(s, cmd)
	}
}

// agree compares what there is.
func (t *watch) agree() {
	for stage := range t.w.nodes {
		if !t.opened[stage] || !t.w.stages.Opened(stage) {
			continue
		}
		for m := range t.w.nodes[stage].tasks {
			holders, there := t.w.stages.Holders(stage, m)
			want, should := t.there[output{stage, m}]
			if there != should || there && !slices.Equal(holders, want) {
				t.w.violate("stage.there", "output %d of stage %d: %v held by %v, it should be %v, %v",
					m, stage, there, holders, should, want)
				return
			}
		}
	}
}

// call holds a call: what it reads is there, and it is of what is left, and of nothing that is
// there.
func (t *watch) call(s *seen, cmd scheduler.StageCommand) {
	for _, in := range t.w.nodes[cmd.Node].reads {
		if !t.opened[in] || len(t.missing(in)) > 0 {
			t.w.violate("stage.parents", "node %d runs, and tasks %v of stage %d have not", cmd.Node, t.missing(in), in)
		}
	}
	left, again := s.left[cmd.Call]
	switch {
	case again && !slices.Equal(left, cmd.Left):
		t.w.violate("stage.again", "of call %d %v is left, and %v is run", cmd.Call, left, cmd.Left)
	case !again && len(cmd.Left) != len(cmd.Parts):
		t.w.violate("stage.again", "of call %d nothing has run, and %v is run", cmd.Call, cmd.Left)
	case !again && cmd.Maps && !within(cmd.Parts, t.missing(cmd.Node)):
		t.w.violate("stage.exactly", "of stage %d %v is missing, and %v is made", cmd.Node, t.missing(cmd.Node),
			cmd.Parts)
	case cmd.Maps && t.rounds[cmd.Node]:
		t.w.violate("stage.round", "stage %d holds a loop's round, and its own tasks are run", cmd.Node)
	case s.idle[cmd.Call] >= scheduler.MaxRounds:
		t.w.violate("stage.bounded", "call %d of node %d is run again after %d times in vain", cmd.Call, cmd.Node,
			s.idle[cmd.Call])
	}
}

// gaveUp holds that something was lost often enough.
func (t *watch) gaveUp(s *seen, cmd scheduler.StageCommand) {
	switch {
	case cmd.Rounds == 0 && s.want.replays && s.replays < scheduler.MaxRounds:
		t.w.violate("stage.early", "a round was made again %d times", s.replays)
	case cmd.Rounds == 0:
	case cmd.Err == nil && s.kept < scheduler.MaxRounds:
		t.w.violate("stage.early", "what a call reads was made %d times", s.kept)
	case cmd.Err != nil && !slices.ContainsFunc(inOrder(s.idle),
		func(n int) bool { return n >= scheduler.MaxRounds-1 }):
		t.w.violate("stage.early", "node %d gives up, and its calls got on", cmd.Node)
	}
}

// within reports whether all of some tasks are among others. While what they read is made,
// more may be lost.
func within(some, of []int) bool {
	return !slices.ContainsFunc(some, func(m int) bool { return !slices.Contains(of, m) })
}

func inOrder(counts map[int]int) (out []int) {
	for _, n := range counts {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// done holds that what was asked for has been done.
func (t *watch) done(s *seen, cmd scheduler.StageCommand) {
	if s.want.node < 0 {
		return
	}
	left, ran := s.left[cmd.Call]
	switch {
	case s.want.call && (len(left) > 0 || !ran && len(s.want.parts) > 0):
		t.w.violate("stage.complete", "node %d is done, and %v is left", s.want.node, left)
	case !s.want.call && len(t.missing(s.want.node)) > 0:
		t.w.violate("stage.complete", "stage %d is made, and %v is missing", s.want.node, t.missing(s.want.node))
	}
}
