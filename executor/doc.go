// Package executor owns an executor: the pure agent that decides what to do
// with each message, and the shell around it with slots, the splits it
// holds, the block server for its peers and the progress stream.
//
// The agent does no I/O, starts no goroutine and reads no clock; the shell
// decides nothing. It promises nothing to programs outside this module.
package executor
