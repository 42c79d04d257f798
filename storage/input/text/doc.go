// Package text reads ranges of text in blocks of whole records, says in which line of
// which file something is, and reads numbers.
//
// Where a record ends is told by who reads; it must not know of any format.
package text
