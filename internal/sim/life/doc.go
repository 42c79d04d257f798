// Package life simulates the lifecycle of a driver daemon's jobs, processes and executors, the
// real one (daemon.Life), in a world of journals, disks and processes that fail. Everything
// follows from a seed.
//
// It must not read a clock, start a goroutine or decide anything that the daemon's shell leaves to
// the lifecycle.
package life
