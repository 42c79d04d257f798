package testrows

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Lines writes rows of CSV that line makes.
func Lines(t *testing.T, rows int, line func(i int, rng *rand.Rand) string) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(9, 16))
	var b strings.Builder
	for i := range rows {
		b.WriteString(line(i, rng) + "\n")
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Hard writes rows of d columns, which change may make hard, labelled by a plane and
// noise; classes are labels of 0 and 1.
func Hard(t *testing.T, rows, d int, classes bool, change func(*rand.Rand, []float64)) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(12, 22))
	var b strings.Builder
	for range rows {
		x := make([]float64, d)
		for j := range x {
			x[j] = rng.NormFloat64()
		}
		before := x[0] - 2*x[1]
		change(rng, x)
		y := x[0] - 2*x[1] + x[len(x)-1] + 0.1*rng.NormFloat64()
		if classes {
			y = 0
			if before+0.5*rng.NormFloat64() > 0 {
				y = 1
			}
		}
		fmt.Fprint(&b, y)
		for _, v := range x {
			fmt.Fprintf(&b, ",%v", v)
		}
		b.WriteByte('\n')
	}
	path := filepath.Join(t.TempDir(), "hard.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// FarOff changes rows so that every column begins so far from zero.
func FarOff(by float64) func(*rand.Rand, []float64) {
	return func(_ *rand.Rand, x []float64) {
		for j := range x {
			x[j] += by
		}
	}
}

// Weighed writes rows with whole weights, some of them zero, and the same rows each as
// often as it weighs; times is what weights are times.
func Weighed(t *testing.T, rows, features, labels int, times float64) (weights, repeated string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(4, 2))
	var one, many strings.Builder
	head := "y"
	for j := range features {
		head += fmt.Sprintf(",x%d", j)
	}
	fmt.Fprintln(&one, head+",w")
	fmt.Fprintln(&many, head)
	for range rows {
		label, weight := rng.IntN(labels), rng.IntN(4)
		row := fmt.Sprint(label)
		for j := range features {
			row += fmt.Sprintf(",%.3f", rng.NormFloat64()*float64(1+j)+0.6*float64(label*(j%3-1))+0.3)
		}
		fmt.Fprintf(&one, "%s,%v\n", row, times*float64(weight))
		for range weight {
			fmt.Fprintln(&many, row)
		}
	}
	dir := t.TempDir()
	weights, repeated = filepath.Join(dir, "weights.csv"), filepath.Join(dir, "repeated.csv")
	for path, b := range map[string]*strings.Builder{weights: &one, repeated: &many} {
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return weights, repeated
}

// Nearly reports whether two numbers differ by less than slack, relatively.
func Nearly(a, b, slack float64) bool { return math.Abs(a-b) <= slack*max(1, math.Abs(a), math.Abs(b)) }
