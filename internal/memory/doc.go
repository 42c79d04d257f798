// Package memory keeps this process, and those that it starts to work for it, within
// one limit: each of these is told to keep to a share, which this process then does
// without for as long as there is one.
//
// It owns the limit and sets that of Go's runtime. It must not know what the processes
// do.
package memory
