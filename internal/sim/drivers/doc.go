// Package drivers simulates several drivers of a cluster, whose clocks, disks, links and processes fail: what they
// decide together is the real thing (daemon's several.go, driver's lease.go), the journal's replication a model of
// raft. Everything follows from a seed.
//
// It must not read a clock, start a goroutine, or decide what the drivers' rules leave to be decided.
package drivers
