package seeds

import (
	"os"
	"strconv"
	"testing"
)

// Of returns how many seeds a test tries: usually as many as given, a quarter of them under go test -short, and as many
// as VOLLEY_SOAK says where that is more.
func Of(usual int) int {
	if soak, err := strconv.Atoi(os.Getenv("VOLLEY_SOAK")); err == nil && soak > usual {
		return soak
	}
	if testing.Short() {
		return max(1, usual/4)
	}
	return usual
}

// Soaking reports whether VOLLEY_SOAK asks for what takes long.
func Soaking() bool { return os.Getenv("VOLLEY_SOAK") != "" }
