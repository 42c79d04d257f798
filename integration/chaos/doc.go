// Package chaos plans what is done to a cluster on a network of hosts, records what its clients ask and are told
// meanwhile, and checks that against what a cluster of one machine that never fails could have said (porcupine: is the
// history linearizable?). It builds the program with a clock of its own, which is set apart from the machine's.
//
// It must start no process of a cluster, and not know how drivers and executors come to what they say.
package chaos
