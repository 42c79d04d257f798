// Package memory keeps this process and its children within one memory limit: each
// child gets a share, which this process gives up for as long as the child runs.
//
// It owns the limit, sets that of Go's runtime, and says which processes go first where memory runs out. It must not
// know what the processes do.
package memory
