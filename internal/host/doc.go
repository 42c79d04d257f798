// Package host joins the parts of Volley in each kind of process that runs a program: the user's own, with
// a cluster embedded in it (local.go), the process of a job on a cluster (jobproc.go), and that of a runner
// (runnerproc.go). Job is what all of them share for a session: the catalog of packs, the event log and the
// checkpoints (packs.go, record.go, keeper.go).
//
// It owns the wiring and no decision: those are made by the job machine, the agent and the daemons.
package host
