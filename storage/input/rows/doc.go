// Package rows is what readers yield: chunks of rows, with the counts of rows left
// out, and which rows folds leave out.
//
// It must not know where rows come from or go to.
package rows
