// Package daemon is `volley driver`: the members of a cluster, the journal of jobs (raft), the
// processes of jobs and their ends, REST, metrics and tokens.
//
// Its lifecycle (Life) decides what becomes of jobs, of their processes and runners, and of executors;
// it does no I/O, starts no goroutine and reads no clock. What happens within a job the job's own
// process decides (package driver): the daemon carries its messages and reads none of them.
// It promises nothing to programs outside this module.
package daemon
