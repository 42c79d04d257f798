// Package driver owns the life of jobs: the pure job machine that takes a job
// from its executors' joining through packs, steps and actions to its end,
// the shell that carries its decisions out, the journal of committed steps,
// and the event log.
//
// The job machine (Job) does no I/O, starts no goroutine and reads no clock.
// It promises nothing to programs outside this module.
package driver
