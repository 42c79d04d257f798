// Package files says what a path means: the files that it names and whether they have
// changed, directories that were saved whole, compression, and the ranges that readers
// share out.
//
// It must not know what is in a file.
package files
