// Package plan defines the terms that all other packages share: identities of
// jobs, steps, splits and attempts, epochs, digests and coverage.
//
// It owns names, their text form, and the arithmetic of visited positions (parts.go): no other logic, no I/O, no
// clock, no dependency on another package of this module.
package plan
