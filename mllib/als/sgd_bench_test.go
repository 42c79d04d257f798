package als

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/volley-engine/volley/internal/kernel"
)

// BenchmarkDescent makes the steps of a block's ratings, of users who have five each in it.
func BenchmarkDescent(b *testing.B) {
	const users, items, each = 20_000, 4_000, 5
	for _, rank := range []int{8, 10, 32} {
		rng := rand.New(rand.NewPCG(1, 2))
		n := rank + kernel.OwnNumbers
		var of block
		for range each * users {
			of.ratings = append(of.ratings, kernel.Rating{Row: int32(rng.IntN(users)),
				Column: int32(rng.IntN(items)), Value: rng.NormFloat64()})
		}
		slices.SortFunc(of.ratings, func(a, b kernel.Rating) int { return cmp.Compare(a.Row, b.Row) })
		at := make([]float64, users*n)
		of.now = make([]float64, items*n)
		for i := range at {
			at[i] = 0.1 * rng.NormFloat64()
		}
		for i := range of.now {
			of.now[i] = 0.1 * rng.NormFloat64()
		}
		for i := range users {
			at[(i+1)*n-1] = 1
		}
		for i := range items {
			of.now[(i+1)*n-1] = 1
		}
		d := descent{Rank: rank, Reg: 0.05, Rate: 0.1, Biases: true}
		b.Run("rank="+strconv.Itoa(rank), func(b *testing.B) {
			for b.Loop() {
				d.descend(at, of.now, of.ratings, 1e-3, func(int) {})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(of.ratings)), "ns/rating")
		})
	}
}
