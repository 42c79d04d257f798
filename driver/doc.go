// Package driver runs in the process of a job: the pure job machine, which takes a job from
// the joining of its executors through packs, steps and actions to its end; the shell that
// carries out its decisions; and the event log.
//
// The lifecycle of jobs, of their processes and of executors is the daemon's (driver/daemon).
//
// The job machine (Job) does no I/O, starts no goroutine and reads no clock.
// It promises nothing to programs outside this module.
package driver
