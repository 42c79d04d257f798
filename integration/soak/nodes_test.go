package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/volley-engine/volley/rdd"
)

// row is a row of the pipelines.
type row[K comparable, V any] = rdd.Pair[K, V]

// step is what is known of a dataset before anything is computed.
type step struct {
	id      int
	words   string
	from    []*step
	most    int  // rows, at the most
	ordered bool // the order of all rows is promised
	cut     bool // where partitions begin is promised
	moved   bool // rows have moved
}

// node is a dataset: how the engine is to make it, and what its rows are. The reference
// has them by partition, which means something only where it is cut.
type node[T any] struct {
	*step
	declare func(*built) rdd.Dataset[T]
	refer   func() [][]T
}

// rows are all rows that the reference has.
func (n *node[T]) rows() []T { return slices.Concat(n.refer()...) }

// in is the dataset within a plan.
func (n *node[T]) in(b *built) rdd.Dataset[T] {
	if made, ok := b.made[n.id]; ok {
		return made.(rdd.Dataset[T])
	}
	ds := n.declare(b)
	b.made[n.id] = ds
	return ds
}

// built is a pipeline's plan.
type built struct {
	g     *rdd.Graph
	dir   string
	made  map[int]any
	ready []func(context.Context, *rdd.Session) error // before anything is asked
	asked []func(context.Context, *rdd.Session) error
	after []func(context.Context, *rdd.Session) error
}

// draw draws a pipeline.
type draw struct {
	*rand.Rand
	steps []*step
	pool  map[string][]any // nodes by the name of their kind
	limit int              // rows that a dataset may come to
	files []input
}

// one is one of some things.
func one[T any](d *draw, of ...T) T { return of[d.IntN(len(of))] }

// source is a node that is made of nothing.
func source[T any](d *draw, words string, most int, declare func(*built) rdd.Dataset[T], refer func() [][]T) *node[T] {
	s := &step{id: len(d.steps), words: words, most: most, ordered: true}
	d.steps = append(d.steps, s)
	return &node[T]{s, declare, sync.OnceValue(refer)}
}

// derived is a node made of another one, about which the same is known until it is said
// otherwise.
func derived[T, U any](d *draw, n *node[T], words string, declare func(*built, rdd.Dataset[T]) rdd.Dataset[U],
	refer func([][]T) [][]U) *node[U] {
	out := source(d, words, n.most, func(b *built) rdd.Dataset[U] { return declare(b, n.in(b)) },
		func() [][]U { return refer(n.refer()) })
	out.from, out.ordered, out.cut, out.moved = []*step{n.step}, n.ordered, n.cut, n.moved
	return out
}

// combined is a node made of two others, of whose order nothing is known.
func combined[T, U, R any](d *draw, l *node[T], r *node[U], words string, most int,
	declare func(*built, rdd.Dataset[T], rdd.Dataset[U]) rdd.Dataset[R], refer func(l []T, r []U) []R) *node[R] {
	out := source(d, words, most, func(b *built) rdd.Dataset[R] { return declare(b, l.in(b), r.in(b)) },
		func() [][]R { return [][]R{refer(l.rows(), r.rows())} })
	out.from, out.ordered, out.moved = []*step{l.step, r.step}, false, true
	return out
}

// dealt says that rows have moved, and come in an order that nobody promises.
func (n *node[T]) dealt() *node[T] {
	n.ordered, n.cut, n.moved = false, false, true
	return n
}

// uncut says that nobody promises where partitions begin.
func (n *node[T]) uncut() *node[T] {
	n.cut = false
	return n
}

// upTo says how many rows a node has at the most.
func (n *node[T]) upTo(rows int) *node[T] {
	n.most = rows
	return n
}

// eachRow is a reference that makes rows of every row.
func eachRow[T, U any](f func(T) []U) func([][]T) [][]U {
	return func(parts [][]T) [][]U {
		out := make([][]U, len(parts))
		for i, part := range parts {
			for _, r := range part {
				out[i] = append(out[i], f(r)...)
			}
		}
		return out
	}
}

// allRows is a reference that makes something of all rows.
func allRows[T, U any](f func([]T) []U) func([][]T) [][]U {
	return func(parts [][]T) [][]U { return [][]U{f(slices.Concat(parts...))} }
}

// String is the way that a dataset is made, a step a line.
func (s *step) String() string {
	var inputs []string
	for _, f := range s.from {
		inputs = append(inputs, fmt.Sprint("d", f.id))
	}
	promised := map[bool]string{true: ", in order", false: ""}[s.ordered] +
		map[bool]string{true: ", in known partitions", false: ""}[s.cut]
	return fmt.Sprintf("d%d = %s of %s (at most %d rows%s)", s.id, s.words, orNothing(strings.Join(inputs, " and ")),
		s.most, promised)
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
