// Package scheduler decides how tasks are scheduled, a file a decision:
//
//	stages.go       which map tasks run before a call, and what is made again of what was lost
//	tasks.go        who runs which task of a call, and what is tried again
//	locality.go     where a task runs with preference, and for whom it waits
//	speculation.go  which tasks are attempted a second time
//	placement.go    where the splits of a pack live and who folds them: replicas, epochs, attempts, retry by
//	                kind of failure, and what the loss, return or late joining of an executor means
//	leases.go       who folds which pieces of splits, for how long
//	shares.go       which job's turn it is on the slots of an executor
//
// It is pure: no I/O, goroutine, clock or randomness; every answer follows
// from the events alone. The job machine (driver), the session (rdd) and the executor's daemon tell
// it what happens and carry out what it says. It promises nothing to programs outside this module.
package scheduler
