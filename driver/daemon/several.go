package daemon

import (
	"time"

	"github.com/volley-engine/volley/driver"
)

// What several drivers decide together is here, without I/O: the simulator has it decide about drivers whose clocks,
// disks and links fail (internal/sim/drivers).

// A job's process goes on for driver.LeaseLasts after it has asked, where its driver led since then: a majority of the
// drivers has said so. Who leads next waits until the leases of the one before are over: it was elected ElectionLeast
// after any of that majority last heard of the other, or later. Of two clocks the faster may gain a tenth; where they
// run apart by more, the journal still takes nothing of the process before, nor do runners that the next one has taken
// over.
const (
	// ElectionLeast is the silence of the driver that leads before which no other is elected, and how long a driver
	// leads that reaches no majority.
	ElectionLeast = 500 * time.Millisecond
	drift         = 10 // parts: the faster of two clocks may gain one of them
)

// LeasesOver returns how long a driver that was elected waits for the processes of the one before to be over.
func LeasesOver() time.Duration {
	return plantedLeases(driver.LeaseLasts + driver.LeaseLasts/drift - ElectionLeast)
}

// Extends reports whether a driver that led at a time may extend the lease of a process that had asked at another, both
// by the driver's clock.
func Extends(led, asked time.Duration) bool { return plantedExtends(led >= asked) }

// VotesAfter returns how long after its start a driver gives its vote, and reports whether it ever does. One that has
// lost its journal may have confirmed what it does not have any more. One that has been one of a cluster does not
// remember when it last heard of the driver that leads, whose processes may go on for as long as their leases last.
func VotesAfter(incomplete, known bool) (after time.Duration, votes bool) {
	switch {
	case plantedVotes(incomplete):
		return 0, false
	case known:
		return plantedRestarted(driver.LeaseLasts + driver.LeaseLasts/drift), true
	}
	return 0, true
}

// CopiesSuffice reports whether files are on the disks of a majority: this driver's, and those of some of the others.
func CopiesSuffice(have, others int) bool { return plantedCopies(have)+1 > (others+1)/2 }

// TakesCopies reports whether a driver that knows of a term takes copies of one that led in another.
func TakesCopies(known, led uint64) bool { return plantedOldCopies(led >= known) }

// Place is how far a job has come: the process that has written a checkpoint, and the checkpoint.
type Place struct {
	Process    uint32 `json:"process"` // counts those of the job
	Checkpoint string `json:"checkpoint"`
}

// GoesOn reports whether a job may go on from a checkpoint where another was committed: a later one of the same
// process, or one of a later process, which went on from what was committed. What an earlier process has written beyond
// that is of another past.
func GoesOn(from, committed Place) bool {
	switch {
	case from.Process != committed.Process && !plantedPast():
		return plantedGoesOn(from.Process > committed.Process)
	}
	return plantedGoesOn(from.Checkpoint >= committed.Checkpoint)
}

// Beginning is what a driver does about its journal when it is started.
type Beginning uint8

// A driver opens the journal that it has, begins one with the others, has it brought from them, or waits for those that
// do not answer.
const (
	OpenJournal Beginning = iota
	BeginJournal
	BringJournal
	WaitForOthers
)

// Begins returns what a driver of several does whose journal is there or not, who is marked to have had one, or to lack
// what it had; others are of a cluster that is, or silent.
func Begins(journal, founded, incomplete, there bool, silent int) Beginning {
	switch {
	case incomplete:
		return BringJournal
	case journal:
		return OpenJournal
	case founded, there:
		return BringJournal
	case plantedSilent(silent) > 0:
		return WaitForOthers
	}
	return BeginJournal
}

// ascendWait returns how long a driver that was elected and cannot lead waits before it hands over, by how often in a
// row it could not before: not at all the first time, and up to half a minute.
func ascendWait(failed int) time.Duration {
	if failed == 0 {
		return 0
	}
	return min(time.Second<<min(failed-1, 5), 30*time.Second)
}
