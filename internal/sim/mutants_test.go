//go:build mutants

package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/sim"
	"github.com/volley-engine/volley/internal/sim/drivers"
	"github.com/volley-engine/volley/internal/sim/life"
	"github.com/volley-engine/volley/internal/sim/reassigned"
	"github.com/volley-engine/volley/internal/sim/shares"
	"github.com/volley-engine/volley/internal/sim/stages"
	"github.com/volley-engine/volley/internal/sim/tables"
)

// proof is a planted bug and the oracle that it is for.
type proof struct {
	bug    mutant.Bug
	name   string
	oracle string
}

var proofs = []proof{
	{mutant.LateCountDropped, "late count dropped", "10.1"},
	{mutant.MergedTwice, "partial merged twice", "10.4"},
	{mutant.AttemptStays, "attempt of two steps", "10.4.attempt"},
	{mutant.StaleEpoch, "stale epoch accepted", "10.4.epoch"},
	{mutant.CursorStuck, "cursor stuck", "5.cursor"},
	{mutant.BelowFloor, "cut below the floor", "1.floor"},
	{mutant.MovedCountedTwice, "moved split counted at both places", "10.4"},
	{mutant.NoHashCheck, "exchange without hash check", "5.hash"},
	{mutant.UnboundedWait, "wait without a bound", "10.9"},
	{mutant.TermUnchecked, "term not checked", "10.4.term"},
	{mutant.JournalTwice, "journal applied twice", "10.1"},
	{mutant.LostCounted, "lost split counted", "10.1"},
	{mutant.UncommittedResume, "resumed from an uncommitted step", "10.1"},
	{mutant.StaleState, "state of a dropped update kept", "3.state"},
	{mutant.LeaseTwice, "lease merged twice", "6.exactly-once"},
	{mutant.TwoFetches, "two fetches of one split at a time", "fetch.once"},

	{mutant.RatioIgnored, "R_s ignored", "1.ratio"},
	{mutant.MissingIgnored, "max-missing ignored", "1.max-missing"},
	{mutant.FloorUnbounded, "floor bound at StepTimeout", "1.floor-bound"},
	{mutant.CollectUnbounded, "collecting bound at StepTimeout", "1.collecting"},
	{mutant.FloorSkipped, "floor wait skipped", "1.floor"},
	{mutant.StopUnsent, "stop never sent", "1.stop"},
	{mutant.RequestIgnored, "cut before anyone finished", "1.request"},
	{mutant.RatioOnce, "R_s looked at once", "1.stop"},
	{mutant.StopTwice, "stop sent again", "1.once"},
	{mutant.LostInRatio, "counts of the lost stay in R_p", "1.lost"},
	{mutant.CollectSkipped, "nothing is collected", "1.collecting"},
	{mutant.TerminationIgnored, "nothing left to read does not end a step", "1.termination"},
	{mutant.WholeGoesOn, "bsp goes on without what was lost", "1.whole"},
	{mutant.RecoverForgotten, "what is missing is not handed out", "10.9"},
	{mutant.RequestByReport, "any report is a request", "1.request"},
	{mutant.DroppedUncounted, "dropped rows uncounted", "1.dropped"},
	{mutant.DroppedTwice, "dropped rows counted twice", "1.dropped-once"},

	{mutant.ConstantNEff, "N_eff constant", "2.neff"},
	{mutant.NEffByAll, "N_eff by all splits", "2.neff"},
	{mutant.WeightsIgnored, "N_eff without weights", "2.neff"},
	{mutant.ShareByLive, "share of what is present", "1.share"},
	{mutant.CountUnchecked, "count not compared", "10.1"},
	{mutant.TermRemoved, "term removed", "10.4.term"},
	{mutant.AttemptOnly, "epoch not compared", "10.4.term"},
	{mutant.FetchedUnnamed, "damaged copy reported as sound", "5.hash"},
	{mutant.MissingUnnamed, "missing splits not named", "1.missing"},
	{mutant.CoverageSummed, "coverage of the last piece only", "10.1"},
	{mutant.StateForgotten, "state of a merged update dropped", "3.state"},
	{mutant.ReportHalved, "half is reported", "1.report"},
	{mutant.StopAnyStep, "a stop stops any step", "1.unasked"},
	{mutant.LimitIgnored, "batch of all rows", "2.batch"},
	{mutant.DeadlineLearned, "deadline learned once", "1.deadline"},
	{mutant.AutoStuck, "ratio never adapted", "1.auto"},

	{mutant.ExchangeAll, "every split moves every step", "5.rate"},
	{mutant.CursorCapped, "cursor does not wrap", "5.cursor"},
	{mutant.PassAdvances, "a pass advances cursors", "10.1"},
	{mutant.TimesByMost, "process times are the most", "5.times"},
	{mutant.LiteralUnthrifty, "threshold ignored", "5.literal"},
	{mutant.PaperUnguarded, "swap before the last could act", "5.paper"},
	{mutant.RateUncooled, "no cool-down", "5.rate"},
	{mutant.MoveAtOnce, "move within a step", "5.boundary"},
	{mutant.ReplicaForgotten, "replica fetched again", "5.replica"},
	{mutant.CursorMoved, "moved split starts anew", "5.cursor"},
	{mutant.FixedCursorsMove, "fixed cursors move", "5.cursor"},
	{mutant.WrongPack, "ledger of another pack", "10.1"},
	{mutant.RestoreWithoutPack, "second pack not restored", "5.cursor"},

	{mutant.LeaseEternal, "lease never expires", "6.stopped-owner"},
	{mutant.PieceForgotten, "lost piece not granted", "10.9"},
	{mutant.IncludeAll, "all pieces handed in", "6.include"},
	{mutant.LeaseRepeated, "lease folded twice", "6.include"},
	{mutant.AwaitedForEver, "answer awaited for ever", "6.stopped-owner"},
	{mutant.GetterAwaited, "copy awaited for ever", "6.stopped-getter"},

	{mutant.HolderKept, "lost executor still holds", "place.holds"},
	{mutant.RetryUnbounded, "failures not counted", "retry.limit"},
	{mutant.RetryNeverReset, "failures never forgotten", "retry.early"},
	{mutant.RetrySameAgain, "retried where it failed", "retry.elsewhere"},
	{mutant.ExclusionNever, "nobody is excluded", "exclusion.never"},
	{mutant.ExclusionForEver, "excluded for ever", "exclusion.readmit"},
	{mutant.ExcludedUsed, "excluded and used", "exclusion.used"},
	{mutant.DrainedEarly, "drained too early", "drain.empty"},
	{mutant.DrainingUsed, "draining and used", "drain.used"},
	{mutant.DrainForgotten, "drained never", "drain.ends"},
	{mutant.DrainedAway, "drained while away", "drain.unprepared"},
	{mutant.DamagedFromPeer, "damaged copy from a peer again", "5.remade"},
	{mutant.ReadyEarly, "pack open too early", "place.open"},
	{mutant.NewcomerIdle, "newcomer without splits", "place.share"},
	{mutant.ForeignPlanTaken, "foreign plan taken", "place.plan"},
	{mutant.UngatheredStart, "began before gathering", "place.gather"},
	{mutant.HoldingsMixed, "holdings of packs mixed", "place.holds"},

	{mutant.TaskCountedTwice, "task counted twice", "call.complete"},
	{mutant.TaskForgotten, "lost task not given again", "call.again"},
	{mutant.TaskOfOlderCall, "result of an older action", "call.result"},
	{mutant.TaskOverload, "all tasks at once", "call.load"},
	{mutant.SpeculateOnSame, "second attempt at the same place", "call.attempts"},
	{mutant.SpeculateAll, "every task attempted twice", "call.speculate"},
	{mutant.SpeculateNever, "no second attempts", "call.speculate"},
	{mutant.TaskRetriedAlways, "task retried without end", "call.retry"},
	{mutant.TaskRetriedNever, "task never retried", "retry.early"},
	{mutant.TaskSameExecutor, "task back where it failed", "call.avoid"},
	{mutant.LostInputRetried, "lost input fails the job", "retry.early"},
	{mutant.HolderIgnored, "tasks far from their split", "call.home"},
	{mutant.HungKept, "hung task kept", "call.hung"},
	{mutant.HungEarly, "hung task given up early", "call.speculate"},
	{mutant.HungUnwoken, "hung task not looked at", "call.hung"},
	{mutant.HungSameExecutor, "hung task back where it hangs", "call.attempts"},
	{mutant.BytesUncounted, "bytes are no progress", "call.speculate"},

	{mutant.TapeCountsLost, "counts that decided nothing not recorded", "log.decisions"},
	{mutant.TapeTicksLost, "passing of time not recorded", "log.decisions"},
	{mutant.TapePartsLost, "number of parts not recorded", "log.decisions"},

	{mutant.LifeTermStays, "term of the process before", "life.term"},
	{mutant.LifeTermForgotten, "first term after a crash", "life.term"},
	{mutant.LifeStartUnwritten, "started before it is written down", "life.term"},
	{mutant.LifeTwoProcesses, "hung process not waited for", "life.once"},
	{mutant.LifeAnySays, "end said by an earlier process", "life.end"},
	{mutant.LifeSilenceIsDone, "silence is an end", "life.end"},
	{mutant.LifeEndUnwritten, "ended and not written down", "life.end"},
	{mutant.LifeDoneResumed, "done and resumed", "life.end"},
	{mutant.LifeRestartsUncounted, "restarts not counted", "life.restarts"},
	{mutant.LifeLostBlamed, "lost driver counts as a restart", "life.restarts"},
	{mutant.LifePauseUnwoken, "never started again", "life.bounded"},
	{mutant.LifePauseShort, "pause does not grow", "life.pause"},
	{mutant.LifeCancelAwaited, "cancelled and not killed", "life.cancel"},
	{mutant.LifeCancelUnwritten, "cancelled and not written down", "life.cancelled"},
	{mutant.LifePoolIgnored, "pool runs together", "life.pool"},
	{mutant.LifeMaxJobsIgnored, "more jobs than may", "life.turn"},
	{mutant.LifeUnfair, "unfair turns", "life.turn"},

	{mutant.LeasesUnwaited, "leases of before not waited for", "drivers.once"},
	{mutant.LeaseFromAnswer, "lease counted from the answer", "drivers.once"},
	{mutant.RestartedVotes, "a driver started again votes at once", "drivers.once"},
	{mutant.IncompleteVotes, "a driver without its journal votes", "drivers.lost"},
	{mutant.CopiesUnneeded, "a copy too few suffices", "drivers.copies"},
	{mutant.OldCopiesTaken, "copies of an earlier term taken", "drivers.copies"},
	{mutant.GoesOnEarlier, "an earlier checkpoint gone on from", "drivers.committed"},
	{mutant.PastIgnored, "an earlier process's checkpoint gone on from", "drivers.committed"},
	{mutant.LeaseUnverified, "a lease extended unverified", "drivers.once"},
	{mutant.SilentIgnored, "a cluster begun without its others", "drivers.lost"},
	{mutant.AnyTermFollowed, "orders of an earlier term taken", "drivers.orders"},
	{mutant.LifeTimeoutIgnored, "timeout ignored", "life.timeout"},
	{mutant.LifeDirectoryShared, "directory of another", "life.kept"},
	{mutant.LifeUnfitAsked, "unfit and asked", "life.unfit"},
	{mutant.LifeNeverLeftAlone, "never left alone", "life.excluded"},
	{mutant.LifeLeftForEver, "left alone for ever", "life.excluded"},
	{mutant.LifeHopelessGoesOn, "hopeless and goes on", "life.hopeless"},
	{mutant.LifeAnyRunner, "end of an earlier runner", "life.runner"},
	{mutant.LifeDrainingAsked, "draining and asked", "life.drained"},
	{mutant.LifeDrainedEarly, "executor drained too early", "life.drained"},
	{mutant.LifeDrainedNever, "executor never drained", "life.drained"},
	{mutant.LifePruneAtOnce, "removed at once", "life.kept"},
	{mutant.LifeReadersIgnored, "removed while it is read", "life.kept"},
	{mutant.LifeRemoveUnwritten, "removed before it is written down", "life.kept"},
	{mutant.LifeLastStepLost, "last step lost", "life.committed"},
	{mutant.LifeBeyondForgotten, "too much taken between processes", "life.beyond"},

	{mutant.StageParentsSkipped, "call before its stages", "stage.parents"},
	{mutant.StageLossIgnored, "loss of an output ignored", "stage.there"},
	{mutant.StageCopyIgnored, "copy of an output ignored", "stage.there"},
	{mutant.StageMadeWhole, "whole stage made again", "stage.exactly"},
	{mutant.StageTriedForEver, "lost and made again without end", "stage.bounded"},
	{mutant.StageGaveUpEarly, "gave up and got on", "stage.early"},
	{mutant.StageRoundRemade, "loop's round made by its own tasks", "stage.round"},

	{mutant.SharesUnweighted, "weights ignored", "shares.weight"},
	{mutant.SharesNeverPaused, "nobody paused", "shares.slots"},
	{mutant.SharesOwedForEver, "owed for ever", "shares.wait"},
	{mutant.SharesTurnEndless, "turn without end", "shares.wait"},
	{mutant.SharesKeptForEver, "slot kept for ever", "shares.idle"},

	{mutant.TableStale, "read one clock too stale", "tables.stale"},
	{mutant.TableAhead, "worker one clock too far ahead", "tables.ahead"},
	{mutant.TableTwice, "batch that comes twice counted twice", "tables.once"},
	{mutant.TableLastFirst, "held back last, seen first", "tables.fifo"},
	{mutant.TableFlightForgotten, "what is in flight forgotten", "tables.vap"},
	{mutant.TableStrongIsWeak, "strong taken for weak", "tables.strong"},
	{mutant.TableLargeStuck, "update larger than the bound stuck", "tables.wait"},
	{mutant.TableHalfClock, "snapshot with half a clock", "tables.pure"},
	{mutant.TableEvictsLog, "eviction that loses the log", "tables.own"},
	{mutant.TableSeenEarly, "acknowledged before it is seen", "tables.vap"},
	{mutant.TableNotBack, "unfinished clock not taken back", "tables.pure"},
	{mutant.TableOwnForgotten, "own updates not seen", "tables.own"},
	{mutant.TableOlderTaken, "older value taken", "tables.vap"},
	{mutant.TableLogDropped, "logs dropped before a snapshot", "tables.wait"},
	{mutant.TableOpenEarly, "shard answers too early", "tables.vap"},
	{mutant.TableNewerSeen, "newer seen under bsp", "tables.exact"},
	{mutant.TableLossIgnored, "lost log ignored", "tables.pure"},
	{mutant.TableNotAgain, "lost batch not sent again", "tables.wait"},
	{mutant.TableTooEarly, "updates leave within their clock", "tables.early"},
	{mutant.TableOverBudget, "budget not kept to", "tables.budget"},
	{mutant.TableNoEviction, "nothing evicted", "tables.cache"},

	{mutant.HelpTakenTwice, "help taken twice", "help.once"},
	{mutant.HelpAfterCancel, "help begun after it was given back", "help.promise"},
	{mutant.HelperLossIgnored, "loss of a helper ignored", "help.wait"},
	{mutant.HelpCancelUnwaited, "range done before the helper gives it back", "help.once"},
	{mutant.HelpBeforeOwn, "help before one's own work", "help.turn"},
	{mutant.HelpCancelLost, "lost cancellation not sent again", "help.wait"},
	{mutant.HelpCompletedLost, "lost completion not sent again", "help.wait"},
	{mutant.HelpBeyondTail, "more offered than helpers hold", "help.tail"},
}

