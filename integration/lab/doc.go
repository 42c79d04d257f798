// Package lab owns clusters of real processes for measuring: it builds the
// program, starts and kills daemons, submits jobs and reads their event logs.
//
// It measures nothing itself (integration tests have a harness of their own,
// which fails the test), and the engine must not import it.
package lab
