// Package raw views numbers in memory as the bytes that they are, as files of packs,
// spools and the window of decoders have them: in this machine's byte order, without a
// copy.
//
// It owns no memory: a view is good for as long as what it is of.
package raw
