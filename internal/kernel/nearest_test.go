package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func checkNearest[T Float](t *testing.T, rng *rand.Rand, n, d, k int) {
	x, shift, rows := data[T](rng, n, d)
	centres, scale := numbers(rng, k*d), numbers(rng, n)
	copy(centres[(k-1)*d:], centres[:d]) // the first counts
	var near Nearest
	at, squared, second, again := make([]int32, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for _, how := range []string{"as they are", "shifted", "scaled"} {
		by, times := shift, scale
		if how != "shifted" {
			by = nil
		}
		if how != "scaled" {
			times = nil
		}
		near.Set(centres, k, d, by)
		FindNearestTwo(&near, at, squared, second, x, rows, by, times)
		FindDistances(&near, at, again, x, rows, by, times)
		for i, r := range rows {
			row := make([]float64, d)
			var norm float64
			for j := range d {
				row[j] = float64(x[int(r)*d+j])
				if by != nil {
					row[j] -= by[j]
				}
				if times != nil {
					row[j] *= times[i]
				}
				norm = math.FMA(row[j], row[j], norm)
			}
			best, next, where := math.Inf(1), math.Inf(1), 0
			for c := range k {
				var own, p float64
				for j := range d {
					v := centres[c*d+j]
					if by != nil {
						v -= by[j]
					}
					own, p = math.FMA(v, v, own), math.FMA(v, row[j], p)
				}
				if v := math.FMA(-2, p, own); v < best {
					best, next, where = v, best, c
				} else {
					next = min(next, v)
				}
			}
			if int(at[i]) != where || math.Float64bits(squared[i]) != math.Float64bits(max(0, norm+best)) {
				t.Fatalf("%s, %d × %d, %d centres: row %d is nearest to %d at %v, want %d at %v", how, n, d, k, i,
					at[i], squared[i], where, max(0, norm+best))
			}
			if second[i] != max(0, norm+next) || math.Float64bits(again[i]) != math.Float64bits(squared[i]) {
				t.Fatalf("%s, %d × %d, %d centres: row %d is at %v of the second, want %v, and by itself at %v of "+
					"the nearest, want %v", how, n, d, k, i, second[i], max(0, norm+next), again[i], squared[i])
			}
		}
	}
}

func TestNearestIsItsDefinition(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(2, 8))
		for _, d := range []int{1, 2, 5, 8, 20, 33} {
			for _, k := range []int{1, 2, 4, 8, 9, 30} {
				checkNearest[float64](t, rng, 50, d, k)
				checkNearest[float32](t, rng, 25, d, k)
			}
		}
	})
}

// Reported per second: the floating-point operations of the products, two a
// multiply-add.
func BenchmarkNearest(b *testing.B) {
	for _, size := range [][2]int{{20, 10}, {50, 20}, {50, 100}, {200, 100}} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			d, k := size[0], size[1]
			rng := rand.New(rand.NewPCG(1, 1))
			const n = 1024
			x, _, rows := data[float64](rng, n, d)
			centres, at, squared := numbers(rng, k*d), make([]int32, n), make([]float64, n)
			var near Nearest
			b.SetBytes(int64(2 * n * d * k))
			for b.Loop() {
				near.Set(centres, k, d, nil)
				FindNearest(&near, at, squared, x, rows, nil, nil)
			}
		})
	}
}

func TestRowsAreAddedInTurn(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(4, 4))
		for _, d := range []int{1, 2, 7, 8, 9, 16, 31} {
			x, _, rows := data[float64](rng, 60, d)
			const k = 5
			sums, at := numbers(rng, k*d), make([]int32, len(rows))
			want := append([]float64(nil), sums...)
			for i, r := range rows {
				at[i] = rng.Int32N(k)
				for j := range d {
					want[int(at[i])*d+j] += x[int(r)*d+j]
				}
			}
			again, single := append([]float64(nil), sums...), make([]float32, len(x))
			for i, v := range x {
				single[i] = float32(v)
			}
			AddRows(sums, at, x, rows, d)
			AddRows(again, at, single, rows, d)
			for i, v := range again {
				if math.Abs(v-sums[i]) > 1e-4 {
					t.Fatalf("%d columns in single precision: sum %d is %v, want about %v", d, i, v, sums[i])
				}
			}
			for i, v := range sums {
				if math.Float64bits(v) != math.Float64bits(want[i]) {
					t.Fatalf("%d columns: sum %d is %v, want %v", d, i, v, want[i])
				}
			}
		}
	})
}
