package rdd

import (
	"context"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/volley-engine/volley/internal/runner"
)

// placedJoin joins what is spread alike, partition by partition: nothing moves. The right of a
// partition is in memory; where it does not fit it is written down and joined in parts.
type placedJoin[K comparable, V, W, U any] struct {
	joinPlan[K, V, W, U]
	right Dataset[Pair[K, W]]
	fits  bool         // rows can be written down, and come back the same
	last  atomic.Int64 // rows of the right in the partition before, for each is like it
}

func joinInPlace[K comparable, V, W, U any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], op string,
	emit emitter[K, V, W, U]) Dataset[U] {
	p := &placedJoin[K, V, W, U]{joinPlan: joinPlan[K, V, W, U]{left: left, emit: emit}, right: right}
	r := keyedOf[K, W](left.g, op)
	l := keyed[K, V]{key: r.key, hash: r.hash}
	var err error
	l.row, err = pairCodecOf[K, V](l.key)
	p.co, p.fits = &coGrouping[K, V, W]{l: l, r: r}, err == nil && comesBackTheSame(reflect.TypeFor[W]())
	id := left.g.add(node{kind: op, typ: typeName[U](), detail: "in place", inputs: []int{left.id, right.id},
		user: true})
	return Dataset[U]{g: left.g, id: id, parts: left.parts, spread: left.spread, produce: p.each}
}

func (p *placedJoin[K, V, W, U]) each(ctx context.Context, part int, yield func([]U) error) error {
	t := newJoinTable[K, W](p.co.r, int(p.last.Load()))
	s := &overflow[K, W]{t: t, row: p.co.r.row}
	defer s.close()
	if env, err := envOf(ctx); err == nil && p.fits { // of what packs are made from there is none
		s.packs, s.room = env.packs, env.packs.Memory()/2
	}
	if err := p.right.each(ctx, part, s.add); err != nil {
		return err
	}
	left := func(rows func([]Pair[K, V]) error) error { return p.left.each(ctx, part, rows) }
	if s.out != nil {
		again, done, err := s.out.again()
		if err != nil {
			return err
		}
		defer done()
		return p.joinOnce(ctx, s.packs, again, left, yield)
	}
	t.order()
	p.last.Store(int64(len(t.keys.entries)))
	return p.probe(t, left, yield)
}

// overflow gathers rows in memory while there is room, and else in a file.
type overflow[K comparable, W any] struct {
	t     *lookup[K, W]
	row   codec[Pair[K, W]]
	packs runner.TaskContext
	room  int // bytes; 0 where there is no bound
	bytes int
	raw   []byte
	out   *spreader[Pair[K, W]]
}

// add takes rows in.
func (s *overflow[K, W]) add(rows []Pair[K, W]) error {
	if s.out != nil {
		return s.out.addAll(0, rows)
	}
	if s.bytes += s.size(rows); s.room == 0 || s.bytes <= s.room {
		return s.t.addAll(rows)
	}
	s.out = newSpreader(s.packs, s.row, 1)
	s.out.ToFile()
	if err := s.out.addAll(0, s.t.keys.entries); err != nil {
		return err
	}
	s.t.keys.entries = nil
	return s.out.addAll(0, rows)
}

// measured is of how many rows one is measured that is not of a fixed size.
const measured = 8

// size is about how many bytes rows take in the table.
func (s *overflow[K, W]) size(rows []Pair[K, W]) int {
	var p Pair[K, W]
	size := len(rows) * (int(unsafe.Sizeof(p)) + tableRow)
	if s.room == 0 || s.row.flat > 0 {
		return size
	}
	for i := 0; i < len(rows); i += measured {
		s.raw = s.row.append(s.raw[:0], &rows[i])
		size += min(measured, len(rows)-i) * len(s.raw)
	}
	return size
}

func (s *overflow[K, W]) close() {
	if s.out != nil {
		s.out.Close()
	}
}
