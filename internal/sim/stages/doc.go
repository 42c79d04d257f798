// Package stages simulates sessions of random plans: the stages of a job, the real ones
// (scheduler.Stages), over executors that die, forget and hand rows back, with loops that lose
// their rounds. Everything follows from a seed.
//
// It must not read a clock, start a goroutine or decide anything that a session leaves to the
// stages.
package stages
