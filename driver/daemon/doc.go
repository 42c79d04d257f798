// Package daemon is `volley driver`: the members of a cluster (members.go), the journal of
// jobs (journal.go, raft.go), the processes of jobs and their ends (supervise.go), REST
// (rest.go has the routes, view.go the fields), metrics, and who may do what (access.go has tokens
// and certificates, roles.go which calls are whose, admission.go the shell, auditlog.go what was done).
//
// Its lifecycle (Life) decides about jobs, their processes and runners, and executors; it does no I/O,
// starts no goroutine and reads no clock. What happens within a job is decided in the job's process
// (package driver): the daemon relays the messages of processes that cannot reach each other, and
// reads none. It promises nothing to programs outside this module.
package daemon
