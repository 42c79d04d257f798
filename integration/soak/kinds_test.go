package soak

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/volley-engine/volley/rdd"
)

// kind is a type of rows.
type kind[K comparable, V any] struct {
	key   domain[K]
	value domain[V]
	ops   []op[K, V]
	asked []question[K, V]
}

// op derives a dataset from another one of its kind.
type op[K comparable, V any] func(d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]]

func (k *kind[K, V]) name() string { return k.key.name + "→" + k.value.name }

// keyText is the same for keys that are equal.
func (k *kind[K, V]) keyText(r row[K, V]) string { return k.key.text(r.Key) }

func (k *kind[K, V]) text(r row[K, V]) string {
	key := k.key.text(r.Key)
	return fmt.Sprint(len(key), ":", key, " ", k.value.text(r.Value))
}

func (k *kind[K, V]) digest(r row[K, V]) uint64 { return digest(k.text(r)) }

func (k *kind[K, V]) valueDigest(v V) uint64 { return digest(k.value.text(v)) }

// row is a row made of a number; keys of larger numbers are rarer.
func (k *kind[K, V]) row(n uint64, keys int) row[K, V] {
	return row[K, V]{Key: k.key.of(mix(n) % uint64(keys)), Value: k.value.of(mix(n+1) % 1000)}
}

// byText is the order of keys by their texts.
func (k *kind[K, V]) byText(a, b row[K, V]) int { return strings.Compare(k.text(a), k.text(b)) }

// anyKind is a kind whatever its types are.
type anyKind interface {
	name() string
	source(d *draw) stage
	of(d *draw, n *node[number]) stage
}

// number is a row of numbers, which rows of all kinds can be made of and into.
type number = row[uint64, uint64]

// stage is the pipeline as far as it is drawn.
type stage interface {
	grow(d *draw) stage
	numbers(d *draw) *node[number]
	check(d *draw) []check
	last() *step
}

// staged is a stage of a kind.
type staged[K comparable, V any] struct {
	k *kind[K, V]
	n *node[row[K, V]]
}

func (s staged[K, V]) last() *step { return s.n.step }

// grow adds an operation, and keeps what comes of it for operations on two datasets.
func (s staged[K, V]) grow(d *draw) stage {
	out := s.k.next(d, s.n)(d, s.k, s.n)
	d.pool[s.k.name()] = append(d.pool[s.k.name()], out)
	return staged[K, V]{s.k, out}
}

// next is the next operation. Rows whose order nobody promises any more are sorted now
// and then: there is more to be told about what has an order.
func (k *kind[K, V]) next(d *draw, n *node[row[K, V]]) op[K, V] {
	if !n.ordered && d.IntN(4) == 0 {
		return sortedByAll[K, V]
	}
	return one(d, k.ops...)
}

func (s staged[K, V]) numbers(d *draw) *node[number] {
	as := func(r row[K, V]) number {
		return number{Key: digest(s.k.keyText(r)) % 500, Value: s.k.digest(r)}
	}
	return derived(d, s.n, "Map to numbers",
		func(_ *built, ds rdd.Dataset[row[K, V]]) rdd.Dataset[number] { return rdd.Map(ds, as) },
		eachRow(func(r row[K, V]) []number { return []number{as(r)} }))
}

func (k *kind[K, V]) of(d *draw, n *node[number]) stage {
	as := func(r number) row[K, V] { return row[K, V]{Key: k.key.of(r.Key), Value: k.value.of(r.Value % 1000)} }
	out := derived(d, n, "Map to "+k.name(),
		func(_ *built, ds rdd.Dataset[number]) rdd.Dataset[row[K, V]] { return rdd.Map(ds, as) },
		eachRow(func(r number) []row[K, V] { return []row[K, V]{as(r)} }))
	return staged[K, V]{k, out}
}

// other is another dataset of a kind: one that the pipeline has come by, or a new one.
func (k *kind[K, V]) other(d *draw) *node[row[K, V]] {
	if had := d.pool[k.name()]; len(had) > 0 && d.IntN(2) == 0 {
		return one(d, had...).(*node[row[K, V]])
	}
	return k.source(d).(staged[K, V]).n
}

// kindOf is a kind with some of the operations: each of them is compiled anew for each
// kind, which takes longer than running it.
func kindOf[K comparable, V any](key domain[K], value domain[V], ops ...[]op[K, V]) *kind[K, V] {
	return &kind[K, V]{key: key, value: value, ops: slices.Concat(ops...), asked: []question[K, V]{counted[K, V]}}
}

// fullKind is a kind with all operations and all questions.
func fullKind[K sortable, V any](key domain[K], value domain[V]) *kind[K, V] {
	k := kindOf(key, value, narrow[K, V](), byKey[K, V](), byKey[K, V](), ofTwo[K, V](), ofTwo[K, V](),
		spreading[K, V](), sorting[K, V](), kept[K, V]())
	k.asked = questions[K, V]()
	return k
}

// sortedRows are rows in a stable order.
func sortedRows[T any](rows []T, by func(a, b T) int) []T {
	out := slices.Clone(rows)
	slices.SortStableFunc(out, by)
	return out
}

// order turns a comparison round where asked to.
func order[T any](falling bool, by func(a, b T) int) func(a, b T) int {
	if falling {
		return func(a, b T) int { return by(b, a) }
	}
	return by
}

// byKeys compares keys as cmp.Compare has it: NaN before all others.
func byKeys[K cmp.Ordered, V any](a, b row[K, V]) int { return cmp.Compare(a.Key, b.Key) }
