// Package plan holds the nouns that every other package speaks: identities of
// jobs, steps, splits and attempts, epochs, digests and coverage.
//
// It owns names and nothing else: no logic beyond formatting and parsing an
// identity, no I/O, no clock, no dependency on another package of this module.
package plan
