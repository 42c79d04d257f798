// Package pack owns packs, the memory-mapped Arrow files that steps fold: their
// building from rows, the cache that reuses them within its budget, and the splits
// that an executor holds.
//
// Sizes that come from a file are checked before they are believed. It must not know
// what a job or a step is, and it starts no goroutine that outlives the call.
package pack
