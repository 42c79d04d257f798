package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"

	engine "github.com/volley-engine/volley"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/prioritizer"
	"github.com/volley-engine/volley/rdd"
)

// trainMoving trains while splits move at seeded steps, and returns the model
// and how many moved.
func trainMoving(t *testing.T, data string, seed uint64, flags ...string) (*mllib.Trained, int) {
	t.Helper()
	cfg, err := engine.ParseConfig(flags...)
	if err != nil {
		t.Fatal(err)
	}
	moves := 0
	cfg.Observer = func(r *driver.StepReport) { moves += len(r.Moves) }
	if seed != 0 {
		cfg.Job.Exchange = prioritizer.ExchangeConfig{Mode: prioritizer.Random, Seed: seed}
	}
	job := mllib.LinearConfig{Data: []string{data}, Solver: mllib.Nesterov, MaxIterations: 25, Reg: 1e-3,
		Intercept: true}
	var trained *mllib.Trained
	_, err = engine.Run(context.Background(), cfg, "logistic", job, mllib.BuildLinear,
		func(ctx context.Context, s *rdd.Session, job mllib.LinearConfig, p mllib.LinearPlan) (string, error) {
			var err error
			trained, err = mllib.TrainLinear(ctx, s, job, p)
			return "moved", err
		})
	if err != nil {
		t.Fatal(err)
	}
	return trained, moves
}

func TestSplitsMoveAndTheModelStays(t *testing.T) {
	data := generated(t)
	want, _ := trainMoving(t, data, 0, "--executors", "1", "--sync", "bsp")
	for seed := uint64(1); seed <= 5; seed++ {
		for _, clock := range []string{"real", "virtual"} {
			got, moves := trainMoving(t, data, seed, "--executors", "4", "--sync", "bsp", "--clock", clock, "--pace",
				"rate:1000000")
			if moves < 3 {
				t.Errorf("seed %d: only %d splits moved", seed, moves)
			}
			if !sameModel(got.Model, want.Model) {
				t.Errorf("seed %d, %s clock: another model after %d moves", seed, clock, moves)
			}
		}
	}
}

func sameModel(a, b *mllib.LinearModel) bool {
	for i := range b.Weights {
		if a.Weights[i] != b.Weights[i] {
			return false
		}
	}
	return len(a.Weights) == len(b.Weights) && a.Intercept == b.Intercept
}

// TestABuildForNewerProcessorsGivesTheSameModel compiles with GOAMD64=v3, by
// which the compiler fuses multiplications and additions of its own accord
// wherever the code does not forbid it. It compiles everything anew: make builds.
func TestABuildForNewerProcessorsGivesTheSameModel(t *testing.T) {
	if os.Getenv("VOLLEY_BUILDS") == "" || !cpu.X86.HasAVX2 || !cpu.X86.HasFMA || !cpu.X86.HasBMI2 {
		t.Skip("a second build, for processors with AVX2")
	}
	newer := filepath.Join(t.TempDir(), "volley")
	cmd := exec.Command("go", "build", "-ldflags=-s", "-o", newer, "../cmd/volley")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOAMD64=v3")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, data := range []string{generated(t), sparseRows(t)} {
		first := ""
		for _, program := range []string{binary, newer} {
			dir := filepath.Join(t.TempDir(), "model")
			out, err := exec.Command(program, "run", "logistic", "--data", data, "--standardize", "--max-iterations",
				"25", "--tol", "0", "--sync", "bsp", "--out", dir).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got := modelBytes(t, dir); first == "" {
				first = got
			} else if got != first {
				t.Errorf("%s: a GOAMD64=v3 build gives another model", data)
			}
		}
	}
}

// sparseRows is a file of rows with a few nonzeros of a thousand features.
func sparseRows(t *testing.T) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(6, 6))
	var b strings.Builder
	for range 3000 {
		fmt.Fprintf(&b, "%d", rng.IntN(2))
		column := 0
		for range rng.IntN(20) {
			column += 1 + rng.IntN(50)
			fmt.Fprintf(&b, " %d:%.4f", column, rng.NormFloat64())
		}
		b.WriteByte('\n')
	}
	path := filepath.Join(t.TempDir(), "sparse.libsvm")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
