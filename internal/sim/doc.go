// Package sim owns worlds in virtual time: a driver's job machine and
// executors' agents, the real ones, joined by a network with delays, on slots
// whose speed follows a law. Everything follows from a seed.
//
// It serves two ends: with real numerics it is the clock of `volley run
// --clock virtual`; with faults and counting accumulators it is the simulator
// that proves the control plane (Simulate). The lifecycle of a driver daemon's jobs and
// executors is simulated in a package of its own, life: a program that runs in virtual time
// needs no daemon.
//
// It must not read a clock, start a goroutine or decide anything that the
// real shells leave to the machines.
package sim
