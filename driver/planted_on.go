//go:build mutants

package driver

import "github.com/volley-engine/volley/internal/mutant"

// The bugs that the simulator can plant in what this package decides.

func plantedCall(present bool) bool { return present || mutant.On(mutant.TaskOfOlderCall) }
