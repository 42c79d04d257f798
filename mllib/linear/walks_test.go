package linear

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
)

// walkRows writes rows of random walks: columns that are nearly alike, more of them than
// rows.
func walkRows(t *testing.T, rows, columns int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	var b strings.Builder
	for range rows {
		x, sum := 0.0, 0.0
		var row strings.Builder
		for j := range columns {
			x += r.NormFloat64()
			if j%10 == 0 {
				sum += x
			}
			fmt.Fprintf(&row, ",%g", x)
		}
		fmt.Fprintf(&b, "%g%s\n", sum+r.NormFloat64(), row.String())
	}
	path := filepath.Join(t.TempDir(), "walks.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWideWalks end at the optimum, or say how far from it they may be: by the solver
// that coordinate descent gave up in, and by one whose centre ran away.
func TestWideWalks(t *testing.T) {
	c := defaults(walkRows(t, 120, 160))
	c.Loss, c.Reg, c.Alpha, c.Tol = Squared, 0.5, 1, 1e-7
	c.Solver = solver.CD
	lasso := fitted(t, c)
	if !lasso.Converged || lasso.GapBy != train.ByDuality {
		t.Errorf("lasso by cd: gap %g by %s after %d", lasso.Gap, lasso.GapBy, lasso.Iterations)
	}
	c.Reg, c.Alpha = 0.01, 0
	c.Solver = solver.Newton
	exact := fitted(t, c)
	c.Solver, c.MaxIterations = solver.SDCA, 300
	ridge := fitted(t, c)
	if above := ridge.Objective - exact.Objective; !(above <= ridge.Gap*(1+1e-6)+1e-9) ||
		ridge.Objective > 1e3*math.Max(1, exact.Objective) {
		t.Errorf("ridge by sdca: %g above newton's %g, gap %g", above, exact.Objective, ridge.Gap)
	}
}
