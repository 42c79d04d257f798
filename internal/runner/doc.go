// Package runner is the task loop inside a program: it folds splits chunk by
// chunk, keeps the shared page with the stop flag and the processed counts,
// and merges partial results along the fixed tree of SEMANTICS section 2.
//
// It must not know of drivers, executors or messages, and it decides neither
// when to stop nor where a split is held.
package runner
