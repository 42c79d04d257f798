// Package scheduler decides how tasks are scheduled, one file for each decision:
//
//	stages.go       what is known of each stage's outputs; stages_run.go: which map tasks run before a call, and
//	                which lost outputs are recomputed
//	tasks.go        which executor runs which task of a call, and which are retried
//	locality.go     where a task prefers to run, and which executors it waits for
//	speculation.go  which tasks are attempted a second time
//	placement.go    which executors hold and fold the splits of a pack: replicas, epochs, attempts, retry by
//	                kind of failure (placement_failures.go), and what the loss, return or late joining of an
//	                executor means
//	speeds.go       how fast executors are, as measured
//	leases.go       the leases of a pass, and their results; leases_grant.go: which executor folds which pieces of
//	                splits, and which fetches a split
//	shares.go       which job may use the slots of an executor
//
// It is pure: no I/O, goroutine, clock or randomness; every decision follows from the events alone.
// The job machine (driver), the session (rdd) and the executor's daemon pass it events and carry
// out its decisions. It promises nothing to programs outside this module.
package scheduler
