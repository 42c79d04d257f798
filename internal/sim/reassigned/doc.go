// Package reassigned simulates workers that do parts of one another's clocks (tables/reassign): of several speeds, that
// stand still now and then, whose processes end, and whose messages are lost, late, twice and in another order.
// Everything follows from a seed.
//
// It must not read a clock, start a goroutine or decide anything that the machine leaves to its shell.
package reassigned
