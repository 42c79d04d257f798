package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/internal/plan"
)

// visitsOf writes visits of customers who come often, and of others.
func visitsOf(t *testing.T, customers int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "visits.csv")
	var b strings.Builder
	b.WriteString("customer,day,amount\n")
	for c := range customers {
		for range 2 + c%2*r.IntN(12) {
			fmt.Fprintf(&b, "c%d,%d,%.2f\n", c, r.IntN(90), 1+r.Float64()*float64(20+c%2*60))
		}
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lastOf returns the digest of a loop's state after its last step.
func lastOf(steps []driver.LogStep) (last plan.Digest, n int) {
	for _, s := range steps {
		if s.Step > n {
			last, n = s.Params, s.Step
		}
	}
	return last, n
}

// TestAPackOfShuffledRowsOutlivesItsHolders: a plan that grows packs what a shuffle has brought together. Whichever
// processes are killed while steps go over it, the one that made it and the job's own among them, it comes to the same.
func TestAPackOfShuffledRowsOutlivesItsHolders(t *testing.T) {
	t.Parallel()
	visits := visitsOf(t, 6000)
	log := filepath.Join(t.TempDir(), "log")
	example(t, "./examples/12-segments", "--sync", "bsp", "--event-log", log, "--", "--input", visits, "--steps", "70")
	alone, err := lab.ReadSteps(log)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := lastOf(alone)
	for _, sync := range []string{"bsp", "steal", "absp"} {
		t.Run(sync, func(t *testing.T) {
			c := newCluster(t)
			for _, name := range []string{"e1", "e2", "e3"} {
				c.join(name, "--pace", "rate:20000")
			}
			out, errs, code := volley(t, "submit", "--binary", built(t, "./examples/12-segments"), "--driver", c.Addr,
				"--detach", "--sync", sync, "--", "--input", visits, "--steps", "70")
			if code != 0 {
				t.Fatalf("submit: exit %d: %s", code, errs)
			}
			id := strings.TrimSpace(out)
			for i, victim := range []string{"e1", "e2", "e3"} { // one of them has made the pack
				c.atStep(id, 4+6*i)
				c.join("another-"+victim, "--pace", "rate:20000")
				c.Executors[victim].Kill()
			}
			c.atStep(id, 22)
			_ = syscall.Kill(c.jobProcess(), syscall.SIGKILL)
			c.ended(id)
			var steps []driver.LogStep
			for _, s := range c.steps(id) {
				steps = append(steps, s)
			}
			if got, n := lastOf(steps); n != 70 || sync != "absp" && got != want {
				t.Errorf("after %d steps it is %s, alone %s", n, got.Short(), want.Short())
			}
			c.verified(id, false)
			said, err := os.ReadFile(filepath.Join(c.jobDir(id), "log.0"))
			if err != nil || !strings.Contains(string(said), "it is made again") {
				t.Errorf("no pack was lost: %v\n%s", err, said)
			}
		})
	}
}
