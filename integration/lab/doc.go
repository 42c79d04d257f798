// Package lab owns clusters of real processes, for tests and for measuring: it builds the program, starts and kills
// daemons, submits jobs and reads their event logs.
//
// It measures and checks nothing itself, and the engine must not import it.
package lab
