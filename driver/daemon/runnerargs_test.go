package daemon

import (
	"slices"
	"testing"

	"github.com/volley-engine/volley/internal/wire"
)

// TestRunnersAreStartedWithTheirOwnArguments: a bundled job is a command of volley itself, a
// user's program has flags only.
func TestRunnersAreStartedWithTheirOwnArguments(t *testing.T) {
	flags := []string{"--slots", "2"}
	if got := runnerArgs(&wire.JobInfo{Job: "logistic", Args: flags}); !slices.Equal(got,
		[]string{"run", "logistic", "--slots", "2"}) {
		t.Errorf("a bundled job: %q", got)
	}
	program := &wire.JobInfo{Job: "words", Args: flags, Program: &wire.UserProgram{}}
	if got := runnerArgs(program); !slices.Equal(got, flags) {
		t.Errorf("a program: %q", got)
	}
}
