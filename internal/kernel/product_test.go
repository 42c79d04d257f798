package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// onEveryPath runs a test on each set of instructions, and skips those that this CPU
// does not have.
func onEveryPath(t *testing.T, test func(t *testing.T)) {
	machine := path
	defer func() { path = machine }()
	for _, p := range []string{"go", "avx2", "avx512"} {
		t.Run(p, func(t *testing.T) {
			if p == "avx512" && machine != "avx512" || p == "avx2" && machine == "go" {
				t.Skipf("this CPU has no %s", p)
			}
			path = p
			test(t)
		})
	}
}

func numbers(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return x
}

func TestProductIsItsDefinition(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, 8))
		var p Product
		for _, size := range [][3]int{{1, 1, 1}, {3, 5, 2}, {8, 24, 16}, {9, 25, 300}, {17, 50, 33}, {40, 13, 600},
			{100, 7, 1}} {
			m, n, k := size[0], size[1], size[2]
			a, b := RowMajor(numbers(rng, m*k), m, k), RowMajor(numbers(rng, n*k), n, k).T()
			got := numbers(rng, m*n)
			want := append([]float64(nil), got...)
			p.Add(RowMajor(got, m, n), a, b)
			for i := range m {
				for j := range n {
					for s := range k {
						want[i*n+j] = math.FMA(a.Data[i*k+s], b.Data[j*k+s], want[i*n+j])
					}
				}
			}
			sameBits(t, fmt.Sprint(size), got, want)
		}
	})
}

func checkGram[T Float](t *testing.T, rng *rand.Rand, n, d int) {
	x, _, rows := data[T](rng, n, d)
	weight := numbers(rng, n)
	var p Product
	for _, shift := range [][]float64{nil, numbers(rng, d)} {
		got, want := make([]float64, (d+1)*(d+1)), make([]float64, (d+1)*(d+1))
		Gram(&p, got, weight, x, rows, shift, d)
		for i, r := range rows {
			one := make([]float64, d+1)
			for j := range d {
				one[j] = float64(x[int(r)*d+j])
				if shift != nil {
					one[j] -= shift[j]
				}
			}
			one[d] = 1
			for a := range one {
				v := float64(weight[i] * one[a])
				for b := a; b <= d; b++ {
					want[a*(d+1)+b] = math.FMA(v, one[b], want[a*(d+1)+b])
				}
			}
		}
		for a := range d + 1 {
			sameBits(t, fmt.Sprint("row ", a, " of ", d), got[a*(d+1)+a:(a+1)*(d+1)], want[a*(d+1)+a:(a+1)*(d+1)])
		}
	}
}

func TestGramRowsIsItsDefinition(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(9, 1))
		for _, d := range []int{1, 3, 8, 10, 12, 23, 24, 25, 64} {
			x, _, rows := data[float64](rng, 70, d)
			x = append(x, make([]float64, GramSlack)...)
			for _, weight := range [][]float64{nil, numbers(rng, 70)} {
				got := numbers(rng, d*d)
				want := append([]float64(nil), got...)
				GramRows(got, weight, x, rows, d)
				for k, r := range rows {
					for i := range d {
						v := x[int(r)*d+i]
						if weight != nil {
							v = float64(v * weight[k])
						}
						for j := i; j < d; j++ {
							want[i*d+j] = math.FMA(v, x[int(r)*d+j], want[i*d+j])
						}
					}
				}
				for i := range d {
					sameBits(t, fmt.Sprint("row ", i, " of ", d), got[i*d+i:(i+1)*d], want[i*d+i:(i+1)*d])
				}
			}
		}
	})
}

// TestSparseGramIsTheDenseOne, to rounding.
func TestSparseGramIsTheDenseOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const n, d = 60, 30
	m := Sparse[float64]{Offsets: []int32{0}}
	dense, rows := make([]float64, n*d), make([]int32, n)
	for r := range n {
		for j := range d {
			if rng.IntN(5) == 0 {
				dense[r*d+j] = rng.NormFloat64()
				m.Indices, m.Values = append(m.Indices, int32(j)), append(m.Values, dense[r*d+j])
			}
		}
		m.Offsets, rows[r] = append(m.Offsets, int32(len(m.Indices))), int32(r)
	}
	weight := numbers(rng, n)
	got, want := make([]float64, (d+1)*(d+1)), make([]float64, (d+1)*(d+1))
	SparseGram(got, weight, m, rows, d)
	var p Product
	Gram(&p, want, weight, dense, rows, nil, d)
	for a := range d + 1 {
		for b := a; b <= d; b++ {
			if k := a*(d+1) + b; math.Abs(got[k]-want[k]) > 1e-12 {
				t.Fatalf("entry (%d, %d) is %v, want %v", a, b, got[k], want[k])
			}
		}
	}
}

