package driver

import "time"

// LeaseLasts is how long a job's process goes on after it has asked its driver, where that leads.
const LeaseLasts = 1200 * time.Millisecond

// LeaseEnd returns until when a process may go on that asked at a time and was answered at another, by its own clock:
// however long the answer took, it does not last longer.
func LeaseEnd(asked, answered, lasts time.Duration) time.Duration {
	return plantedLeaseEnd(asked, answered) + lasts
}

// Follows reports whether an executor that was led in a term takes orders of a driver that leads in another.
func Follows(known, term uint64) bool { return plantedFollows(term >= known) }
