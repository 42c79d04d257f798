// Package wire owns the messages between driver and executors, their
// encoding, and the connections that carry them: within one process a pipe
// that encodes and decodes every message like any other connection.
//
// It detects failures by missing heartbeats, decides nothing else, and knows no
// job's state.
package wire

//go:generate go -C gen run . .. volley.proto cluster.proto
