// Package shares simulates jobs that share an executor's slots, by the real rule
// (scheduler.Shares): jobs of several weights that fold, pause when they are told to, end
// without a word and come again. Everything follows from a seed.
//
// It must not read a clock, start a goroutine or decide anything that the daemon's shell leaves
// to the rule.
package shares
