package soak

import (
	"context"
	"errors"
	"fmt"

	"github.com/volley-engine/volley/rdd"
)

// packed folds, estimates and looks at a pack, which rows that have moved cannot be
// laid out in.
func packed[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) check {
	if n.moved {
		return counted(d, k, n)
	}
	splits, by := 1+d.IntN(6), float64(1+d.IntN(5))
	words := fmt.Sprintf("Aggregate, EstimateOf and Prefix of a Pack in %d splits of d%d", splits, n.id)
	return check{words, func(b *built) func(context.Context, *rdd.Session) error {
		one := rdd.Parallelize(b.g, 1, 1.0) // a pack of nothing is refused
		pk := rdd.Pack(rdd.Union(one, rdd.Map(n.in(b), k.numbersOf)), rdd.Splits(splits))
		sum := rdd.Aggregate(pk, rdd.Aggregator[float64, float64, float64]{
			Zero: func(float64) float64 { return 0 }, Add: func(a, by, x float64) float64 { return a + by*x },
			Merge: func(a, b float64) float64 { return a + b },
		})
		estimate := rdd.EstimateOf(pk, 0.9, func(x float64) (float64, bool) { return x, x >= 500 })
		prefix := rdd.Prefix(pk, 10)
		return func(ctx context.Context, s *rdd.Session) error {
			total, err := sum.Run(ctx, s, by)
			e, err2 := estimate.Run(ctx, s)
			some, err3 := prefix.Run(ctx, s)
			if err := errors.Join(err, err2, err3); err != nil {
				return fmt.Errorf("%s: %w", words, err)
			}
			if err := k.packIs(n.rows(), by, total, e, some); err != nil {
				return fmt.Errorf("%s: %w", words, err)
			}
			return nil
		}
	}}
}

// packIs compares what a pack has come to.
func (k *kind[K, V]) packIs(rows []row[K, V], by, total float64, e rdd.Estimate, some []float64) error {
	all, large, count := []float64{1}, 0.0, 0.0
	for _, r := range rows {
		x := k.numbersOf(r)
		if all = append(all, x); x >= 500 {
			large, count = large+x, count+1
		}
	}
	want := 0.0
	for _, x := range all {
		want += by * x
	}
	text := func(x float64) string { return fmt.Sprint(x) }
	return errors.Join(equal(total, want), equal(e.Count.Value, count), equal(e.Coverage, 1), about(e.Sum.Value, large),
		amongThem(textsOf(some, text), textsOf(all, text)))
}

func about(got, want float64) error {
	if diff := got - want; diff > 1e-9*want || -diff > 1e-9*want {
		return fmt.Errorf("it is %v, want %v", got, want)
	}
	return nil
}

// iterated runs a loop whose state survives, an action under a parameter at each turn.
func iterated[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) check {
	turns := d.IntN(4)
	words := fmt.Sprintf("%d Iterations of Aggregated of MapWith of d%d", turns, n.id)
	turn := func(r row[K, V], salt uint64) uint64 { return both(k.digest(r), salt) }
	return check{words, func(b *built) func(context.Context, *rdd.Session) error {
		p := rdd.NewParam[uint64](b.g, fmt.Sprint("turn ", len(b.made)))
		a := rdd.Fold(rdd.MapWith(n.in(b), p, turn), 0, func(a, b uint64) uint64 { return a + b })
		return func(ctx context.Context, s *rdd.Session) error {
			var state, want uint64
			for range rdd.Iterations(ctx, s, &state, turns) {
				if err := p.Set(s, state); err != nil {
					return err
				}
				got, err := a.Run(ctx, s)
				if err != nil {
					return fmt.Errorf("%s: %w", words, err)
				}
				state = both(state, got)
			}
			for range turns {
				var sum uint64
				for _, r := range n.rows() {
					sum += turn(r, want)
				}
				want = both(want, sum)
			}
			if err := errors.Join(s.Err(), equal(state, want)); err != nil {
				return fmt.Errorf("%s: %w", words, err)
			}
			return nil
		}
	}}
}
