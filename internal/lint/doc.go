// Package lint holds the rules of the house as a test: documentation, sizes,
// the import graph, and what pure packages must not do.
package lint
