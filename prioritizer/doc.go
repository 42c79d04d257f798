// Package prioritizer decides what is processed first and where: the cursor
// of each split (task-level prioritization, section 3.3.1 of the A-BSP
// paper), the ledger of what has been merged, and the exchange of splits
// between executors (job level, section 3.3.2).
//
// It is pure: no I/O, goroutine, clock or randomness. It promises nothing to
// programs outside this module.
package prioritizer
