// Package memory keeps this process and its children within limits of memory: a soft one of them together, of which
// each child gets a share that this process gives up for as long as the child runs, and a hard one of each user's
// process with all that it starts.
//
// It owns the limits: Go's runtime's, control groups (version 2) where the system has delegated one, and otherwise
// rlimits and what it sees of a group of processes; and it says which processes go first where memory runs out. It must
// not know what the processes do.
package memory
