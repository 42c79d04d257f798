// Package fold owns the sums over rows that several families make: of gradients, moments
// and classes, and the loops over a batch that they are made by. Each is laid out as it
// travels, merges and scales as the engine wants it.
//
// What a family alone sums is the family's. It must not know of objectives, penalties or
// the variables that are optimized.
package fold
