//go:build race

package arrowstream

// raced reports whether the race detector is here, which takes several times as much memory as what it watches.
const raced = true
