package rdd

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/storage/shuffle"
)

// Joined is a row of a join: a value of each side.
type Joined[V, W any] struct {
	Left  V
	Right W
}

// broadcastMost is how many bytes the small side of a join may have to be brought whole
// to all tasks of the other. It is the same whatever memory there is: which way a join
// takes shows in the order of its rows. Where it takes more than broadcastShare'th of
// a task's memory, it is joined in parts.
const (
	broadcastMost  = 128 << 20
	broadcastShare = 2
)

// Join pairs every value that a key has on the left with every one it has on
// the right. Where both are spread over the same partitions already, by a
// shuffle by key with the same Partitions, nothing moves. Where the right is small its rows go to all tasks of the
// left, whose rows stay where they are; else all rows of both move. The order is
// not promised. The rows of the right are shared: they must not be changed.
func Join[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	options ...ShuffleOption) Dataset[Pair[K, Joined[V, W]]] {
	return joinBy(left, right, "join", options, autoJoin, inner[K, V, W])
}

// BroadcastJoin is Join that always brings the right, whole, to all tasks of the
// left: it must fit into memory.
func BroadcastJoin[K comparable, V, W any](left Dataset[Pair[K, V]],
	right Dataset[Pair[K, W]]) Dataset[Pair[K, Joined[V, W]]] {
	return joinBy(left, right, "broadcast-join", nil, alwaysBroadcast, inner[K, V, W])
}

// inner makes the rows of an inner join.
func inner[K comparable, V, W any](out []Pair[K, Joined[V, W]], key K, v V, matches rowsOf[W]) []Pair[K, Joined[V, W]] {
	for w := matches.take(); w != nil; w = matches.take() {
		out = append(out, Pair[K, Joined[V, W]]{key, Joined[V, W]{v, *w}})
	}
	return out
}

// LeftJoin is Join that also keeps the rows of the left that have no partner:
// the right is nil there.
func LeftJoin[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	options ...ShuffleOption) Dataset[Pair[K, Joined[V, *W]]] {
	return joinBy(left, right, "left-join", options, autoJoin,
		func(out []Pair[K, Joined[V, *W]], key K, v V, matches rowsOf[W]) []Pair[K, Joined[V, *W]] {
			w := matches.take()
			if w == nil {
				return append(out, Pair[K, Joined[V, *W]]{key, Joined[V, *W]{v, nil}})
			}
			for ; w != nil; w = matches.take() {
				out = append(out, Pair[K, Joined[V, *W]]{key, Joined[V, *W]{v, w}})
			}
			return out
		})
}

// RightJoin is LeftJoin from the other side.
func RightJoin[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	options ...ShuffleOption) Dataset[Pair[K, Joined[*V, W]]] {
	return MapValues(LeftJoin(right, left, options...),
		func(j Joined[W, *V]) Joined[*V, W] { return Joined[*V, W]{j.Right, j.Left} })
}

