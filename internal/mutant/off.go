//go:build !mutants

package mutant

// Built reports whether bugs can be planted.
const Built = false

// On reports whether a bug is planted, which none is in this build.
func On(Bug) bool { return false }

// Plant does nothing in this build.
func Plant(Bug) {}
