// Package tables simulates the processes, shards and bookkeeper of a table with bounded staleness (tables/consistency):
// messages that are lost, late, twice and in another order, processes and shards that end, and one that is taken for
// lost and goes on. The value of a row is the set of the updates that are in it, so that its oracles see of each read
// exactly what it has and what it misses. Everything follows from a seed.
//
// It must not read a clock, start a goroutine or decide anything that the machines decide.
package tables
