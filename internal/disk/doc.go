// Package disk makes the changes to files and directories whose order decides what
// a loss of power leaves: of saved datasets, models, checkpoints, event logs,
// journals and packs.
//
// It owns the list of these operations, and tells a recorder of each, if there is one
// (internal/crash); and what an error of opening or writing a file means. It must not
// decide anything: who uses it says what is synced.
package disk
