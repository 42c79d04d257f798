package scheduler

import (
	"errors"
	"fmt"
	"testing"
)

// losing answers a run's commands. While it is bad to them, whenever map tasks of one of stages 0 and 1 are run
// the outputs of the other are lost.
type losing struct {
	s    *Stages
	run  *StageRun
	bad  int // how often yet
	seen map[int]bool
	made int
}

func newLosing() *losing {
	s := NewStages(func(node int) []int { return map[int][]int{3: {0, 1}}[node] })
	return &losing{s: s, run: s.Call(3, []int{0}, true), seen: map[int]bool{}}
}

// answer is what comes of a command on a stage.
func (l *losing) answer(c StageCommand) StageEvent {
	switch c.Kind {
	case StageOpen:
		return StageEvent{Kind: StageOpened, Tasks: 1, Copies: 1}
	case StageKeep:
		return StageEvent{Kind: StageKept, Holders: [][]string{{fmt.Sprint("e", c.Node)}}}
	case StageLook:
		return StageEvent{Kind: StageLooked}
	}
	ev := StageEvent{Kind: StageCalled}
	if l.seen[c.Call] || l.bad == 0 {
		l.made++
		return ev
	}
	l.seen[c.Call] = true
	l.bad--
	ev.Lost = []LostTask{{Loss: Loss{Holder: fmt.Sprint("e", 1-c.Node), All: true}, Err: errors.New("gone")}}
	return ev
}

// untilCall goes on to the next call of the node itself, or to the end.
func (l *losing) untilCall(ev StageEvent) StageCommand {
	c := l.run.Step(ev)
	for c.Kind != StageGiveUp && c.Kind != StageDone && (c.Kind != StageCall || c.Maps) {
		c = l.run.Step(l.answer(c))
	}
	return c
}

// TestACallGivesUpOnlyWhenNothingIsThereAtOnce: after as many looks as there may be rounds, and not where it has
// run in between.
func TestACallGivesUpOnlyWhenNothingIsThereAtOnce(t *testing.T) {
	l := newLosing()
	l.bad = 1000
	if c := l.untilCall(StageEvent{}); c.Kind != StageGiveUp || c.Node != 3 || c.Rounds != MaxRounds ||
		l.made != 2*MaxRounds {
		t.Errorf("%+v after %d", c, l.made)
	}
	l = newLosing()
	l.bad = 2 * (MaxRounds - 2) // each stage has to be made again in each look but the last two, the last finds all
	c := l.untilCall(StageEvent{})
	if c.Kind != StageCall || l.bad != 0 {
		t.Fatalf("%+v", c)
	}
	l.bad = 2 * (MaxRounds - 2)
	c = l.untilCall(StageEvent{Kind: StageCalled,
		Lost: []LostTask{{Loss: Loss{Holder: "e0", All: true}, Err: errors.New("gone")}}})
	if c.Kind != StageCall || l.bad != 0 {
		t.Errorf("it has run in between: %+v, %d left", c, l.bad)
	}
	l.bad, l.made = 1000, 0
	c = l.untilCall(StageEvent{Kind: StageCalled,
		Lost: []LostTask{{Loss: Loss{Holder: "e0", All: true}, Err: errors.New("gone")}}})
	if c.Kind != StageGiveUp || c.Rounds != MaxRounds || l.made != 2*MaxRounds {
		t.Errorf("%+v after %d", c, l.made)
	}
}

// TestWhoHandsRowsBackGetsOn, however often.
func TestWhoHandsRowsBackGetsOn(t *testing.T) {
	r := NewStages(func(int) []int { return nil }).Call(1, []int{0}, true)
	c := r.Step(StageEvent{})
	for range 3 * MaxRounds {
		if c.Kind != StageCall {
			t.Fatalf("%+v", c)
		}
		if c = r.Step(StageEvent{Kind: StageCalled, Rest: []int{0}}); c.Kind != StageFinish {
			t.Fatalf("%+v", c)
		}
		c = r.Step(StageEvent{Kind: StageFinished})
	}
}

// TestOutputsThatAreNotKnownAreNotThere: of stages that are not open, and beyond their map tasks.
func TestOutputsThatAreNotKnownAreNotThere(t *testing.T) {
	s := NewStages(func(int) []int { return nil })
	s.open(1, StageEvent{Tasks: 1, Copies: 1})
	s.keep(1, []int{0}, [][]string{{"e1"}})
	for at, want := range map[[2]int]bool{{1, 0}: true, {1, 1}: false, {2, 0}: false} {
		if holders, there := s.Holders(at[0], at[1]); there != want || (len(holders) == 1) != want {
			t.Errorf("%v: %v, %v", at, holders, there)
		}
	}
}

// TestSoManyPendingTasksAreLookedAt for one whose input an executor holds.
func TestSoManyPendingTasksAreLookedAt(t *testing.T) {
	for at, want := range map[int]int{1: 1, looked: looked, looked + 1: 0} {
		ex := NewExecutors()
		ex.Joined("e1", 1)
		ex.Prepared("e1")
		req := TaskRequest{Tasks: 2 * looked, Holders: make([][]string, 2*looked)}
		req.Holders[at] = []string{"e1"}
		if got := NewTasks(TaskConfig{}, req, ex).pick("e1"); got != want {
			t.Errorf("held is the input of %d: %d is picked", at, got)
		}
	}
}
