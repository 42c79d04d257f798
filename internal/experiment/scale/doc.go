// Package scale owns the experiment of volley lab scale: what steps of clusters of any number of executors cost beside
// the rows that they fold, by the real decisions, messages and merges, in computed time (internal/sim, Crowd).
//
// It must not decide anything that a job decides, nor know how.
package scale
