//go:build !amd64

package kernel

func dotsVector[T Float](_, _ []float64, _ []T, _ []int32) bool       { return false }
func accumulateVector[T Float](_, _ []float64, _ []T, _ []int32) bool { return false }
func logisticVector(_, _, _, _ []float64) int                         { return 0 }

// Path names the code that the kernels run on this machine.
func Path() string { return "go" }

// ReadStreams adds x up; see the amd64 version.
func ReadStreams(x []float64) float64 { return readPlain(x) }

func pipelineVector[T Float](_, _, _, _ []float64, _ []T, _, _ []int32) int { return 0 }
