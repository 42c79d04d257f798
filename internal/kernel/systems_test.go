package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestSystemsAreTheirDefinition solves systems of all widths, made of few rows (fewer
// than unknowns) and many, with and without weights, a matrix to begin with and a
// ridge, and wants the same bits on every path.
func TestSystemsAreTheirDefinition(t *testing.T) {
	var first map[string][]float64
	onEveryPath(t, func(t *testing.T) {
		rng, got := rand.New(rand.NewPCG(3, 1)), map[string][]float64{}
		for _, n := range []int{1, 2, 3, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 20, 23, 24, 25, 40} {
			for _, one := range []bool{false, true} {
				solveAll(t, rng, NewSystems(n, one), fmt.Sprint(n, " unknowns, one ", one), got)
			}
		}
		if first == nil {
			first = got
		}
		for name, x := range got {
			sameBits(t, name, x, first[name])
		}
	})
}

func solveAll(t *testing.T, rng *rand.Rand, s *Systems, name string, solutions map[string][]float64) {
	n := s.Unknowns()
	x, _, _ := data[float64](rng, 70, n)
	x = append(x, numbers(rng, GramSlack)...)
	gram := make([]float64, n*n)
	for i := range n {
		gram[i*n+i] = 1 + rng.Float64()
	}
	var wanted [][]float64 // A and b of each system
	for round := range 2 { // what the first leaves behind does not matter
		s.Begin()
		wanted = wanted[:0]
		for k := range s.Together() - round*s.Together()/2 {
			rows, ridge := make([]int32, rng.IntN(50)), rng.Float64()
			for i := range rows {
				rows[i] = int32(rng.IntN(70))
			}
			value, weight, from := numbers(rng, len(rows)), []float64(nil), []float64(nil)
			if k%2 == 1 || s.Together() == 1 && round == 1 {
				weight, from = numbers(rng, len(rows)), gram
				for i := range weight {
					weight[i] = math.Abs(weight[i])
				}
			}
			if k == 2 {
				ridge = 0 // and often fewer rows than unknowns
			}
			wanted = append(wanted, definition(n, from, weight, value, x, rows, ridge))
			s.Next(from, weight, value, x, rows, ridge)
		}
		s.Solve()
		for k, system := range wanted {
			got := make([]float64, n)
			s.Solution(k, got)
			solutions[fmt.Sprint(name, ", round ", round, ", system ", k)] = got
			holds(t, fmt.Sprint(name, ", system ", k), system, got)
		}
	}
}

// definition is a matrix, whole, and its right side.
func definition(n int, from, weight, value, x []float64, rows []int32, ridge float64) []float64 {
	out := make([]float64, n*n+n)
	copy(out, from)
	for k, r := range rows {
		for i := range n {
			v := x[int(r)*n+i]
			out[n*n+i] += value[k] * v
			if weight != nil {
				v *= weight[k]
			}
			for j := range n {
				out[i*n+j] += v * x[int(r)*n+j]
			}
		}
	}
	for i := range n {
		out[i*n+i] += ridge
	}
	return out
}

// holds wants A·x = b, which has a solution.
func holds(t *testing.T, name string, system, x []float64) {
	t.Helper()
	n := len(x)
	for i := range n {
		sum, size := -system[n*n+i], math.Abs(system[n*n+i])
		for j, v := range x {
			sum += system[i*n+j] * v
			size += math.Abs(system[i*n+j] * v)
		}
		if !(math.Abs(sum) <= 1e-6*(1+size)) {
			t.Fatalf("%s: equation %d is off by %v", name, i, sum)
		}
	}
}

// TestSystemsLeaveOutWhatDepends has a column that is the double of another, and one
// without numbers.
func TestSystemsLeaveOutWhatDepends(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		s := NewSystems(4, false)
		s.Begin()
		x := []float64{1, 2, 0, 3, 2, 4, 0, -1, 1, 2, 0, 1}
		x = append(x, make([]float64, GramSlack)...)
		for range 3 {
			s.Next(nil, nil, []float64{7, 3, 3}, x, []int32{0, 1, 2}, 0)
		}
		s.Next(nil, nil, nil, x, nil, 0)
		s.Solve()
		want := []float64{134.0 / 62, 0, 0, 94.0 / 62}
		for k := range 3 {
			got := make([]float64, 4)
			s.Solution(k, got)
			for i, v := range got {
				if math.Abs(v-want[i]) > 1e-12 {
					t.Fatalf("system %d: unknown %d is %v, want %v", k, i, v, want[i])
				}
			}
		}
		got := numbers(rand.New(rand.NewPCG(1, 1)), 4)
		s.Solution(3, got)
		sameBits(t, "no rows", got, make([]float64, 4))
	})
}
