// Package daemon is `volley executor`: it joins a cluster, fetches the programs of jobs, starts a runner
// for each job, shares its slots between them, and carries messages between runners and the driver.
//
// It folds no row, and reads of a job's messages only what it has to know of slots.
// It promises nothing to programs outside this module.
package daemon
