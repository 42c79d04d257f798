// Package driver owns the life of jobs: the pure job machine that takes a job
// from its executors' joining through packs, steps and actions to its end,
// the shell that carries its decisions out, the journal of committed steps,
// and the event log.
//
// What becomes of jobs, their processes and their runners, and of executors, the
// lifecycle of the daemon decides.
//
// The job machine (Job) and the lifecycle (Life) do no I/O, start no goroutine
// and read no clock.
// It promises nothing to programs outside this module.
package driver
