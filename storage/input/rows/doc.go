// Package rows is what readers hand on: chunks of rows, with what is left out of them
// and why, and which rows folds leave out.
//
// It must not know where rows come from or go to.
package rows
