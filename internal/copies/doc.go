// Package copies keeps copies of files on the disks of other drivers: Store takes them in and hands them out, Peer
// sends what another store lacks. Files that only grow are sent from where the other's copy ends.
//
// Which files, and how many copies are enough, is its caller's to decide.
package copies
