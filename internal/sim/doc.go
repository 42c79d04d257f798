// Package sim owns worlds in virtual time: a driver's job machine and
// executors' agents, the real ones, joined by a network with delays, on slots
// whose speed follows a law. Everything follows from a seed.
//
// It serves two ends: with real numerics it is the clock of `volley run
// --clock virtual`; with faults and counting accumulators it is the simulator
// that proves the control plane (Simulate). Beside it the lifecycle of a driver's
// jobs and executors lives in a world of its own, of journals, disks and
// processes that fail (SimulateLife).
//
// It must not read a clock, start a goroutine or decide anything that the
// real shells leave to the machines.
package sim
