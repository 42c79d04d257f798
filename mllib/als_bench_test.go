package mllib

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/volley-engine/volley/internal/kernel"
)

// BenchmarkALSSolve solves rows of a rank from so many ratings; MB/s are millions of
// floating-point operations a second: half a product of rank × rank for each rating,
// and a third of rank³ for the factorization. BenchmarkPeak of internal/kernel is the
// machine's limit.
func BenchmarkALSSolve(b *testing.B) {
	for _, c := range []struct{ rank, ratings int }{{10, 25}, {64, 100}, {64, 500}} {
		b.Run(fmt.Sprint(c), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			const items = 5000
			p := &factors{Rank: c.rank, At: make([]float64, items*c.rank+kernel.GramSlack), Count: items}
			for i := range p.At {
				p.At[i] = rng.NormFloat64()
			}
			p.At = p.At[:items*c.rank]
			indices, ratings := make([]int32, c.ratings), make([]float64, c.ratings)
			for i := range indices {
				indices[i], ratings[i] = int32(rng.IntN(items)), rng.Float64()
			}
			s := &rowSolver{config: ALSConfig{Rank: c.rank, Reg: 0.1}}
			w := &solveWork{}
			w.fit(c.rank)
			f, n := int64(c.rank), int64(c.ratings)
			b.SetBytes(n*f*(f+1) + f*f*f/3)
			for b.Loop() {
				s.solve(w, p, indices, ratings)
			}
		})
	}
}
