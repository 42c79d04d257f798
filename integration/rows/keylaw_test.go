package rows

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// The law of keys: two are equal as Go's == has it, but a NaN equals a NaN and a time
// the same instant in any zone. Every operation by key keeps it, for every type that
// it takes; the others are refused when the plan is built.

// keyed is a row of the tests; a number says which row of the input it was.
type keyed[K comparable] = rdd.Pair[K, int64]

// found is what an operation says of a key.
type found[K comparable] struct {
	key    K
	values []int64
}

// keyOp is an operation by key: what it makes of a left and a right, and, of the keys
// in their classes, what the law has it make.
type keyOp[K comparable] struct {
	name    string
	declare func(left, right rdd.Dataset[keyed[K]]) func(context.Context, *rdd.Session) ([]found[K], error)
	want    func(left, right []int64) []int64 // of the values of a class; nil where the key is not there
}

// asFound are the rows of an action by key.
func asFound[K comparable, V any](a rdd.Action[[]rdd.Pair[K, V]], values func(V) []int64) func(context.Context,
	*rdd.Session) ([]found[K], error) {
	return func(ctx context.Context, s *rdd.Session) (out []found[K], err error) {
		rows, err := a.Run(ctx, s)
		for _, r := range rows {
			out = append(out, found[K]{r.Key, values(r.Value)})
		}
		return out, err
	}
}

func counted[K comparable](a rdd.Action[map[K]int64]) func(context.Context, *rdd.Session) ([]found[K], error) {
	return func(ctx context.Context, s *rdd.Session) (out []found[K], err error) {
		counts, err := a.Run(ctx, s)
		for k, n := range counts {
			out = append(out, found[K]{k, []int64{n}})
		}
		return out, err
	}
}

func itself[V any](v V) V { return v }

func single(v int64) []int64 { return []int64{v} }

