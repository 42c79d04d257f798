package scheduler

import (
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// calls are the commands of a call's tasks: what they say is what an executor is to run.
func (s *story) calls() bool {
	t := s.tasks
	switch s.D.Cmd {
	case "executors":
		s.ex, s.now = NewExecutors(), 0
		for _, a := range s.D.CmdArgs {
			s.ex.Joined(plan.ExecutorID(a.Key), s.Number(a.Vals[0]))
			s.ex.Prepared(plan.ExecutorID(a.Key))
		}
	case "call":
		s.call()
	case "register":
		s.ex.Joined(s.Executor(), s.Int("slots", 1))
	case "look-at-executors":
		s.say("%d take part, with %d slots", s.ex.Count(), s.ex.Slots())
	case "enter":
		s.ex.Joined(s.Executor(), s.Int("slots", 1))
		s.ex.Prepared(s.Executor())
		s.gives(t.Offer(s.now))
	case "leave":
		s.ex.Lost(s.Executor())
		t.Lost(s.Executor())
		s.gives(t.Offer(s.now))
	case "ended":
		useful, cmds := t.Ended(s.Executor(), TaskEnd{Partition: s.Number(s.Arg(1)), Data: []byte(s.Arg(1)),
			Err:  s.fault(),
			Rows: int64(s.Int("rows", 0)), Busy: s.Duration("busy", 0)}, s.now)
		s.say("useful: %v", useful)
		s.gives(cmds)
	case "doing":
		_, cmds := t.Progress(s.Executor(), TaskProgress{Partition: s.Number(s.Arg(1)), Rows: int64(s.Int("rows", 0)),
			Moved: int64(s.Int("moved", 0)), Busy: s.Duration("busy", 0)}, s.now)
		s.gives(cmds)
	case "tick":
		s.gives(t.Tick(s.now))
	default:
		return false
	}
	return true
}

func (s *story) fault() error {
	if name := s.Text("fault", ""); name != "" {
		return s.FaultOf(name)
	}
	return nil
}

func (s *story) call() {
	req := TaskRequest{Tasks: s.Number(s.Arg(0)), Prefer: plan.ExecutorID(s.Text("prefer", "")),
		Holders: s.lists("holders"), Avoid: s.lists("avoid")}
	for _, p := range s.lists("partitions") {
		req.Partitions = append(req.Partitions, s.Number(p[0]))
	}
	if s.D.HasArg("splits") {
		req.Splits = s.s
	}
	cfg := TaskConfig{MaxFailures: s.Int("failures", 4), Timeout: s.Duration("timeout", 0),
		MaxWait: s.Duration("wait", 0)}
	s.tasks = NewTasks(cfg, req, s.ex)
	s.gives(s.tasks.Begin(s.now))
}

// lists are those of a list of lists: e1/e2 is one.
func (s *story) lists(key string) (out [][]string) {
	for _, a := range s.D.CmdArgs {
		if a.Key != key {
			continue
		}
		for _, v := range a.Vals {
			out = append(out, strings.FieldsFunc(v, func(r rune) bool { return r == '/' || r == '-' }))
		}
	}
	return out
}

func (s *story) gives(cmds []TaskCommand) {
	for _, c := range cmds {
		switch {
		case c.Kind == TaskGive && c.Copy:
			s.say("%s: run %d, too", c.Executor, c.Task)
		case c.Kind == TaskGive:
			s.say("%s: run %d", c.Executor, c.Task)
		case c.Kind == TaskWake:
			s.say("wake at %v", c.At)
		case c.Kind == TaskAbort:
			s.say("fail, %v: %v", fault.KindOf(c.Err), c.Err)
		case c.Kind == TaskDone:
			s.results()
		}
	}
}

func (s *story) results() {
	data, lost := s.tasks.Results()
	s.say("done")
	for i := range data {
		if lost[i] != nil {
			s.say("task %d: %v", i, lost[i])
		} else {
			s.say("task %d: %q", i, data[i])
		}
	}
}
