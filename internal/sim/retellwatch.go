package sim

import (
	"fmt"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
)

// retellWatch replays the job's recorded events to another job, and holds that it
// decides the same: what verify goes by.
type retellWatch struct {
	s     *Sim
	again *driver.Retelling
	lost  bool // a step had more reports than are kept
}

func newRetellWatch(s *Sim) *retellWatch {
	w := &retellWatch{s: s, again: driver.NewRetelling(s.cfg, false)}
	for _, p := range s.packs {
		info := p.info()
		w.again.Describe(info.Rows, info.Weights, info.Entries)
	}
	return w
}

// stepDone compares a step's report with what its reports give.
func (w *retellWatch) stepDone(r *driver.StepReport) {
	if w.lost = w.lost || !r.Kept; w.lost {
		return
	}
	steps, err := w.again.Tell(r.Reports)
	if err != nil {
		w.s.violate("log.decisions", "step %d: %v", r.Number, err)
		w.lost = true
		return
	}
	if want, got := described(r), described(steps[len(steps)-1]); got != want {
		w.s.violate("log.decisions", "step %d came to\n%s\nwhat the job was told gives\n%s", r.Number, want, got)
		w.lost = true
	}
}

// described returns all that a log says of a step's decisions.
func described(r *driver.StepReport) string {
	if !r.Train {
		return fmt.Sprintf("%+v", *driver.EvaluationLine(r, plan.Digest{}))
	}
	return fmt.Sprintf("%+v", *driver.StepLine(r))
}
