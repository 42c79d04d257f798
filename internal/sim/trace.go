package sim

import (
	"fmt"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
)

// trace prints an event and the job's commands.
func (s *Sim) trace(ev driver.Event, cmds []driver.Command, now plan.Time) {
	if s.opt.Trace == nil {
		return
	}
	line := fmt.Sprintf("%v step %d life %d:", now, s.result.Steps, s.cfg.Life)
	switch {
	case ev.Joined != nil:
		line += " joined " + string(ev.Joined.Executor)
	case ev.Lost != nil:
		line += " lost " + string(ev.Lost.Executor)
	case ev.Message != nil:
		line += fmt.Sprintf(" %s says %v", ev.Message.From, ev.Message.Body)
	case ev.Step != nil:
		line += fmt.Sprintf(" step, train %v, pack %d", ev.Step.Train, ev.Step.Pack)
	case ev.Drain != "":
		line += " drain " + string(ev.Drain)
	case ev.Call != nil:
		line += fmt.Sprintf(" action of %d tasks", len(ev.Call.Args))
	}
	s.opt.Trace(line)
	for _, c := range cmds {
		switch {
		case c.Send != nil:
			s.opt.Trace(fmt.Sprintf("    to %s: %v", c.Send.To, c.Send.Body))
		case c.StepDone != nil:
			s.opt.Trace(fmt.Sprintf("    done: missing %v, moves %v, %+v", c.StepDone.Missing, c.StepDone.Moves,
				c.StepDone.Stats))
		case c.WakeAt == 0:
			s.opt.Trace(fmt.Sprintf("    %+v", c))
		}
	}
}
