package als

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
)

// BenchmarkALSSolve solves eight rows of a rank from a number of ratings each; MB/s are millions of
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
			s := &rowSolver{config: Config{Rank: c.rank, Reg: 0.1}}
			rows := &rdd.Batch{Offsets: []int32{0}}
			for r := range int32(8) {
				for range c.ratings {
					rows.Indices = append(rows.Indices, int32(rng.IntN(items)))
					rows.X64 = append(rows.X64, rng.Float64())
				}
				rows.Rows, rows.Labels = append(rows.Rows, r), append(rows.Labels, float64(r))
				rows.Offsets = append(rows.Offsets, int32(len(rows.Indices)))
			}
			f, n := int64(c.rank), int64(c.ratings)
			b.SetBytes(8 * (n*f*(f+1) + f*f*f/3))
			for b.Loop() {
				s.addRows(solved{}, *p, rows)
			}
		})
	}
}
