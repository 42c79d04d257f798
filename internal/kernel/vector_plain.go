//go:build !amd64

package kernel

var path = "go"

func dotsVector[T Float](_, _ []float64, _ []T, _ []int32) bool       { return false }
func accumulateVector[T Float](_, _ []float64, _ []T, _ []int32) bool { return false }

func logisticVector(_, _, _ []float64, _ float64, _ []float64) int { return 0 }

// Path names the code that the kernels run on this machine.
func Path() string { return "go" }

// ReadStreams adds x up; see the amd64 version.
func ReadStreams(x []float64) float64 { return readPlain(x) }

func check[T Float](_ []T, _ []int32, _ int) {}

// Prefetch does nothing here.
func Prefetch[T Float](_ []T, _ []float64, _ []int32, _ int) {}

// PrefetchAt does nothing here.
func PrefetchAt[T any](_ []T, _ []uint32) {}

func pipelineVector[T Float](_, _, _, _ []float64, _ []T, _, _ []int32) int { return 0 }

func sparseDotsVector[T Float](_, _ []float64, _ Sparse[T], _ []int32) bool { return false }

func sparseAccumulateVector[T Float](_, _ []float64, _ Sparse[T], _ []int32) bool { return false }

func tile() (tall, wide int) { return 4, 12 }

func multiplyVector(_ []float64, _ int, _ []float64, _ int, _ []float64, _ int) bool { return false }

func (n *Nearest) compareVector(int, bool) bool { return false }

func (n *Nearest) multiplyVector() bool { return false }

func addRowsVector[T Float](_ []float64, _ []int32, _ []T, _ []int32, _ int) bool { return false }

func (n *Nearest) squaresVector(int) bool { return false }

func spreadVector[T Float](*Nearest, []T, []int32, int, []float64, []float64) bool { return false }

func gramRowsVector(_, _, _ []float64, _ []int32, _ int, _ []float64) bool { return false }

func normalRowsVector(_, _, _, _, _ []float64, _ []int32, _ int) bool { return false }

func solveLanesVector(_, _ []float64, _ int) bool { return false }

func (d *Descent) stepsVector(_, _ []float64, _ []Rating) (float64, bool) { return 0, false }
