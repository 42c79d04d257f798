package volleytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// Cluster describes the cluster that a test runs on. The zero value is two executors of one slot.
type Cluster struct {
	Executors int
	Slots     int   // of each executor
	Memory    int64 // bytes that a task may hold before it spills to disk; 0 is the engine's own limit
	// Lose has all executors but one lost, each at a task or step that is drawn from this seed; 0 has none lost.
	Lose uint64
}

// String returns the description in words.
func (c Cluster) String() string {
	c = c.filled()
	text := fmt.Sprintf("%d executors × %d", c.Executors, c.Slots)
	if c.Memory > 0 {
		text += fmt.Sprintf(", %d bytes a task", c.Memory)
	}
	if c.Lose > 0 {
		text += fmt.Sprintf(", lost by seed %d", c.Lose)
	}
	return text
}

func (c Cluster) filled() Cluster {
	if c.Executors == 0 {
		c.Executors = 2
	}
	c.Slots = max(1, c.Slots)
	return c
}

// lossesWithin is up to which task or step of its own an executor is lost.
const lossesWithin = 6

// config returns the engine's configuration.
func (c Cluster) config(t testing.TB) volley.Config {
	c = c.filled()
	if c.Executors < 0 {
		t.Fatalf("a cluster of %d executors", c.Executors)
	}
	cfg := volley.Config{Executors: c.Executors, Slots: c.Slots, TaskMemory: c.Memory, DataDir: t.TempDir(),
		OutDir: t.TempDir(), Program: "test"}
	if c.Lose == 0 {
		return cfg
	}
	draws := rand.New(rand.NewPCG(c.Lose, 1))
	for _, i := range draws.Perm(c.Executors)[1:] {
		cfg.Losses = append(cfg.Losses, volley.Loss{Executor: i, After: draws.IntN(lossesWithin)})
	}
	return cfg
}

// Run runs a program, as volley.Main does, and fails the test if the program does. It returns how the run went:
// Outcome.Counters.ExecutorsLost says how many executors were lost.
func Run[A, P any](t testing.TB, c Cluster, args A, build func(*rdd.Graph, A) P,
	run func(context.Context, *rdd.Session, A, P) error) *volley.Outcome {
	t.Helper()
	out, err := Try(t, c, args, build, run)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Try does what Run does, and returns the program's error.
func Try[A, P any](t testing.TB, c Cluster, args A, build func(*rdd.Graph, A) P,
	run func(context.Context, *rdd.Session, A, P) error) (*volley.Outcome, error) {
	t.Helper()
	return volley.Run(t.Context(), c.config(t), "test", args, build,
		func(ctx context.Context, s *rdd.Session, a A, p P) (string, error) { return "", run(ctx, s, a, p) })
}

// Rows returns the rows of a dataset, in the order of its partitions.
func Rows[T any](t testing.TB, c Cluster, build func(*rdd.Graph) rdd.Dataset[T]) (rows []T) {
	t.Helper()
	Run(t, c, struct{}{}, func(g *rdd.Graph, _ struct{}) rdd.Action[[]T] { return rdd.Collect(build(g)) },
		func(ctx context.Context, s *rdd.Session, _ struct{}, a rdd.Action[[]T]) (err error) {
			rows, err = a.Run(ctx, s)
			return err
		})
	return rows
}

// clusters are those of Everywhere.
var clusters = []Cluster{
	{Executors: 1}, {Executors: 2, Slots: 2}, {Executors: 8}, {Executors: 2, Memory: 16 << 10},
	{Executors: 3, Lose: 1}, {Executors: 4, Lose: 2}, {Executors: 4, Slots: 2, Lose: 3},
}

// Everywhere runs a test on one executor and on several, with little memory, and with executors that are lost at
// moments drawn from seeds: what a program computes is the same everywhere.
func Everywhere(t *testing.T, test func(t *testing.T, c Cluster)) {
	t.Helper()
	for _, c := range clusters {
		t.Run(c.String(), func(t *testing.T) { test(t, c) })
	}
}
