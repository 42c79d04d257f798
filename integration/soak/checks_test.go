package soak

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/volley-engine/volley/rdd"
)

// check is a question to a dataset, whose answer the reference knows.
type check struct {
	words string
	ask   func(b *built) func(context.Context, *rdd.Session) error
}

// asks is the check of what an action comes to.
func asks[R any](n *step, words string, action func(b *built) rdd.Action[R], right func(R) error) check {
	words = fmt.Sprintf("%s of d%d", words, n.id)
	return check{words, func(b *built) func(context.Context, *rdd.Session) error {
		a := action(b)
		return func(ctx context.Context, s *rdd.Session) error {
			got, err := a.Run(ctx, s)
			if err == nil {
				err = right(got)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", words, err)
			}
			return nil
		}
	}}
}

// sameTexts compares rows by their texts, as sets unless they are ordered.
func sameTexts(got, want []string, ordered bool) error {
	if !ordered {
		slices.Sort(got)
		slices.Sort(want)
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("of %d rows, want %d, row %d is %.300q, want %.300q", len(got), len(want), i, got[i],
				want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d rows, want %d", len(got), len(want))
	}
	return nil
}

// textsOf are rows as texts.
func textsOf[T any](rows []T, text func(T) string) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = text(r)
	}
	return out
}

// amongThem says that some rows are among others, each as often at most.
func amongThem(got, all []string) error {
	left := map[string]int{}
	for _, r := range all {
		left[r]++
	}
	for _, r := range got {
		if left[r]--; left[r] < 0 {
			return fmt.Errorf("%.200q is there too often, or should not be", r)
		}
	}
	return nil
}

// check is a question or two, the first of which reads all rows.
func (s staged[K, V]) check(d *draw) []check {
	k, n := s.k, s.n
	all := asks(n.step, "Collect", func(b *built) rdd.Action[[]row[K, V]] { return rdd.Collect(n.in(b)) },
		func(got []row[K, V]) error {
			return sameTexts(textsOf(got, k.text), textsOf(n.rows(), k.text), n.ordered)
		})
	out := []check{all}
	for _, i := range d.Perm(len(k.asked))[:min(3, len(k.asked))] {
		out = append(out, k.asked[i](d, k, n))
	}
	return out
}

type question[K comparable, V any] func(d *draw, k *kind[K, V], n *node[row[K, V]]) check

func questions[K comparable, V any]() []question[K, V] {
	return []question[K, V]{counted[K, V], taken[K, V], first[K, V], countedByKey[K, V], lookedUp[K, V], streamed[K, V],
		reducedToOne[K, V], aggregatedToOne[K, V],
		takenInOrder[K, V], drawnFrom[K, V], described[K, V], inBins[K, V], forEach[K, V], partsOf[K, V],
		savedText[K, V], savedTable[K, V], packed[K, V], iterated[K, V], differentKeys[K, V], failing[K, V]}
}

func counted[K comparable, V any](_ *draw, _ *kind[K, V], n *node[row[K, V]]) check {
	return asks(n.step, "Count", func(b *built) rdd.Action[int64] { return rdd.Count(n.in(b)) }, func(got int64) error {
		return equal(got, int64(len(n.rows())))
	})
}

func equal[T comparable](got, want T) error {
	if got != want {
		return fmt.Errorf("it is %v, want %v", got, want)
	}
	return nil
}

func taken[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) check {
	most := d.IntN(50)
	return asks(n.step, fmt.Sprint("Take ", most),
		func(b *built) rdd.Action[[]row[K, V]] { return rdd.Take(n.in(b), most) }, func(got []row[K, V]) error {
			want := n.rows()
			if n.ordered {
				return sameTexts(textsOf(got, k.text), textsOf(want[:min(most, len(want))], k.text), true)
			}
			if len(got) != min(most, len(want)) {
				return fmt.Errorf("%d rows of %d", len(got), len(want))
			}
			return amongThem(textsOf(got, k.text), textsOf(want, k.text))
		})
}

// first may be an error, and is one where there are no rows.
func first[K comparable, V any](_ *draw, k *kind[K, V], n *node[row[K, V]]) check {
	words := fmt.Sprintf("First of d%d", n.id)
	return check{words, func(b *built) func(context.Context, *rdd.Session) error {
		a := rdd.First(n.in(b))
		return func(ctx context.Context, s *rdd.Session) error {
			got, err := a.Run(ctx, s)
			want := textsOf(n.rows(), k.text)
			switch {
			case (err != nil) != (len(want) == 0):
				return fmt.Errorf("%s of %d rows: %w", words, len(want),
					errors.Join(err, errors.New("an error where there should be none, or none")))
			case err != nil:
				return nil
			case n.ordered:
				return equal(k.text(got), want[0])
			}
			return amongThem([]string{k.text(got)}, want)
		}
	}}
}

