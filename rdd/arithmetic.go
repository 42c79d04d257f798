package rdd

import (
	"context"
	"math"
	"reflect"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd/internal/exec"
)

// total is a sum: of whole numbers, in 128 bits; of others, with what rounding has left out of it (Neumaier).
type total struct {
	Hi        int64
	Lo        uint64
	Sum, Lost float64
}

func (t total) addFloat(x float64) total {
	sum := t.Sum + x
	if math.Abs(t.Sum) >= math.Abs(x) {
		t.Lost += (t.Sum - sum) + x
	} else {
		t.Lost += (x - sum) + t.Sum
	}
	t.Sum = sum
	return t
}

func (t total) addWhole(hi int64, lo uint64) total {
	before := t.Lo
	if t.Lo += lo; t.Lo < before {
		t.Hi++
	}
	t.Hi += hi
	return t
}

func (t total) join(o total) total {
	out := t.addWhole(o.Hi, o.Lo).addFloat(o.Sum)
	out.Lost += o.Lost
	return out
}

// float returns the sum of floats. What is left out has no value where a sum is infinite.
func (t total) float() float64 {
	if sum := t.Sum + t.Lost; sum-sum == 0 {
		return sum
	}
	return t.Sum
}

// kindOf reports whether a type of numbers is of floats, and whether it is of whole numbers that have no sign.
func kindOf[N Number]() (float, unsigned bool) {
	one, two := N(1), N(2)
	var zero N
	return one/two != 0, zero-one > 0
}

// adder returns what adds a number to a total.
func adder[N Number]() func(t total, x N) total {
	float, unsigned := kindOf[N]()
	add := func(t total, x N) total { return t.addWhole(int64(x)>>63, uint64(int64(x))) }
	switch {
	case float:
		add = func(t total, x N) total { return t.addFloat(float64(x)) }
	case unsigned:
		add = func(t total, x N) total { return t.addWhole(0, uint64(x)) }
	}
	return add
}

// numberOf returns a total as a number, where its type has it.
func numberOf[N Number](t total) (N, error) {
	float, unsigned := kindOf[N]()
	if float {
		return N(t.float()), nil
	}
	sum := N(t.Lo)
	fits := t.Hi == int64(t.Lo)>>63 && int64(sum) == int64(t.Lo)
	if unsigned {
		fits = t.Hi == 0 && uint64(sum) == t.Lo
	}
	if !fits {
		return 0, fault.Newf(fault.BadInput, "compute", "the sum", "it is no %v", reflect.TypeFor[N]()).
			WithHint("Map the numbers to float64, or to a wider type, first")
	}
	return sum, nil
}

func noTotal() total { return total{} }

// Sum adds up numbers; of none the sum is zero. A sum of whole numbers that their type does not have is an error: it
// does not wrap round. Sums of floats are compensated: they are those of 64 bits more, rounded.
func Sum[N Number](ds Dataset[N]) Action[N] {
	return thenErr(Aggregated(ds, noTotal, adder[N](), total.join), numberOf[N])
}

// Mean returns the arithmetic mean of numbers; of none there is none, which is an error.
func Mean[N Number](ds Dataset[N]) Action[float64] {
	all := Aggregated(ds, func() moments { return moments{} },
		func(m moments, x N) moments { return m.add(float64(x)) }, moments.join)
	return thenErr(all, func(m moments) (float64, error) {
		if m.N == 0 {
			return 0, isEmpty("the mean")
		}
		return m.Mean, nil
	})
}

func isEmpty(what string) error {
	return fault.Newf(fault.BadInput, "compute", what, "the dataset is empty")
}

// Max returns the greatest row; of none there is none, which is an error. Numbers are greater than NaN.
func Max[T Ordered](ds Dataset[T]) Action[T] {
	return extreme(ds, "the greatest row", exec.KeyOrderOf[T](true))
}

// Min returns the least row; of none there is none, which is an error. NaN comes before all numbers.
func Min[T Ordered](ds Dataset[T]) Action[T] {
	return extreme(ds, "the least row", exec.KeyOrderOf[T](false))
}

func extreme[T Ordered](ds Dataset[T], what string, order exec.KeyOrder[T]) Action[T] {
	return thenErr(TakeOrdered(ds, 1, order.Cmp), func(first []T) (T, error) {
		if len(first) == 0 {
			var none T
			return none, isEmpty(what)
		}
		return first[0], nil
	})
}

// IsEmpty reports whether a dataset has no row. It reads no more of it than it needs to.
func IsEmpty[T any](ds Dataset[T]) Action[bool] {
	return Then(Take(ds, 1), func(first []T) bool { return len(first) == 0 })
}

// thenErr returns an action whose result is f of another's result.
func thenErr[R, Q any](a Action[R], f func(R) (Q, error)) Action[Q] {
	return Action[Q]{g: a.g, id: a.id, name: a.name, run: func(ctx context.Context, s *Session) (q Q, err error) {
		r, err := a.run(ctx, s)
		if err != nil {
			return q, err
		}
		return f(r)
	}}
}

// SumByKey does what Sum does, for the numbers of each key.
func SumByKey[K comparable, N Number](ds Dataset[Pair[K, N]], options ...ShuffleOption) Dataset[Pair[K, N]] {
	totals := AggregateByKey(ds, noTotal, adder[N](), total.join, options...)
	return preservesPartitioning(totals.spread, MapErr(totals, func(p Pair[K, total]) (Pair[K, N], error) {
		sum, err := numberOf[N](p.Value)
		return Pair[K, N]{Key: p.Key, Value: sum}, err
	}))
}

// StatsByKey describes the numbers of each key in one pass.
func StatsByKey[K comparable, N Number](ds Dataset[Pair[K, N]], options ...ShuffleOption) Dataset[Pair[K, Summary]] {
	all := AggregateByKey(ds, func() moments { return moments{} },
		func(m moments, x N) moments { return m.add(float64(x)) }, moments.join, options...)
	return MapValues(all, moments.summary)
}

// MaxByKey returns of each key the value that comes last by an order; of equal ones the first of the input.
func MaxByKey[K comparable, V any](ds Dataset[Pair[K, V]], by Order[V], options ...ShuffleOption) Dataset[Pair[K, V]] {
	return MinByKey(ds, by.Reversed(), options...)
}

// MinByKey returns of each key the value that comes first by an order; of equal ones the first of the input.
func MinByKey[K comparable, V any](ds Dataset[Pair[K, V]], by Order[V], options ...ShuffleOption) Dataset[Pair[K, V]] {
	by.keysOf(ds.g, "min by key", false)
	return ReduceByKey(ds, func(a, b V) V {
		if by.Compare(b, a) < 0 {
			return b
		}
		return a
	}, options...)
}
