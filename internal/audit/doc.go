// Package audit checks a run's event log against the invariants of SEMANTICS
// section 10 (Verify) and re-executes its steps serially (Replay).
//
// It reads the log and the data and nothing else, and must not share the
// engine's own accounting: what it checks it computes again.
package audit