func TestCholeskySolves(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, n := range []int{1, 2, 9, 40} {
		x := numbers(rng, 2*n*n)
		a := make([]float64, n*n)
		for r := range 2 * n {
			for i := range n {
				for j := range n {
					a[i*n+j] += x[r*n+i] * x[r*n+j]
				}
			}
		}
		want, b := numbers(rng, n), make([]float64, n)
		for i := range n {
			for j := range n {
				b[i] += a[i*n+j] * want[j]
			}
		}
		Cholesky(a, n)
		Solve(a, b, n)
		for i := range b {
			if math.Abs(b[i]-want[i]) > 1e-8 {
				t.Fatalf("n = %d: x[%d] = %v, want %v", n, i, b[i], want[i])
			}
		}
	}
	a, b := []float64{1, 1, 0, 1, 1, 0, 0, 0, 4}, []float64{2, 2, 8} // the second column is the first
	Cholesky(a, 3)
	Solve(a, b, 3)
	sameBits(t, "a singular system", b, []float64{2, 0, 2})
}

// TestLossesAreDerived holds derivatives against finite differences.
func TestLossesAreDerived(t *testing.T) {
	const h = 1e-6
	for _, f := range []Loss{{}, {Kind: HingeLoss, Width: 0.5}, {Kind: SquaredHingeLoss}, {Kind: SquaredLoss},
		{Weights: [2]float64{2, 0.5}},
		{Kind: HingeLoss, Width: 0.5, Weights: [2]float64{2, 0.5}}} {
		value := func(z, y float64) (smooth, coef, curve float64) {
			var c, l, k [1]float64
			f.Derive(c[:], l[:], []float64{z}, 0.25, []float64{y})
			f.Curve(k[:], c[:], []float64{z}, 0.25, []float64{y})
			return l[0] + f.Smoothing(0, []float64{z}, 0.25, []float64{y}), c[0], k[0]
		}
		for _, z := range []float64{-3, -0.93, 0.1, 0.4, 0.6, 1.3, 4} {
			for y := range 2 {
				_, coef, curve := value(z, float64(y))
				up, upper, _ := value(z+h, float64(y))
				down, lower, _ := value(z-h, float64(y))
				if math.Abs((up-down)/(2*h)-coef) > 1e-6 || math.Abs((upper-lower)/(2*h)-curve) > 1e-6 {
					t.Errorf("%+v at %v, label %d: derivatives %v and %v, differences %v and %v", f, z, y, coef, curve,
						(up-down)/(2*h), (upper-lower)/(2*h))
				}
			}
		}
	}
}

func TestGramIsItsDefinition(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(9, 8))
		for _, d := range []int{1, 2, 7, 8, 12, 13, 24, 25, 50, 100} {
			for _, n := range []int{1, 5, 130, 300} {
				checkGram[float64](t, rng, n, d)
				checkGram[float32](t, rng, n, d)
			}
		}
	})
}

// Reported per second: the floating-point operations of the product, two a
// multiply-add.
func BenchmarkProduct(b *testing.B) {
	for _, size := range [][3]int{{128, 24, 256}, {1024, 100, 200}, {1024, 20, 50}, {1024, 100, 50}} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m, n, k := size[0], size[1], size[2]
			rng := rand.New(rand.NewPCG(1, 1))
			x, y, c := numbers(rng, m*k), numbers(rng, k*n), make([]float64, m*n)
			var p Product
			b.SetBytes(int64(2 * m * n * k))
			for b.Loop() {
				p.Add(RowMajor(c, m, n), RowMajor(x, m, k), RowMajor(y, k, n))
			}
		})
	}
}

func BenchmarkGram(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	const n, d = 1024, 100
	x, _, rows := data[float64](rng, n, d)
	weight, h := numbers(rng, n), make([]float64, (d+1)*(d+1))
	var p Product
	b.SetBytes(n * d * (d + 1)) // the operations of the triangle
	for b.Loop() {
		Gram(&p, h, weight, x, rows, nil, d)
	}
}

// BenchmarkPeak is a tile whose numbers never leave the nearest cache: the
// operations that the units can do.
func BenchmarkPeak(b *testing.B) {
	tall, wide := tile()
	const k = 128
	rng := rand.New(rand.NewPCG(1, 1))
	left, right, c := numbers(rng, k*tall), numbers(rng, k*wide), make([]float64, tall*wide)
	b.SetBytes(int64(2 * tall * wide * k))
	for b.Loop() {
		multiply(c, wide, left, tall, right, k)
	}
}

func BenchmarkSparseGram(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	const n, d, each = 1024, 123, 14
	m := Sparse[float64]{Offsets: []int32{0}}
	rows := make([]int32, n)
	for r := range n {
		for k := range each {
			m.Indices, m.Values = append(m.Indices, int32(k*8+rng.IntN(8))), append(m.Values, 1)
		}
		m.Offsets, rows[r] = append(m.Offsets, int32(len(m.Indices))), int32(r)
	}
	weight, h := numbers(rng, n), make([]float64, (d+1)*(d+1))
	b.SetBytes(n * each * (each + 1)) // the operations of the triangle
	for b.Loop() {
		SparseGram(h, weight, m, rows, d)
	}
}