func countedByKey[K comparable, V any](_ *draw, k *kind[K, V], n *node[row[K, V]]) check {
	return asks(n.step, "CountByKey", func(b *built) rdd.Action[map[K]int64] { return rdd.CountByKey(n.in(b)) },
		func(got map[K]int64) error {
			var have, want []string
			for key, times := range got {
				have = append(have, fmt.Sprint(k.key.text(key), " ", times))
			}
			for _, g := range k.groups(n.rows()) {
				want = append(want, fmt.Sprint(g.text, " ", len(g.values)))
			}
			return sameTexts(have, want, false)
		})
}

func lookedUp[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) check {
	key := k.key.of(d.Uint64() % 300)
	return asks(n.step, fmt.Sprintf("Lookup %.50q", k.key.text(key)),
		func(b *built) rdd.Action[[]V] { return rdd.Lookup(n.in(b), key) }, func(got []V) error {
			return sameTexts(textsOf(got, k.value.text), textsOf(k.valuesOf(n.rows())[k.key.text(key)], k.value.text),
				n.ordered)
		})
}

func streamed[K comparable, V any](_ *draw, k *kind[K, V], n *node[row[K, V]]) check {
	words := fmt.Sprintf("ToSeq of d%d", n.id)
	return check{words, func(b *built) func(context.Context, *rdd.Session) error {
		rows := rdd.ToSeq(n.in(b))
		return func(ctx context.Context, s *rdd.Session) error {
			var got []string
			for r, err := range rows.Rows(ctx, s) {
				if err != nil {
					return fmt.Errorf("%s: %w", words, err)
				}
				got = append(got, k.text(r))
			}
			if err := sameTexts(got, textsOf(n.rows(), k.text), n.ordered); err != nil {
				return fmt.Errorf("%s: %w", words, err)
			}
			return nil
		}
	}}
}

// affine is a function of numbers; one after the other is another one, so that they can
// be put together in any way, but in one order only.
type affine struct{ by, plus uint64 }

func then(a, b affine) affine { return affine{a.by * b.by, a.plus*b.by + b.plus} }

// sum is what does not go by order.
func sum(a, b affine) affine { return affine{a.by + b.by, a.plus + b.plus} }

// together is an associative function for rows that have an order, or for those that
// have none.
func together(ordered bool) func(a, b affine) affine {
	if ordered {
		return then
	}
	return sum
}

func reducedToOne[K comparable, V any](_ *draw, k *kind[K, V], n *node[row[K, V]]) check {
	as := func(r row[K, V]) affine { return affine{k.digest(r) | 1, 3} }
	f := together(n.ordered)
	return asks(n.step, "Reduce", func(b *built) rdd.Action[affine] {
		one := rdd.Parallelize(b.g, 1, affine{5, 7}) // of nothing there is no Reduce
		return rdd.Reduce(rdd.Union(one, rdd.Map(n.in(b), as)), f)
	}, func(got affine) error {
		want := affine{5, 7}
		for _, r := range n.rows() {
			want = f(want, as(r))
		}
		return equal(got, want)
	})
}

func aggregatedToOne[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) check {
	zero := func() tally { return tally{} }
	add := func(a tally, r row[K, V]) tally { return tally{a.n + 1, a.sum + k.digest(r)} }
	declare := one(d, rdd.Aggregated[row[K, V], tally], rdd.TreeAggregate[row[K, V], tally])
	return asks(n.step, "Aggregated", func(b *built) rdd.Action[tally] {
		return declare(n.in(b), zero, add,
			addTallies)
	}, func(got tally) error {
		want := zero()
		for _, r := range n.rows() {
			want = add(want, r)
		}
		return equal(got, want)
	})
}

func takenInOrder[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) check {
	most := d.IntN(30)
	return asks(n.step, fmt.Sprint("TakeOrdered ", most),
		func(b *built) rdd.Action[[]row[K, V]] { return rdd.TakeOrdered(n.in(b), most, k.byText) },
		func(got []row[K, V]) error {
			want := sortedRows(n.rows(), k.byText)
			return sameTexts(textsOf(got, k.text), textsOf(want[:min(most, len(want))], k.text), true)
		})
}

func drawnFrom[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) check {
	most, seed := d.IntN(30), d.Uint64()
	return asks(n.step, fmt.Sprint("TakeSample ", most),
		func(b *built) rdd.Action[[]row[K, V]] { return rdd.TakeSample(n.in(b), most, seed) },
		func(got []row[K, V]) error {
			if want := min(most, len(n.rows())); len(got) != want {
				return fmt.Errorf("%d rows, want %d", len(got), want)
			}
			return amongThem(textsOf(got, k.text), textsOf(n.rows(), k.text))
		})
}

