// Package pack owns packs, the memory-mapped Arrow files that steps fold: their making
// out of rows, the cache that finds one again on the next run and keeps to its budget,
// and the splits that an executor holds.
//
// Sizes that come from a file are checked before they are believed. It must not know
// what a job or a step is, and it starts no goroutine that outlives the call.
package pack
