package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestStepsAreTheirDefinition: on each path they have the plain code's bits, which are near what one number after
// another would have them; and the same however ratings are cut between rows.
func TestStepsAreTheirDefinition(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 6))
		for _, rank := range []int{1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 16, 17, 31, 64, 100} {
			for _, own := range []bool{false, true} {
				d := &Descent{Rank: rank, Mean: 0.5, Rate: 0.1, Reg: 0.2, Own: own}
				const rows, columns = 7, 5
				a, b := numbers(rng, rows*(rank+OwnNumbers)), numbers(rng, columns*(rank+OwnNumbers))
				for i := range a {
					a[i] = math.Abs(a[i]) / math.Sqrt(float64(rank))
				}
				for i := range b {
					b[i] = math.Abs(b[i]) / math.Sqrt(float64(rank))
				}
				var all []Rating
				for range 60 {
					all = append(all, Rating{int32(rng.IntN(rows)), int32(rng.IntN(columns)), rng.NormFloat64()})
				}
				slices.SortStableFunc(all, func(x, y Rating) int { return int(x.Row - y.Row) })
				name := fmt.Sprint(path, " ", rank, " ", own)
				gotA, gotB := slices.Clone(a), slices.Clone(b)
				got := d.Steps(gotA, gotB, all)
				wantA, wantB := slices.Clone(a), slices.Clone(b)
				used := path
				path = "go"
				want := d.Steps(wantA, wantB, all)
				path = used
				sameBits(t, name, append(gotA, got), append(wantA, want))
				sameBits(t, name, gotB, wantB)
				naive := d.naive(a, b, all)
				for i := range wantA {
					if math.Abs(a[i]-wantA[i]) > 1e-9*math.Max(1, math.Abs(a[i])) {
						t.Fatalf("%s: number %d of rows is %v, one after another %v", name, i, wantA[i], a[i])
					}
				}
				for i := range wantB {
					if math.Abs(b[i]-wantB[i]) > 1e-9*math.Max(1, math.Abs(b[i])) {
						t.Fatalf("%s: number %d of columns is %v, one after another %v", name, i, wantB[i], b[i])
					}
				}
				if math.Abs(naive-want) > 1e-9*want {
					t.Errorf("%s: squared errors of %v, want %v", name, want, naive)
				}
			}
		}
		d := &Descent{Rank: 3}
		for _, r := range []Rating{{Row: 2}, {Column: 2}, {Row: -1}, {Column: -1}} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%v is taken, of two rows and columns", r)
					}
				}()
				d.Steps(make([]float64, 10), make([]float64, 10), []Rating{r})
			}()
		}
	})
}

// naive makes steps by their formulas (Koren et al. 2009, section 4; rates of Chin et al. 2015).
func (d *Descent) naive(rows, columns []float64, all []Rating) (squares float64) {
	n, last, rate := d.Rank+OwnNumbers, int32(-1), 0.0
	for _, r := range all {
		u, i := rows[int(r.Row)*n:][:n], columns[int(r.Column)*n:][:n]
		if r.Row != last {
			last, rate = r.Row, d.Rate/math.Sqrt(1+u[d.Rank+1])
		}
		other := d.Rate / math.Sqrt(1+i[d.Rank+1])
		e := r.Value - d.Mean - u[d.Rank] - i[d.Rank]
		for k := range d.Rank {
			e -= u[k] * i[k]
		}
		squares += e * e
		for k := range d.Rank {
			gu, gi := e*i[k]-d.Reg*u[k], e*u[k]-d.Reg*i[k]
			u[k] += rate * gu
			i[k] += other * gi
			u[d.Rank+1] += gu * gu / float64(d.Rank)
			i[d.Rank+1] += gi * gi / float64(d.Rank)
		}
		if d.Own {
			u[d.Rank] += rate * (e - d.Reg*u[d.Rank])
			i[d.Rank] += other * (e - d.Reg*i[d.Rank])
		}
	}
	return squares
}
