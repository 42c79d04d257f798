// Package console owns the pages of a driver, and of a run in one process, while they go on: an overview of jobs and
// executors, each job as its event log has it so far, what its processes print, and buttons to cancel and resume.
//
// It must not know how a cluster or a run does what it shows, nor decide who may see or do what.
package console
