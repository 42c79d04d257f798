// Package audit checks a run's event log against the invariants of SEMANTICS section 10, as a whole (Verify) or as it
// comes (Following).
//
// It reads the log and nothing else, and must not share the engine's own accounting: what it checks it computes again.
package audit
