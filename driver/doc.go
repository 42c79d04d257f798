// Package driver runs in the process of a job: the pure job machine that takes a job from its
// executors' joining through packs, steps and actions to its end, the shell that carries its
// decisions out, and the event log.
//
// What becomes of jobs, of their processes and of executors, the daemon decides (driver/daemon).
//
// The job machine (Job) does no I/O, starts no goroutine and reads no clock.
// It promises nothing to programs outside this module.
package driver
