//go:build !mutants

package driver

// Where the simulator can plant a bug in a decision, the decision goes through a
// hook. In this build each is what it is given.

func plantedCall(present bool) bool { return present }