// numbersOf are rows as small whole numbers, whose sums are exact.
func (k *kind[K, V]) numbersOf(r row[K, V]) float64 { return float64(k.digest(r) % 1000) }

func described[K comparable, V any](_ *draw, k *kind[K, V], n *node[row[K, V]]) check {
	return asks(n.step, "Stats", func(b *built) rdd.Action[rdd.Summary] {
		return rdd.Stats(rdd.Map(n.in(b),
			k.numbersOf))
	}, func(got rdd.Summary) error {
		least, most, sum := math.Inf(1), math.Inf(-1), 0.0
		for _, r := range n.rows() {
			x := k.numbersOf(r)
			least, most, sum = min(least, x), max(most, x), sum+x
		}
		if len(n.rows()) == 0 {
			return equal(got.Count, 0)
		}
		if math.Abs(got.Sum()-sum) > 1e-9*sum {
			return fmt.Errorf("the sum is %v, want %v", got.Sum(), sum)
		}
		return equal([3]float64{float64(got.Count), got.Min, got.Max}, [3]float64{float64(len(n.rows())), least, most})
	})
}

func inBins[K comparable, V any](_ *draw, k *kind[K, V], n *node[row[K, V]]) check {
	return asks(n.step, "Histogram", func(b *built) rdd.Action[rdd.Bins] {
		return rdd.Histogram(rdd.Map(n.in(b),
			k.numbersOf), 10, 300, 900)
	}, func(got rdd.Bins) error {
		var want [2]int64
		for _, r := range n.rows() {
			switch x := k.numbersOf(r); {
			case x >= 10 && x < 300:
				want[0]++
			case x >= 300 && x <= 900:
				want[1]++
			}
		}
		return equal([2]int64(got.Counts), want)
	})
}

func forEach[K comparable, V any](_ *draw, _ *kind[K, V], n *node[row[K, V]]) check {
	return asks(n.step, "ForEach", func(b *built) rdd.Action[int64] {
		return rdd.ForEach(n.in(b), func(row[K, V]) error { return nil })
	}, func(got int64) error { return equal(got, int64(len(n.rows()))) })
}

// partsOf asks for partitions, where they are promised.
func partsOf[K comparable, V any](_ *draw, k *kind[K, V], n *node[row[K, V]]) check {
	if !n.cut || !n.ordered {
		return counted(nil, k, n)
	}
	text := func(rows []row[K, V]) string { return joined(rows, k.text) }
	return asks(n.step, "Glom", func(b *built) rdd.Action[[][]row[K, V]] { return rdd.Collect(rdd.Glom(n.in(b))) },
		func(got [][]row[K, V]) error {
			return sameTexts(textsOf(got, text), textsOf(n.refer(), text), true)
		})
}

// differentKeys is about right.
func differentKeys[K comparable, V any](_ *draw, k *kind[K, V], n *node[row[K, V]]) check {
	return asks(n.step, "CountApproxDistinct",
		func(b *built) rdd.Action[int64] { return rdd.CountApproxDistinct(rdd.Keys(n.in(b))) }, func(got int64) error {
			want := len(k.groups(n.rows()))
			if off := math.Abs(float64(got) - float64(want)); off > 2+0.03*float64(want) {
				return fmt.Errorf("it is %d, want about %d", got, want)
			}
			return nil
		})
}

// errWrong is what a user's function says.
var errWrong = errors.New("this row is not to my taste")

// failing has a function fail at some rows: so does the action, and the job with it.
func failing[K comparable, V any](_ *draw, k *kind[K, V], n *node[row[K, V]]) check {
	bad := func(r row[K, V]) bool { return k.digest(r)%8 == 0 }
	words := fmt.Sprintf("Count of a MapErr that fails of d%d", n.id)
	return check{words, func(b *built) func(context.Context, *rdd.Session) error {
		a := rdd.Count(rdd.MapErr(n.in(b), func(r row[K, V]) (row[K, V], error) {
			if bad(r) {
				return r, errWrong
			}
			return r, nil
		}))
		b.asked = append(b.asked, func(ctx context.Context, s *rdd.Session) error {
			got, err := a.Run(ctx, s)
			if slices.ContainsFunc(n.rows(), bad) {
				if err == nil || !strings.Contains(err.Error(), errWrong.Error()) {
					return fmt.Errorf("%s: %d, %v: the function's error is not there", words, got, err)
				}
				return errEnded
			}
			return errors.Join(err, equal(got, int64(len(n.rows()))))
		})
		return nothingToAsk
	}}
}

// errEnded says that the job has failed, as it had to.
var errEnded = errors.New("the job has ended")

func nothingToAsk(context.Context, *rdd.Session) error { return nil }
