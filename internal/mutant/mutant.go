// Package mutant names the bugs that the simulator can plant, so that a test
// can prove that each of them would be noticed. A configuration carries one;
// zero plants none, and nothing outside internal/sim sets another.
//
// It owns names only and must not import anything.
package mutant

// Bug is a rule of the engine that is broken on purpose.
type Bug int

// The bugs, by the numbers that the simulator's command line uses.
const (
	None              Bug = iota
	LateCountDropped      // rows folded between the stop command and its arrival are not counted
	MergedTwice           // a partial result that arrives twice is merged twice
	StaleEpoch            // a report from an older epoch is accepted
	CursorStuck           // a split's cursor does not advance after a merge
	BelowFloor            // a step is cut while a split is below the floor
	MovedCountedTwice     // a moved split is folded by its old and its new owner
	NoHashCheck           // a fetched split is taken without comparing its hash
	UnboundedWait         // a wait has no bound
	TermUnchecked         // what was done for an earlier life of the job is accepted
	JournalTwice          // what was committed before a restart is applied twice
	LostCounted           // rows of a split that was lost count as merged
	UncommittedResume     // a restarted job goes on from a step that was not committed
	StaleState            // an executor goes on from what it has of a split's state, merged or not
	LeaseTwice            // two results of one piece are merged
	TwoFetches            // a split that is on its way is fetched a second time
	bugs
)

// Count is the number of bugs.
const Count = int(bugs) - 1

var names = [bugs]string{"none", "late count dropped", "partial merged twice", "stale epoch accepted", "cursor stuck",
	"cut below the floor", "moved split counted at both places", "exchange without hash check", "wait without a bound",
	"term not checked", "journal applied twice", "lost split counted", "resumed from an uncommitted step",
	"state of a dropped update kept", "lease granted twice and merged twice",
	"two fetches of one split at a time"}

// String is the bug in words.
func (b Bug) String() string {
	if b < 0 || b >= bugs {
		return "unknown bug"
	}
	return names[b]
}
