// Package plan defines the terms that all other packages share: identities of
// jobs, steps, splits and attempts, epochs, digests and coverage.
//
// It owns names and nothing else: no logic beyond formatting and parsing an
// identity, no I/O, no clock, no dependency on another package of this module.
package plan
