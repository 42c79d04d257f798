package scheduler

import (
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// Failed applies the policy of a failure's kind: retry elsewhere, exclude the
// executor, or fail the job.
func (s *State) Failed(id plan.ExecutorID, i plan.SplitID, err error) []Command {
	s.changed()
	policy := fault.Policy(fault.KindOf(err))
	sp := &s.splits[i]
	if plantedCharged(policy.ChargeTask) {
		sp.failures++
	}
	if !policy.Retry || sp.failures >= s.cfg.MaxTaskFailures {
		return []Command{{Kind: Abort, Split: i, Executor: id, Err: err}}
	}
	e, ok := s.byID[id]
	if !ok {
		return nil
	}
	if sp.next == e && fault.KindOf(err) == fault.Corrupt && !sp.damaged {
		sp.damaged = true
		if s.usable(e) { // the damaged copy was not its fault: it rebuilds the split itself
			return []Command{s.hold(int(i), e)}
		}
	}
	sp.avoid = plantedAvoided(e)
	if policy.Remake {
		delete(sp.holders, e)
	}
	if sp.next == e {
		sp.next = -1
	}
	if sp.owner == e && (policy.Remake || policy.ChargeExecutor) {
		sp.owner = -1
	}
	return s.placeOrphans()
}

// Charge counts a failure against an executor, once, however many splits the
// failure touched. One that fails too often is excluded for a while, unless it
// is the last; Charge reports whether it now is.
func (s *State) Charge(id plan.ExecutorID, err error, now plan.Time) bool {
	e, ok := s.byID[id]
	if !ok || s.executors[e].excluded || !fault.Policy(fault.KindOf(err)).ChargeExecutor {
		return false
	}
	x := s.executors[e]
	x.failures++
	others := 0
	for k := range s.executors {
		if k != e && s.usable(k) {
			others++
		}
	}
	if !plantedExcluded(others > 0 && x.failures >= s.cfg.MaxExecutorFailures) {
		return false
	}
	x.excluded, x.until = true, now+s.cfg.Exclusion<<min(x.terms, maxDoublings)
	x.terms++
	return true
}

// maxDoublings bounds how long an executor can be excluded.
const maxDoublings = 6

// Readmit ends the exclusion of executors whose time is over, and gives them
// splits like new ones.
func (s *State) Readmit(now plan.Time) (ids []plan.ExecutorID, out []Command) {
	for i, x := range s.executors {
		if !x.excluded || !plantedReadmitted(now >= x.until) {
			continue
		}
		x.excluded, x.failures = false, 0
		ids = append(ids, x.id)
		if s.usable(i) && s.placed {
			out = append(out, s.rebalanceTo(i)...)
		}
	}
	return ids, out
}

// Excluded reports whether an executor gets no work because of its failures.
func (s *State) Excluded(id plan.ExecutorID) bool {
	e, ok := s.byID[id]
	return ok && s.executors[e].excluded
}
