// Package executor runs in a runner, the process of one job on one executor: the pure agent that
// decides what to do with each message, and the shell around it with slots, the engine that folds, the
// splits that it holds and the stream of progress.
//
// The agent does no I/O, starts no goroutine and reads no clock; the shell decides nothing.
// Membership, programs and processes belong to the daemon (executor/daemon). It promises nothing to
// programs outside this module.
package executor
