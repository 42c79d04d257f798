package rdd

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/volley-engine/volley/rdd/internal/exec"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// coPartitionedJoin joins what is spread alike, partition by partition: nothing moves. The right of a
// partition is in memory; where it does not fit it is written down and joined in parts.
type coPartitionedJoin[K comparable, V, W, U any] struct {
	join  exec.HashJoin[K, V, W, U]
	left  Dataset[Pair[K, V]]
	right Dataset[Pair[K, W]]
	fits  bool         // rows can be written down, and come back the same
	last  atomic.Int64 // rows of the right in the partition before, for each is like it
}

func joinCoPartitioned[K comparable, V, W, U any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], op string,
	emit exec.Emitter[K, V, W, U]) Dataset[U] {
	p := &coPartitionedJoin[K, V, W, U]{left: left, right: right}
	r := keyedOf[K, W](left.g, op)
	l := exec.Keyed[K, V]{Key: r.Key, Hash: r.Hash}
	var err error
	l.Row, err = row.PairCodecOf[K, V](l.Key)
	p.join = exec.HashJoin[K, V, W, U]{Left: l, Right: r, Emit: emit}
	p.fits = err == nil && row.RoundTrips(reflect.TypeFor[W]())
	id := left.g.add(node{kind: op, typ: row.TypeName[U](), detail: "in place", inputs: []int{left.id, right.id},
		user: true})
	return Dataset[U]{g: left.g, id: id, parts: left.parts, spread: left.spread, produce: p.each}
}

func (p *coPartitionedJoin[K, V, W, U]) each(ctx context.Context, part int, yield func([]U) error) error {
	s := exec.NewBuildSide(p.join.Right, int(p.last.Load()))
	defer s.Close()
	if env, err := envOf(ctx); err == nil && p.fits { // of what packs are made from there is none
		s.Limit(env.packs)
	}
	if err := p.right.each(ctx, part, s.Add); err != nil {
		return err
	}
	if n := s.InMemory(); n > 0 {
		p.last.Store(int64(n))
	}
	left := func(rows func([]Pair[K, V]) error) error { return p.left.each(ctx, part, rows) }
	return p.join.With(s, left, yield)
}
