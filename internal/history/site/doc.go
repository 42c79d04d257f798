// Package site owns pages of many runs over HTTP: a list of the event logs of a folder, each run, and runs compared.
//
// It must not know of drivers and executors that run, nor change anything.
package site
