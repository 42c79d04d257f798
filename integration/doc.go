// Package integration holds the tests that run the built program as its users
// do, and nothing else.
package integration
