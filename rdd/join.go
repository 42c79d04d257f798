package rdd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/exec"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/shuffle"
)

// Joined is a row of a join: a value of each side.
type Joined[V, W any] struct {
	Left  V
	Right W
}

// broadcastMost is how many bytes the small side of a join may have, as it is encoded, to be brought whole
// to all tasks of the other, and tableMost how many it may take there, in a table. They are the same whatever memory
// there is: which way a join takes shows in the order of its rows. A table that takes more than the memory of a task is
// joined in parts.
const (
	broadcastMost = 128 << 20
	tableMost     = 512 << 20
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

// BroadcastJoin does what Join does, but always brings the right, whole, to all tasks of the
// left: it must fit into memory.
func BroadcastJoin[K comparable, V, W any](left Dataset[Pair[K, V]],
	right Dataset[Pair[K, W]]) Dataset[Pair[K, Joined[V, W]]] {
	return joinBy(left, right, "broadcast-join", nil, alwaysBroadcast, inner[K, V, W])
}

// inner makes the rows of an inner join.
func inner[K comparable, V, W any](out []Pair[K, Joined[V, W]], key K, v V,
	matches exec.Matches[W]) []Pair[K, Joined[V, W]] {
	for w := matches.Next(); w != nil; w = matches.Next() {
		out = append(out, Pair[K, Joined[V, W]]{Key: key, Value: Joined[V, W]{v, *w}})
	}
	return out
}

// LeftJoin does what Join does, and also keeps the rows of the left that have no partner:
// the right is nil there.
func LeftJoin[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	options ...ShuffleOption) Dataset[Pair[K, Joined[V, *W]]] {
	return joinBy(left, right, "left-join", options, autoJoin,
		func(out []Pair[K, Joined[V, *W]], key K, v V, matches exec.Matches[W]) []Pair[K, Joined[V, *W]] {
			w := matches.Next()
			if w == nil {
				return append(out, Pair[K, Joined[V, *W]]{Key: key, Value: Joined[V, *W]{v, nil}})
			}
			for ; w != nil; w = matches.Next() {
				out = append(out, Pair[K, Joined[V, *W]]{Key: key, Value: Joined[V, *W]{v, w}})
			}
			return out
		})
}

// RightJoin does what LeftJoin does, from the other side.
func RightJoin[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	options ...ShuffleOption) Dataset[Pair[K, Joined[*V, W]]] {
	return MapValues(LeftJoin(right, left, options...),
		func(j Joined[W, *V]) Joined[*V, W] { return Joined[*V, W]{j.Right, j.Left} })
}

// FullJoin does what Join does, and also keeps the rows that have no partner: the other
// side is nil there. All rows of both move.
func FullJoin[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	options ...ShuffleOption) Dataset[Pair[K, Joined[*V, *W]]] {
	ds := CoGroup(left, right, options...)
	return byRow(derive(ds, "flat-map", func(ctx context.Context, part int,
		yield func([]Pair[K, Joined[*V, *W]]) error) error {
		out := row.NewBatcher(yield)
		err := ds.each(ctx, part, func(rows []Pair[K, CoGrouped[V, W]]) error {
			for i := range rows {
				if err := eachPair(&rows[i], out.Add); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errSplit) {
			return err
		}
		return cmp.Or(out.Flush(), err)
	}))
}

// eachPair hands on the pairs of a key's values as they are made: there may be many more of
// them than there are values.
func eachPair[K comparable, V, W any](g *Pair[K, CoGrouped[V, W]], yield func(Pair[K, Joined[*V, *W]]) error) error {
	right := orNil(g.Value.Right)
	for _, v := range orNil(g.Value.Left) {
		for _, w := range right {
			if err := yield(Pair[K, Joined[*V, *W]]{Key: g.Key, Value: Joined[*V, *W]{v, w}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// orNil returns pointers to values, or one nil pointer where there are none.
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

// joinPlan is a join whose right side is looked up in tables.
type joinPlan[K comparable, V, W, U any] struct {
	left  Dataset[Pair[K, V]]
	co    *coGrouping[K, V, W]
	join  exec.HashJoin[K, V, W, U]
	whole int // the shuffle that brings the right to all
	id    int
}

func joinBy[K comparable, V, W, U any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], op string,
	options []ShuffleOption, way joinWay, emit exec.Emitter[K, V, W, U]) Dataset[U] {
	o := shuffleOptionsOf(left.g, op, options)
	if way == autoJoin && left.spread > 0 && left.spread == right.spread &&
		(o.partitions == 0 || o.partitions == left.spread) {
		return joinCoPartitioned(left, right, op, emit)
	}
	p := &joinPlan[K, V, W, U]{left: left, co: coGroup(left, right, op, o)}
	p.join = exec.HashJoin[K, V, W, U]{Left: p.co.l, Right: p.co.r, Emit: emit}
	p.whole = right.g.shuffle(op+"-whole", row.TypeName[Pair[K, W]](), "", right.id, &shuffleDecl{maps: right.parts,
		write: func(ctx context.Context, part int, packs runner.TaskContext) (*written, error) {
			return writeWholePart(ctx, right, part, p.co.r.Row, packs)
		}})
	g := left.g
	p.id = g.add(node{kind: op, typ: row.TypeName[U](), inputs: []int{p.co.id, left.id, p.whole}, user: true,
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
func writeWholePart[T any](ctx context.Context, ds Dataset[T], part int, row row.Codec[T],
	packs runner.TaskContext) (*written, error) {
	out := exec.NewWriter(packs, row, 1)
	defer out.Close()
	return writeAll(ctx, ds, part, out)
}

func writeAll[T any](ctx context.Context, ds Dataset[T], part int, out *exec.Writer[T]) (*written, error) {
	err := ds.each(ctx, part, func(rows []T) error { return out.AddAll(0, rows) })
	if err != nil {
		return nil, err
	}
	return made(out.Finish())
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
	bytes, rows := s.sums[p.whole].of(shuffle.Span{From: 0, Through: 1})
	if bytes > broadcastMost || exec.HeldBy[K, W](int64(rows), bytes) > tableMost {
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
	held := exec.HeldBy[K, W](a.Rows, a.Bytes)
	if held > int64(env.packs.Memory()) {
		return p.broadcastInParts(ctx, env.packs, part, yield)
	}
	t, err := env.packs.Shared(fmt.Sprint("join ", p.whole), string(a.Outputs), held,
		func() (any, error) { return p.joinTable(ctx, p.whole, 0, runtime.GOMAXPROCS(0)) })
	if err != nil {
		return err
	}
	found := t.(*exec.JoinTable[K, W])
	return p.join.Probe(found, func(rows func([]Pair[K, V]) error) error { return p.left.each(ctx, part, rows) }, yield)
}

// broadcastInParts joins a right that does not fit into the memory of this executor's
// tasks. The left may be computed only once.
func (p *joinPlan[K, V, W, U]) broadcastInParts(ctx context.Context, packs runner.TaskContext, part int,
	yield func([]U) error) error {
	once := func(rows func([]Pair[K, V]) error) error { return p.left.each(ctx, part, rows) }
	return p.join.JoinOnce(packs, p.rightOf(ctx, p.whole, 0), once, yield)
}

// shuffled joins a partition of both sides, in memory where the right fits.
func (p *joinPlan[K, V, W, U]) shuffled(ctx context.Context, part int, yield func([]U) error) error {
	env, err := envOf(ctx)
	if err != nil {
		return err
	}
	left := func(rows func([]Pair[K, V]) error) error { return readShuffle(ctx, p.co.left, part, p.co.l.Row, rows) }
	if 3*env.args.Shuffles[p.co.right][part].Bytes > int64(env.packs.Memory()) {
		return p.join.InParts(env.packs, p.rightOf(ctx, p.co.right, part), left, yield)
	}
	t, err := p.joinTable(ctx, p.co.right, part, 1)
	if err != nil {
		return err
	}
	return p.join.Probe(t, left, yield)
}

// rightOf returns the rows of a partition of the right.
func (p *joinPlan[K, V, W, U]) rightOf(ctx context.Context, id, part int) exec.Rows[Pair[K, W]] {
	return func(rows func([]Pair[K, W]) error) error { return readShuffle(ctx, id, part, p.co.r.Row, rows) }
}

// lookup reads a partition of a shuffle, and builds its index by some workers.
func (p *joinPlan[K, V, W, U]) joinTable(ctx context.Context, id, part, workers int) (*exec.JoinTable[K, W], error) {
	env, err := envOf(ctx)
	if err != nil {
		return nil, err
	}
	a := env.args.Shuffles[id][part]
	l := exec.NewJoinTable(p.co.r, int(a.Rows))
	text := &row.Arena{Large: a.Bytes > 2*row.LargePiece}
	if err := readShuffleInto(ctx, id, part, p.co.r.Row, text, l.AddAll); err != nil {
		return nil, err
	}
	l.Build(workers)
	return l, nil
}

// JoinWith does what Join does, with rows that f makes of a key and a value of each side.
func JoinWith[K comparable, V, W, U any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], f func(key K, v V, w W) U,
	options ...ShuffleOption) Dataset[U] {
	return notSpread(joinBy(left, right, "join", options, autoJoin, func(out []U, key K, v V,
		matches exec.Matches[W]) []U {
		for w := matches.Next(); w != nil; w = matches.Next() {
			out = append(out, f(key, v, *w))
		}
		return out
	}))
}

// LeftJoinWith does what LeftJoin does, with rows that f makes: w is nil where the right has no partner.
func LeftJoinWith[K comparable, V, W, U any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	f func(key K, v V, w *W) U, options ...ShuffleOption) Dataset[U] {
	return notSpread(joinBy(left, right, "left-join", options, autoJoin, func(out []U, key K, v V,
		matches exec.Matches[W]) []U {
		w := matches.Next()
		if w == nil {
			return append(out, f(key, v, nil))
		}
		for ; w != nil; w = matches.Next() {
			out = append(out, f(key, v, w))
		}
		return out
	}))
}

// notSpread notes that rows are not, or no longer, where the hashes of their keys say.
func notSpread[T any](ds Dataset[T]) Dataset[T] { return preservesPartitioning(0, ds) }

// SemiJoin keeps the pairs of the left whose keys the right has, each once. What moves, and when, is as in Join; of
// the right only keys do.
func SemiJoin[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	options ...ShuffleOption) Dataset[Pair[K, V]] {
	return joinKeys(left, right, "semi-join", true, options)
}

// AntiJoin keeps the pairs of the left whose keys the right does not have.
func AntiJoin[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	options ...ShuffleOption) Dataset[Pair[K, V]] {
	return joinKeys(left, right, "anti-join", false, options)
}

// joinKeys keeps the pairs of the left by whether the right has their keys.
func joinKeys[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], op string, has bool,
	options []ShuffleOption) Dataset[Pair[K, V]] {
	keys := MapValues(right, func(W) bool { return true })
	return joinBy(left, keys, op, options, autoJoin,
		func(out []Pair[K, V], key K, v V, matches exec.Matches[bool]) []Pair[K, V] {
			if (matches.Next() != nil) == has {
				out = append(out, Pair[K, V]{Key: key, Value: v})
			}
			return out
		})
}