// FullJoin is Join that also keeps the rows that have no partner: the other
// side is nil there. All rows of both move.
func FullJoin[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	options ...ShuffleOption) Dataset[Pair[K, Joined[*V, *W]]] {
	ds := CoGroup(left, right, options...)
	return byRow(derive(ds, "flat-map", func(ctx context.Context, part int,
		yield func([]Pair[K, Joined[*V, *W]]) error) error {
		out := newBatcher(yield)
		err := ds.each(ctx, part, func(rows []Pair[K, CoGrouped[V, W]]) error {
			for i := range rows {
				if err := eachPair(&rows[i], out.add); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errSplit) {
			return err
		}
		return firstError(out.flush(), err)
	}))
}

// eachPair hands on the pairs of a key's values as they are made: there may be many more of
// them than there are values.
func eachPair[K comparable, V, W any](g *Pair[K, CoGrouped[V, W]], yield func(Pair[K, Joined[*V, *W]]) error) error {
	right := orNil(g.Value.Right)
	for _, v := range orNil(g.Value.Left) {
		for _, w := range right {
			if err := yield(Pair[K, Joined[*V, *W]]{g.Key, Joined[*V, *W]{v, w}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// orNil are pointers to values, or one nil pointer where there are none.
func orNil[V any](values []V) []*V {
	out := make([]*V, 0, max(1, len(values)))
	for i := range values {
		out = append(out, &values[i])
	}
	if len(out) == 0 {
		out = append(out, nil)
	}
	return out
}

// The ways in which a join is computed.
const (
	byShuffling = iota
	byBroadcast
)

// joinWay says how to choose between them.
type joinWay int

const (
	autoJoin joinWay = iota
	alwaysBroadcast
)

// emitter appends the rows of a join of one row of the left and its matches.
type emitter[K comparable, V, W, U any] func(out []U, key K, v V, matches rowsOf[W]) []U

// joinPlan is a join whose right side is looked up in tables.
type joinPlan[K comparable, V, W, U any] struct {
	left  Dataset[Pair[K, V]]
	co    *coGrouping[K, V, W]
	whole int // the shuffle that brings the right to all
	emit  emitter[K, V, W, U]
	id    int
}

func joinBy[K comparable, V, W, U any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], op string,
	options []ShuffleOption, way joinWay, emit emitter[K, V, W, U]) Dataset[U] {
	o := shuffleOptionsOf(options)
	if way == autoJoin && left.spread > 0 && left.spread == right.spread &&
		(o.partitions == 0 || o.partitions == left.spread) {
		return joinInPlace(left, right, op, emit)
	}
	p := &joinPlan[K, V, W, U]{left: left, emit: emit}
	p.co = coGroup(left, right, op, o)
	p.whole = right.g.shuffle(op+"-whole", typeName[Pair[K, W]](), "", right.id, &shuffleDecl{maps: right.parts,
		write: func(ctx context.Context, part int, packs runner.TaskContext) (*written, error) {
			return writeWholePart(ctx, right, part, p.co.r.row, packs)
		}})
	g := left.g
	p.id = g.add(node{kind: op, typ: typeName[U](), inputs: []int{p.co.id, left.id, p.whole}, user: true,
		choice: &choice{inputs: [][]int{{p.co.id}, {left.id, p.whole}},
			decide: func(ctx context.Context, s *Session) (int, error) {
				return p.decide(ctx, s, right.id, way, o)
			}},
		reads: func(k, part int) []int {
			if k == 1 {
				return []int{0} // only where the right is brought whole are there two inputs
			}
			return []int{part}
		}})
	return Dataset[U]{g: g, id: p.id, parts: p.parts, produce: p.each}
}

// writeWholePart writes a partition as it is.
func writeWholePart[T any](ctx context.Context, ds Dataset[T], part int, row codec[T],
	packs runner.TaskContext) (*written, error) {
	out := newSpreader(packs, row, 1)
	defer out.Close()
	return writeAll(ctx, ds, part, out)
}

func writeAll[T any](ctx context.Context, ds Dataset[T], part int, out *spreader[T]) (*written, error) {
	err := ds.each(ctx, part, func(rows []T) error { return out.addAll(0, rows) })
	if err != nil {
		return nil, err
	}
	return out.finish()
}

func (p *joinPlan[K, V, W, U]) broadcast() bool {
	d := p.left.g.decisionOf(p.id)
	return len(d) == 1 && d[0] == byBroadcast
}

func (p *joinPlan[K, V, W, U]) parts() int {
	if p.broadcast() {
		return p.left.parts()
	}
	return p.co.dataset().parts()
}

// decide looks at how large the right is: first at what it is computed from,
// then, if that is little enough, at its rows. A join that was asked for a number
// of partitions, or whose left is no larger, is computed by shuffling.
func (p *joinPlan[K, V, W, U]) decide(ctx context.Context, s *Session, right int, way joinWay, o shuffleOptions) (int,
	error) {
	if way == alwaysBroadcast {
		return byBroadcast, nil
	}
	source := s.g.bytesOf(right)
	if o.partitions > 0 || source < 0 || source > broadcastMost || s.g.bytesOf(p.left.id) < source {
		return byShuffling, nil
	}
	if err := s.makeStage(ctx, p.whole, false); err != nil {
		return 0, err
	}
	if bytes, _ := s.sums[p.whole].of(shuffle.Span{From: 0, Through: 1}); bytes > broadcastMost {
		return byShuffling, nil
	}
	return byBroadcast, nil
}

func (p *joinPlan[K, V, W, U]) each(ctx context.Context, part int, yield func([]U) error) error {
	if !p.broadcast() {
		return p.shuffled(ctx, part, yield)
	}
	env, err := envOf(ctx)
	if err != nil {
		return err
	}
	a := env.args.Shuffles[p.whole][0]
	if broadcastShare*a.Bytes > int64(env.packs.Memory()) {
		return p.broadcastInParts(ctx, env.packs, part, yield)
	}
	t, err := env.packs.Shared(fmt.Sprint("join ", p.whole), string(a.Outputs), 4*a.Bytes,
		func() (any, error) { return p.lookup(ctx, p.whole, 0, runtime.GOMAXPROCS(0)) })
	if err != nil {
		return err
	}
	found := t.(*lookup[K, W])
	return p.probe(found, func(rows func([]Pair[K, V]) error) error { return p.left.each(ctx, part, rows) }, yield)
}

// broadcastInParts is for a right that does not fit into the memory of this executor's
// tasks. The left may be computed only once.
func (p *joinPlan[K, V, W, U]) broadcastInParts(ctx context.Context, packs runner.TaskContext, part int,
	yield func([]U) error) error {
	once := func(rows func([]Pair[K, V]) error) error { return p.left.each(ctx, part, rows) }
	return p.joinOnce(ctx, packs, p.rightOf(ctx, p.whole, 0), once, yield)
}

// shuffled joins a partition of both sides, in memory where the right fits.
func (p *joinPlan[K, V, W, U]) shuffled(ctx context.Context, part int, yield func([]U) error) error {
	env, err := envOf(ctx)
	if err != nil {
		return err
	}
	left := func(rows func([]Pair[K, V]) error) error { return readBuckets(ctx, p.co.left, part, p.co.l.row, rows) }
	if 3*env.args.Shuffles[p.co.right][part].Bytes > int64(env.packs.Memory()) {
		return p.inParts(ctx, p.rightOf(ctx, p.co.right, part), left, yield)
	}
	t, err := p.lookup(ctx, p.co.right, part, 1)
	if err != nil {
		return err
	}
	return p.probe(t, left, yield)
}

// rightOf are the rows of a partition of the right.
func (p *joinPlan[K, V, W, U]) rightOf(ctx context.Context, id, part int) eachRows[Pair[K, W]] {
	return func(rows func([]Pair[K, W]) error) error { return readBuckets(ctx, id, part, p.co.r.row, rows) }
}

// probed is how many rows are looked up at a time: what the first look has brought
// into the core's cache is there at the second.
const probed = 256

// probe joins rows with those of a table.
func (p *joinPlan[K, V, W, U]) probe(t *lookup[K, W], left func(func([]Pair[K, V]) error) error,
	yield func([]U) error) error {
	var sc scratch
	most := batchRows[U]()
	out := make([]U, 0, most)
	err := left(func(rows []Pair[K, V]) error {
		for ; len(rows) > 0; rows = rows[min(probed, len(rows)):] {
			now := rows[:min(probed, len(rows))]
			find(t, &sc, now)
			for i := range now {
				if out = p.emit(out, now[i].Key, now[i].Value, t.matches(sc.places[i])); len(out) >= most {
					if err := yield(out); err != nil {
						return err
					}
					out = out[:0]
				}
			}
		}
		return nil
	})
	if err != nil || len(out) == 0 {
		return err
	}
	return yield(out)
}
