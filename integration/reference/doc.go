// Package reference owns real data sets whose results are known: it makes files of
// them that jobs can be run on, and says what they should come to. Tests hold jobs
// against it, and a benchmark prints it.
//
// It must not run anything.
package reference
