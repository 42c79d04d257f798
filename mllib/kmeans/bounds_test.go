package kmeans

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// TestBoundsChangeNothing: under whatever centres come after one another, the nearest
// ones and the distances are those that a look at all centres finds, bit for bit,
// and once rows have settled most are not looked for.
func TestBoundsChangeNothing(t *testing.T) {
	for _, c := range []struct{ d, k int }{{2, 100}, {7, 40}, {50, 33}} {
		for _, how := range []string{"euclidean", "shifted", "cosine", "far off", "huge", "tiny"} {
			boundsChangeNothing[float64](t, how, c.d, c.k)
			boundsChangeNothing[float32](t, how, c.d, c.k)
		}
	}
}

func boundsChangeNothing[T kernel.Float](t *testing.T, how string, d, k int) {
	const n = 1500
	rng := rand.New(rand.NewPCG(uint64(d), uint64(k)))
	size := 1.0
	if _, double := any(*new(T)).(float64); double {
		size = sizeOf(how)
	}
	x := aroundCentres[T](rng, n, d, k, map[string]float64{"far off": 1e7}[how], size)
	copy(x[d:2*d], x[:d]) // two rows alike
	known := how == "euclidean" || how == "shifted" || how == "cosine" && d > 2
	var shift, scale []float64
	if how == "shifted" {
		shift = normals(rng, d, 3)
	}
	if how == "cosine" {
		for r := range n {
			scale = append(scale, 1/math.Sqrt(num.SumOfSquares(x[r*d:(r+1)*d])))
		}
	}
	a, notes := &assigner{cosine: how == "cosine"}, newRowNotes(n).(*rowNotes)
	now := &centres{K: k, D: d, Shift: shift}
	for c := range k {
		for j := range d {
			now.At = append(now.At, float64(x[(c*13)*d+j]))
		}
	}
	kept := 0
	for pass := range 60 {
		switch {
		case pass == 40: // two alike: neither is nearer
			now.At = slices.Clone(now.At)
			copy(now.At[3*d:4*d], now.At[5*d:6*d])
		case pass == 50: // elsewhere
			now.At = slices.Clone(now.At)
			for j := range now.At {
				now.At[j] += 3 * size * rng.NormFloat64()
			}
		}
		sums, counts := make([]float64, k*d), make([]float64, k)
		for from := 0; from < n; {
			to := min(n, from+1+rng.IntN(600)) // runs are others each time
			rows, by := make([]int32, 0, to-from), []float64(nil)
			for r := from; r < to; r++ {
				rows = append(rows, int32(r))
			}
			if scale != nil {
				by = scale[from:to]
			}
			got := a.work(len(rows))
			want := &assignWork{at: make([]int32, len(rows)), squared: make([]float64, len(rows))}
			got.near.Set(now.At, k, d, shift)
			got.bounds.ask(&a.sets, now)
			findNoted(a, got, now, x, rows, notes, by)
			if got.bounds.spared {
				kept += len(got.bounds.kept.rows)
			}
			kernel.FindNearest(&got.near, want.at, want.squared, x, rows, shift, by)
			for i, r := range rows {
				if got.at[i] != want.at[i] || math.Float64bits(got.squared[i]) != math.Float64bits(want.squared[i]) {
					t.Fatalf("%s, %d × %d, pass %d: row %d is nearest to %d at %v, want %d at %v", how, d, k, pass, r,
						got.at[i], got.squared[i], want.at[i], want.squared[i])
				}
				for j := range d {
					sums[int(want.at[i])*d+j] += float64(x[int(r)*d+j])
				}
				counts[want.at[i]]++
			}
			a.pool.Put(got)
			from = to
		}
		next := movedOn(rng, now.At, sums, counts, 1e-3*size) // no pass is the last
		now = &centres{K: k, D: d, Shift: shift, At: next}
	}
	if known && kept < 5*n {
		t.Errorf("%s, %d × %d: bounds have spared %d rows of %d", how, d, k, kept, 60*n)
	}
}

// sizeOf is how large the numbers of rows are.
func sizeOf(how string) float64 {
	switch how {
	case "huge":
		return 1e60
	case "tiny":
		return 1e-42
	}
	return 1
}

// movedOn are centres in the mean of their rows, or nearly.
func movedOn(rng *rand.Rand, at, sums, counts []float64, nearly float64) []float64 {
	next, d := slices.Clone(at), len(sums)/len(counts)
	for c, m := range counts {
		for j := c * d; j < (c+1)*d && m > 0; j++ {
			next[j] = sums[j]/m + nearly*rng.NormFloat64()
		}
	}
	return next
}

// aroundCentres are n rows about k centres, which lie far enough apart.
func aroundCentres[T kernel.Float](rng *rand.Rand, n, d, k int, away, size float64) []T {
	about, x := normals(rng, k*d, 8), make([]T, n*d)
	for r := range n {
		centre := about[rng.IntN(k)*d:]
		for j := range d {
			x[r*d+j] = T((centre[j] + rng.NormFloat64() + away) * size)
		}
	}
	return x
}

// TestNotesAreTakenByManyAtOnce: workers that fold the same rows, under centres of their
// own, find what they would find by themselves.
func TestNotesAreTakenByManyAtOnce(t *testing.T) {
	const n, d, k = 400, 5, 40
	rng := rand.New(rand.NewPCG(1, 9))
	x, rows := normals(rng, n*d, 4), make([]int32, n)
	for r := range rows {
		rows[r] = int32(r)
	}
	first := normals(rng, k*d, 4)
	a, notes := &assigner{}, newRowNotes(n).(*rowNotes)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 1))
			got := &assignWork{at: make([]int32, n), squared: make([]float64, n)}
			want := &assignWork{at: make([]int32, n), squared: make([]float64, n)}
			for pass := range 60 {
				now := &centres{K: k, D: d, At: slices.Clone(first)}
				for j := range now.At {
					now.At[j] += rng.NormFloat64() / float64(1+pass*pass)
				}
				got.near.Set(now.At, k, d, nil)
				got.bounds.ask(&a.sets, now)
				findNoted(a, got, now, x, rows, notes, nil)
				kernel.FindNearest(&got.near, want.at, want.squared, x, rows, nil, nil)
				if !slices.Equal(got.at, want.at) || !slices.Equal(got.squared, want.squared) {
					t.Errorf("worker %d, pass %d: other centres, or other distances", worker, pass)
				}
			}
		})
	}
	wg.Wait()
}
