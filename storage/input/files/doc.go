// Package files resolves paths: the files that they name and whether these have
// changed, complete saved directories, compression, and the ranges that readers read.
//
// It must not know what is in a file.
package files
