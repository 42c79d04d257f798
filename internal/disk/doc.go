// Package disk makes the changes to files and directories whose order decides what
// survives a loss of power: of saved datasets, models, checkpoints, event logs,
// journals and packs.
//
// It owns the list of these operations, passes each to a recorder, if there is one
// (internal/crash), and explains errors of opening or writing a file. It must not
// decide anything: the caller decides what is synced.
package disk
