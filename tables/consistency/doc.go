// Package consistency decides what the reads of a parameter table may miss, and for how long: bsp, ssp (LazyTable, ATC
// '14), asp, cap, vap and cvap (Petuum's bounded-asynchronous consistency). It has three machines: the client, which is
// a process's cache and the logs of its workers' updates; the shard, which has the rows; and the bookkeeper, which
// knows how far all workers are.
//
// It owns ages, clocks, logs, what is pushed when, and who waits for what. It must not do I/O, start a goroutine or
// read a clock; how the values of rows are added up it is told. Its package is importable because the simulator needs
// it, and promises nothing.
package consistency
