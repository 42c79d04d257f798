package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func BenchmarkDenseGradient(b *testing.B) {
	for _, n := range []int{1000, 200_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			const d = 100
			x, w, _ := data[float64](rng, n, d)
			b.SetBytes(int64(n) * d * 8)
			sum := make([]float64, d)
			var y [256]float64
			var acc Losses
			var rows [256]int32
			for b.Loop() {
				for p := 0; p+256 <= n; p += 256 {
					for i := range rows {
						rows[i] = int32((p+i)&3*(n/4) + (p+i)>>2)
					}
					Gradient(&acc, Loss{}, sum, w, 0, x, rows[:], y[:])
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	x := make([]float64, 20_000_000)
	for i := range x {
		x[i] = 1
	}
	b.SetBytes(int64(len(x)) * 8)
	for b.Loop() {
		ReadStreams(x)
	}
}
