// Package text reads ranges of text in blocks of whole records, computes the file and
// line of a position, and reads numbers.
//
// The reader of a format determines where a record ends; this package must not know any format.
package text
