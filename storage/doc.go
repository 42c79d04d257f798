// Package storage owns data at rest: readers of input formats, packs (the
// memory-mapped Arrow files that steps fold), the cache that finds a pack
// again on the next run, and the store of an executor.
//
// Sizes that come from a file are checked before memory is allocated for
// them, and a decoder's panic becomes an error here. It must not know what a
// job or a step is, and it starts no goroutine that outlives the call.
package storage
