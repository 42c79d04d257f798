// Package scheduler decides where the splits of a job live and who folds
// them: placement, replicas, epochs and attempts, retry by kind of failure,
// and what the loss, return or late joining of an executor means.
//
// It is pure: no I/O, goroutine, clock or randomness; every answer follows
// from the events alone. It promises nothing to programs outside this module.
package scheduler
