// Package volleytest helps to test programs that use volley: it runs a plan on a cluster embedded in the
// test's process, at one size after another and with executors lost on the way, and compares results with files.
//
// It must not know how the engine works: what it does a program can do by volley.Run.
package volleytest
