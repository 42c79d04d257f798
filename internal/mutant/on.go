//go:build mutants

package mutant

// Built reports whether bugs can be planted.
const Built = true

// planted is the bug that is in force; it changes only while nothing runs.
var planted Bug

// On reports whether a bug is planted.
func On(b Bug) bool { return b == planted }

// Plant puts a bug in force in place of the one before; None is none.
func Plant(b Bug) { planted = b }