func addUp(values []int64) (sum int64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// rows and result are what an operation is made of, and what it comes to.
type (
	rows[K comparable]   = rdd.Dataset[keyed[K]]
	result[K comparable] = func(context.Context, *rdd.Session) ([]found[K], error)
	joined[K comparable] = rdd.Pair[K, rdd.Joined[int64, int64]]
)

// oneOfEach are operations that stand for the others.
func oneOfEach[K comparable]() []keyOp[K] {
	return []keyOp[K]{
		{"GroupByKey", func(l, _ rows[K]) result[K] { return asFound(rdd.Collect(rdd.GroupByKey(l)), itself[[]int64]) },
			asTheyAre},
		{"CountByValue", func(l, _ rows[K]) result[K] { return counted(rdd.CountByValue(rdd.Keys(l))) }, howMany},
		{"Join by shuffling", func(l, r rows[K]) result[K] { return pairs(rdd.Join(l, r, rdd.Partitions(3))) },
			product},
	}
}

func asTheyAre(left, _ []int64) []int64 { return left }

func howMany(left, _ []int64) []int64 { return ifAny(left, int64(len(left))) }

// pairs are the rows of a join.
func pairs[K comparable](ds rdd.Dataset[joined[K]]) result[K] {
	return gathered(rdd.Collect(rdd.Map(ds, func(j joined[K]) keyed[K] {
		return keyed[K]{Key: j.Key,
			Value: 1000*j.Value.Left + j.Value.Right}
	})))
}

// perKey are the operations on one dataset whose result has a row a key.
func perKey[K comparable]() []keyOp[K] {
	sum := func(left, _ []int64) []int64 { return ifAny(left, addUp(left)) }
	add := func(a, b int64) int64 { return a + b }
	return []keyOp[K]{
		{"GroupByKey to some", func(l, _ rows[K]) result[K] {
			return asFound(rdd.Collect(rdd.GroupByKey(l, rdd.Partitions(5))), itself[[]int64])
		}, asTheyAre},
		{"ReduceByKey", func(l, _ rows[K]) result[K] { return asFound(rdd.Collect(rdd.ReduceByKey(l, add)), single) },
			sum},
		{"AggregateByKey", func(l, _ rows[K]) result[K] {
			return asFound(rdd.Collect(rdd.AggregateByKey(l, func() int64 { return 0 }, add, add, rdd.Partitions(4))),
				single)
		}, sum},
		{"Distinct", func(l, _ rows[K]) result[K] {
			return asFound(rdd.Collect(rdd.Map(rdd.Distinct(rdd.Keys(l)),
				func(k K) keyed[K] { return keyed[K]{Key: k, Value: 1} })), single)
		}, func(l, _ []int64) []int64 { return ifAny(l, 1) }},
		{"CountByKey", func(l, _ rows[K]) result[K] { return counted(rdd.CountByKey(l)) }, howMany},
		{"PartitionBy", func(l, _ rows[K]) result[K] {
			return asFound(rdd.Collect(rdd.MapSplits(rdd.PartitionBy(l, rdd.HashPartitioner[K](7)), classesOf[K])),
				itself[[]int64])
		}, asTheyAre},
	}
}

// ofTwo are the operations on two datasets.
func ofTwo[K comparable]() []keyOp[K] {
	spread := func(ds rows[K]) rows[K] { return rdd.PartitionBy(ds, rdd.HashPartitioner[K](3)) }
	return []keyOp[K]{
		{"Join", func(l, r rows[K]) result[K] { return pairs(rdd.Join(l, r)) }, product},
		{"Join in place", func(l, r rows[K]) result[K] { return pairs(rdd.Join(spread(l), spread(r))) }, product},
		{"BroadcastJoin", func(l, r rows[K]) result[K] { return pairs(rdd.BroadcastJoin(l, r)) }, product},
		{"CoGroup", func(l, r rows[K]) result[K] {
			return asFound(rdd.Collect(rdd.CoGroup(l, r)), func(g rdd.CoGrouped[int64, int64]) []int64 {
				return append(append(slices.Clone(g.Left), -1), g.Right...)
			})
		}, func(l, r []int64) []int64 {
			return ifAny(append(slices.Clone(l), r...), append(append(slices.Clone(l), -1), r...)...)
		}},
		{"SubtractByKey", func(l, r rows[K]) result[K] { return gathered(rdd.Collect(rdd.SubtractByKey(l, r))) },
			func(l, r []int64) []int64 {
				if len(r) > 0 {
					return nil
				}
				return l
			}},
		{"Intersection", func(l, r rows[K]) result[K] {
			return asFound(rdd.Collect(rdd.Map(rdd.Intersection(rdd.Keys(l), rdd.Keys(r)),
				func(k K) keyed[K] { return keyed[K]{Key: k, Value: 1} })), single)
		}, func(l, r []int64) []int64 { return ifAny(product(l, r), 1) }},
	}
}

// gathered are rows brought together by the law, for operations that have several of a
// key.
func gathered[K comparable](a rdd.Action[[]keyed[K]]) func(context.Context, *rdd.Session) ([]found[K], error) {
	return func(ctx context.Context, s *rdd.Session) (out []found[K], err error) {
		rows, err := a.Run(ctx, s)
		for r := range classesOf(0, slices.Values(rows)) {
			out = append(out, found[K]{r.Key, r.Value})
		}
		return out, err
	}
}

func ifAny(values []int64, out ...int64) []int64 {
	if len(values) == 0 {
		return nil
	}
	return out
}

func product(left, right []int64) (out []int64) {
	for _, l := range left {
		for _, r := range right {
			out = append(out, 1000*l+r)
		}
	}
	return out
}

// classesOf brings rows together whose keys are equal, one by one: what all else is
// measured by.
func classesOf[K comparable](_ int, rows iter.Seq[keyed[K]]) iter.Seq[rdd.Pair[K, []int64]] {
	var classes []rdd.Pair[K, []int64]
	for r := range rows {
		at := slices.IndexFunc(classes, func(c rdd.Pair[K, []int64]) bool { return sameKey(c.Key, r.Key) })
		if at < 0 {
			at = len(classes)
			classes = append(classes, rdd.Pair[K, []int64]{Key: r.Key})
		}
		classes[at].Value = append(classes[at].Value, r.Value)
	}
	return slices.Values(classes)
}

// keysHold has rows with some keys go through all operations, with much memory and
// with so little that nothing stays in it.
func keysHold[K comparable](t *testing.T, keys ...K) {
	t.Run(reflect.TypeFor[K]().String(), func(t *testing.T) {
		left, right := rowsFor(keys, 240, 1), rowsFor(keys[:(len(keys)+1)/2], 30, 2)
		for _, op := range slices.Concat(oneOfEach[K](), perKey[K](), ofTwo[K]()) {
			t.Run(op.name, func(t *testing.T) { holds(t, op, left, right) })
		}
		t.Run("Lookup", func(t *testing.T) { lookupHolds(t, left, keys) })
	})
}

// keysHoldMostly has them go through those that stand for the others.
func keysHoldMostly[K comparable](t *testing.T, keys ...K) {
	t.Run(reflect.TypeFor[K]().String(), func(t *testing.T) {
		left, right := rowsFor(keys, 240, 1), rowsFor(keys[:(len(keys)+1)/2], 30, 2)
		for _, op := range oneOfEach[K]() {
			t.Run(op.name, func(t *testing.T) { holds(t, op, left, right) })
		}
	})
}

// rowsFor are rows with keys drawn from some.
func rowsFor[K comparable](keys []K, n int, seed uint64) []keyed[K] {
	r := rand.New(rand.NewPCG(seed, 0))
	out := make([]keyed[K], n)
	for i := range out {
		out[i] = keyed[K]{Key: keys[r.IntN(len(keys))], Value: int64(i)}
	}
	return out
}

// holds reports whether an operation keeps the law, or the plan refuses it.
func holds[K comparable](t *testing.T, op keyOp[K], left, right []keyed[K]) {
	t.Helper()
	declare := func(g *rdd.Graph) func(context.Context, *rdd.Session) ([]found[K], error) {
		return op.declare(rowsOf(g, left, 4), rowsOf(g, right, 2))
	}
	if refused[K](t, func(g *rdd.Graph) { declare(g) }) {
		mayBeRefused[K](t)
		return
	}
	for _, memory := range []int64{0, 2 << 10} {
		got, err := resultOf(t, declare, memory)
		if err != nil {
			t.Errorf("the plan was taken, and then: %v", firstLine(err))
			return
		}
		compareClasses(t, op, got, left, right, memory)
	}
}

// resultOf runs an operation on a cluster whose tasks have so much memory.
func resultOf[R any](t *testing.T, declare func(*rdd.Graph) func(context.Context, *rdd.Session) (R, error),
	memory int64) (got R, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cfg := testConfig(t)
	cfg.TaskMemory = memory
	_, err = volley.Run(ctx, cfg, "keys", struct{}{},
		func(g *rdd.Graph, _ struct{}) func(context.Context, *rdd.Session) (R, error) { return declare(g) },
		func(ctx context.Context, s *rdd.Session, _ struct{},
			run func(context.Context, *rdd.Session) (R, error)) (_ string, err error) {
			got, err = run(ctx, s)
			return "end", err
		})
	return got, err
}

func compareClasses[K comparable](t *testing.T, op keyOp[K], got []found[K], left, right []keyed[K], memory int64) {
	t.Helper()
	seen := make([]bool, len(got))
	for class := range classesOf(0, slices.Values(append(slices.Clone(left), right...))) {
		want := op.want(ofClass(left, class.Key), ofClass(right, class.Key))
		times := 0
		for i, f := range got {
			if !sameKey(f.key, class.Key) {
				continue
			}
			times, seen[i] = times+1, true
			if slices.Sort(f.values); times == 1 && !slices.Equal(f.values, slices.Sorted(slices.Values(want))) {
				t.Errorf("memory %d: key %s has %d values, want %d: %s and %s", memory, shown(class.Key), len(f.values),
					len(want), shown(f.values), shown(want))
			}
		}
		if times != min(1, len(want)) {
			t.Errorf("memory %d: key %s comes %d times", memory, shown(class.Key), times)
			return
		}
	}
	if i := slices.Index(seen, false); i >= 0 {
		t.Errorf("memory %d: key %s comes from nowhere", memory, shown(got[i].key))
	}
}

func ofClass[K comparable](rows []keyed[K], key K) (values []int64) {
	for _, r := range rows {
		if sameKey(r.Key, key) {
			values = append(values, r.Value)
		}
	}
	return values
}

// lookupHolds looks every key up.
func lookupHolds[K comparable](t *testing.T, rows []keyed[K], keys []K) {
	declare := func(g *rdd.Graph) func(context.Context, *rdd.Session) ([][]int64, error) {
		var all []rdd.Action[[]int64]
		for _, k := range keys {
			all = append(all, rdd.Lookup(rowsOf(g, rows, 4), k))
		}
		return func(ctx context.Context, s *rdd.Session) (out [][]int64, err error) {
			for _, a := range all {
				values, err := a.Run(ctx, s)
				if err != nil {
					return nil, err
				}
				out = append(out, values)
			}
			return out, nil
		}
	}
	if refused[K](t, func(g *rdd.Graph) { declare(g) }) {
		mayBeRefused[K](t)
		return
	}
	got, err := resultOf(t, declare, 0)
	if err != nil {
		t.Fatalf("the plan was taken, and then: %v", firstLine(err))
	}
	for i, k := range keys {
		if want := ofClass(rows, k); !slices.Equal(got[i], want) {
			t.Errorf("key %s has %d values, want %d", shown(k), len(got[i]), len(want))
		}
	}
}

// mayBeRefused reports whether a type is one that no operation need take as a key: all
// that is made of numbers, texts and times, and exported, has to be taken.
func mayBeRefused[K comparable](t *testing.T) {
	t.Helper()
	if plainKey(reflect.TypeFor[K]()) {
		t.Errorf("%v is refused as a key", reflect.TypeFor[K]())
	}
}

func plainKey(t reflect.Type) bool {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return true
	case t.Kind() == reflect.Array:
		return t.Size() > 0 && plainKey(t.Elem())
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); !f.IsExported() || !plainKey(f.Type) {
				return false
			}
		}
		return t.Size() > 0
	}
	return t.Kind() <= reflect.Float64 && t.Kind() != reflect.Uintptr || t.Kind() == reflect.String
}

// TestTheLawOfKeysItself: what is measured by is right.
func TestTheLawOfKeysItself(t *testing.T) {
	for i, a := range zones {
		for k, b := range zones {
			if sameKey(a, b) != a.Equal(b) {
				t.Errorf("%d %d", i, k)
			}
		}
	}
	var none fmt.Stringer
	if !sameKey(spot{0, 1}, spot{negativeZero, 1}) || sameKey(spot{0, 1}, spot{0, 2}) ||
		!sameKey[any](notANumber, -notANumber) ||
		sameKey[any](1, int64(1)) || sameKey(new(int), new(int)) || !sameKey(none, none) {
		t.Error("the law is not what it is")
	}
}
