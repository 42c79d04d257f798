// Package reassign decides which rows of a worker's clock another worker does for it: RapidReassignment, FlexRR's half
// of its answer to stragglers (SoCC '16, section 4; the other half is ssp, in tables/consistency). Workers tell their
// helpees how far they are, one that is behind offers work from the end of its clock, and takes back what was not
// begun.
//
// It owns the exchange of messages, as a machine of each worker, and who helps whom. It must not do I/O, start a
// goroutine or read a clock, nor know what the rows are. Its package is importable because the simulator needs it, and
// promises nothing.
package reassign
