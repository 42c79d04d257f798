package scheduler

import (
	"errors"
	"strings"
)

// plans are the commands of stages and their runs. What has come of a command is told by a name
// and what it needs; what is said is the next command.
func (s *story) plans() bool {
	switch s.D.Cmd {
	case "plan": // node=(stages that it reads)
		s.reads = map[int][]int{}
		for _, a := range s.D.CmdArgs {
			for _, v := range a.Vals {
				s.reads[s.Number(a.Key)] = append(s.reads[s.Number(a.Key)], s.Number(v))
			}
		}
		s.stages = NewStages(func(node int) []int { return s.reads[node] })
	case "run":
		s.making = s.stages.Call(s.Number(s.Arg(0)), s.numbers(1), !s.D.HasArg("once"))
		s.next(StageEvent{})
	case "make":
		s.making = s.stages.Make(s.Number(s.Arg(0)), !s.D.HasArg("once"))
		s.next(StageEvent{})
	case "settle":
		s.making = s.stages.Settle(s.Number(s.Arg(0)))
		s.next(StageEvent{})
	case "rerun":
		s.making = s.stages.Rerun(s.Number(s.Arg(0)))
		s.next(StageEvent{})
	case "dropped":
		s.stages.Drop(s.Number(s.Arg(0)))
	case "turn":
		s.stages.Turn(s.Number(s.Arg(0)), s.Number(s.Arg(1)))
	case "anew":
		s.stages.Restart(s.Number(s.Arg(0)))
	case "what":
		s.what(s.Number(s.Arg(0)))
	default:
		return s.events()
	}
	return true
}

// events are what has come of commands.
func (s *story) events() bool {
	kinds := map[string]StageEventKind{"called": StageCalled, "finished": StageFinished, "opened": StageOpened,
		"kept": StageKept, "copied": StageCopied, "looked": StageLooked, "settled": StageSettled,
		"replayed": StageReplayed, "round-lost": StageRoundLost}
	kind, known := kinds[s.D.Cmd]
	if !known {
		return false
	}
	ev := StageEvent{Kind: kind, Tasks: s.Int("tasks", 0), Copies: s.Int("copies", 1), Holders: s.lists("holders")}
	for _, p := range s.lists("rest") {
		ev.Rest = append(ev.Rest, s.Number(p[0]))
	}
	for _, l := range s.lists("lost") { // place, holder and, where it cannot be reached, a word for that
		why := errors.New(l[1] + " has it not")
		ev.Lost = append(ev.Lost, LostTask{At: s.Number(l[0]), Loss: Loss{Holder: l[1], All: len(l) > 2}, Err: why})
	}
	s.next(ev)
	return true
}

// next takes an event in and says what is to be done.
func (s *story) next(ev StageEvent) {
	c := s.making.Step(ev)
	switch c.Kind {
	case StageCall:
		of := map[bool]string{true: "map tasks of", false: "node"}[c.Maps]
		s.say("run %s %d: places %v of %v (call %d)", of, c.Node, c.Left, c.Parts, c.Call)
	case StageFinish:
		s.say("finish node %d: places %v of %v", c.Node, c.Left, c.Parts)
	case StageGiveUp:
		s.say("give up node %d after %d rounds: %v", c.Node, c.Rounds, c.Err)
	case StageKeep, StageCopy:
		s.say("%s %d: %v", stageWords[c.Kind], c.Node, c.Parts)
	case StageReplay, StageDone:
		s.say("%s", stageWords[c.Kind])
	default:
		s.say("%s %d", stageWords[c.Kind], c.Node)
	}
}

var stageWords = map[StageCommandKind]string{StageOpen: "open", StageKeep: "keep", StageCopy: "copy",
	StageLook:   "look at",
	StageSettle: "settle", StageRestart: "restart", StageReplay: "replay", StageDone: "done"}

// what says what there is of a stage.
func (s *story) what(stage int) {
	s.say("opened %v, missing %v, lost rounds %v", s.stages.Opened(stage), s.stages.Missing(stage),
		s.stages.LostRounds())
	for m := 0; s.stages.Opened(stage) && m < len(s.stages.opened[stage].outputs); m++ {
		holders, there := s.stages.Holders(stage, m)
		s.say("  %d: %v, held by %s", m, there, strings.Join(holders, " "))
	}
}
