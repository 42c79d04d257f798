// Package replay re-executes the steps of an event log serially: a program that runs on a Replay repeats its run, and
// whatever differs is named.
//
// It must not schedule or decide anything: what was merged, and when, it takes from the log.
package replay