// TestEveryPlantedBugIsFound plants each bug and looks for it with the oracle
// that it is for.
func TestEveryPlantedBugIsFound(t *testing.T) {
	defer mutant.Plant(mutant.None)
	for _, p := range proofs {
		t.Run(fmt.Sprintf("%d %s", p.bug, p.name), func(t *testing.T) {
			mutant.Plant(p.bug)
			others := map[string]int{}
			for seed := uint64(1); seed <= 200; seed++ {
				vs := violations(seed, p.oracle)
				if slices.ContainsFunc(vs, func(v sim.Violation) bool { return v.Oracle == p.oracle }) {
					t.Logf("%s finds it with seed %d", p.oracle, seed)
					return
				}
				for _, v := range vs[:min(1, len(vs))] {
					others[v.Oracle]++
				}
			}
			t.Errorf("%s does not find it within 200 seeds; others: %v", p.oracle, others)
		})
	}
}

// violations are what a seed finds; a planted bug may make a machine panic.
func violations(seed uint64, oracle string) (vs []sim.Violation) {
	defer func() {
		if r := recover(); r != nil {
			vs = []sim.Violation{{Oracle: "panic", Text: fmt.Sprint(r)}}
		}
	}()
	simulate := sim.Simulate
	switch world, _, _ := strings.Cut(oracle, "."); world {
	case "life":
		simulate = life.Simulate
	case "stage":
		simulate = stages.Simulate
	case "shares":
		simulate = shares.Simulate
	case "drivers":
		simulate = drivers.Simulate
	case "tables":
		simulate = tables.Simulate
	case "help":
		simulate = reassigned.Simulate
	}
	return simulate(seed, sim.Options{Until: oracle}).Violations
}

func TestEveryBugHasAProof(t *testing.T) {
	for bug := mutant.Bug(1); int(bug) <= mutant.Count; bug++ {
		if !slices.ContainsFunc(proofs, func(p proof) bool { return p.bug == bug }) {
			t.Errorf("nothing finds bug %d", bug)
		}
	}
}
