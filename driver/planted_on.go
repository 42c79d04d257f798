//go:build mutants

package driver

import (
	"slices"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// The bugs that the simulator can plant in what this package decides.

func plantedCall(j *Job, c *call) *call {
	if c == nil && len(j.open) > 0 && mutant.On(mutant.TaskOfOlderCall) {
		return j.open[0]
	}
	return c
}

func plantedCursor(a *plan.Assignment, changed []plan.SplitID) {
	if mutant.On(mutant.CursorMoved) && slices.Contains(changed, a.Split) {
		a.Cursor = 0
	}
}

func plantedTwice(j *Job, p *pack, moved []plan.SplitID) {
	if !mutant.On(mutant.MovedCountedTwice) {
		return
	}
	for _, i := range moved {
		for e, id := range p.sched.Executors() {
			if e != p.sched.OwnerIndex(i) && p.sched.Holds(i, e) && j.executors.Present(id) {
				j.start(id, p, []plan.Assignment{j.step.assigned[i]}, 0, j.step.began)
				break
			}
		}
	}
}

func plantedLimit(limited bool) bool { return limited && !mutant.On(mutant.LimitIgnored) }

func plantedStale(j *Job) bool {
	return j.step != nil && j.step.leases == nil && mutant.On(mutant.StaleEpoch)
}

func plantedStop(j *Job) {
	if mutant.On(mutant.StopTwice) && j.step.ctrl.Stats().Cut {
		j.stopAll()
	}
}

func plantedCount(cov *plan.Coverage, seen int64) {
	if mutant.On(mutant.LateCountDropped) {
		cov.Count = min(cov.Count, seen)
	}
}

func plantedOfStep(of bool) bool {
	return of || mutant.On(mutant.StaleEpoch) || mutant.On(mutant.TermUnchecked)
}

// earlier reports whether a coverage of an earlier life of the job is to be accepted.
func earlier(j *Job, c *wire.Coverage) bool {
	return mutant.On(mutant.TermUnchecked) && plan.Epoch(c.Epoch) < j.term()
}

func plantedCurrent(j *Job, c *wire.Coverage, current bool) bool { return current || earlier(j, c) }

func plantedWanted(j *Job, c *wire.Coverage, wanted bool) bool {
	return wanted || mutant.On(mutant.MergedTwice) || mutant.On(mutant.MovedCountedTwice) || earlier(j, c)
}

func plantedUncounted(leased bool) bool { return leased || mutant.On(mutant.DroppedUncounted) }

func plantedDropped(more, rows int64) int64 {
	if mutant.On(mutant.DroppedTwice) {
		return rows
	}
	return more
}

func plantedMismatch(other bool) bool { return other && !mutant.On(mutant.CountUnchecked) }

func plantedLost(s *step, i plan.SplitID, now plan.Time) bool {
	if !mutant.On(mutant.LostCounted) || s.seen[i] == 0 {
		return false
	}
	a := s.assigned[i]
	s.coverage[i] = &plan.Coverage{Split: i, Attempt: a.Attempt, Epoch: a.Epoch, Cursor: a.Cursor, Count: s.seen[i],
		Folded: s.seen[i]}
	s.ctrl.Note(abss.Event{Kind: abss.Arrived, Split: i, Count: s.seen[i]}, now)
	return true
}

func plantedRecovers() bool { return !mutant.On(mutant.RecoverForgotten) }

func plantedSent() bool { return !mutant.On(mutant.StopUnsent) }

func plantedAdvances(train bool) bool { return train || mutant.On(mutant.PassAdvances) }

func plantedReport(r *StepReport, s *step) {
	if mutant.On(mutant.ConstantNEff) {
		r.NEff = float64(len(s.coverage)) * 1000
	}
	if mutant.On(mutant.MissingUnnamed) {
		r.Missing = nil
	}
}

func plantedPack(j *Job, p *pack) *pack {
	if mutant.On(mutant.WrongPack) {
		return j.packs[0]
	}
	return p
}

func plantedLeftOut() bool { return mutant.On(mutant.ShareByLive) }

func plantedThere(there bool) bool { return there || mutant.On(mutant.NEffByAll) }

func plantedLearned(p *pack) bool { return p.learned > 0 && mutant.On(mutant.DeadlineLearned) }

func plantedResume(j *Job, r *Restored, packID int) {
	p := j.packs[packID]
	if mutant.On(mutant.UncommittedResume) && j.step != nil && j.step.req.Train && j.step.req.Pack == packID {
		for i, n := range j.step.seen {
			r.Entries[i].Merged += n
			r.Entries[i].Cursor = r.Entries[i].Merged % max(1, p.info.Rows[i])
		}
	}
}

func plantedCursors(move bool) bool { return move || mutant.On(mutant.FixedCursorsMove) }

func plantedHeld(j *Job, from plan.ExecutorID, split plan.SplitID) {
	for _, o := range j.packs {
		if mutant.On(mutant.HoldingsMixed) && int(split) < len(o.info.Rows) {
			o.sched.Held(from, split)
		}
	}
}

func plantedAway(j *Job, id plan.ExecutorID) {
	if !j.executors.Present(id) && mutant.On(mutant.DrainedAway) {
		delete(j.draining, id)
		j.emit(Command{Drained: id})
	}
}

func plantedDrains() bool { return !mutant.On(mutant.DrainForgotten) }

func plantedTerm(term plan.Epoch) plan.Epoch {
	if mutant.On(mutant.TermRemoved) {
		return 0
	}
	return term
}

func plantedUnrestored(pack int) bool { return pack > 0 && mutant.On(mutant.RestoreWithoutPack) }

func plantedJournal(p *pack, r *Restored) {
	if mutant.On(mutant.JournalTwice) {
		for i, e := range r.Entries {
			p.ledger.Merge(plan.SplitID(i), e.Merged)
		}
	}
}

func plantedFolded(cov *plan.Coverage) {
	if mutant.On(mutant.CoverageSummed) {
		cov.Folded = 0
	}
}

func plantedKept(merged bool) bool { return merged && !mutant.On(mutant.StateForgotten) }

func plantedWeighted(weighted bool) bool { return weighted && !mutant.On(mutant.WeightsIgnored) }

func plantedAdapts(auto bool) bool { return auto && !mutant.On(mutant.AutoStuck) }

func plantedForeign(foreign bool) bool { return foreign && !mutant.On(mutant.ForeignPlanTaken) }

func plantedGathered(gathered bool) bool { return gathered || mutant.On(mutant.UngatheredStart) }

func plantedTicks() bool { return mutant.On(mutant.TapeTicksLost) }

func plantedParts(n uint64) uint64 {
	if mutant.On(mutant.TapePartsLost) {
		return min(n, 1)
	}
	return n
}

func plantedCounts() bool { return mutant.On(mutant.TapeCountsLost) }

func plantedLeaseEnd(asked, answered time.Duration) time.Duration {
	if mutant.On(mutant.LeaseFromAnswer) {
		return answered
	}
	return asked
}

func plantedFollows(follows bool) bool { return follows || mutant.On(mutant.AnyTermFollowed) }
