// Package logtest owns event logs for tests of what reads them: a job of two executors in virtual time that writes one,
// and ways to change a line.
//
// It must not read logs itself.
package logtest
