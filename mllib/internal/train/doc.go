// Package train owns what all families train by: how rows are packed, the loop and the state
// that it commits, the rules that end it, the guard that takes runs back which run away, the
// rows held out to stop by, and the summary of a run.
//
// It must not know of a family's passes, parameters or models, nor what a solver keeps.
package train
