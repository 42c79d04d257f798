package rdd

import (
	"context"
	"iter"

	"github.com/volley-engine/volley/rdd/internal/row"
)

// Streamed is a dataset whose rows come to the driver's side a partition at a
// time.
type Streamed[T any] struct {
	id    int
	parts func() int
}

// ToSeq declares that a dataset is to be streamed.
func ToSeq[T any](ds Dataset[T]) Streamed[T] {
	id := ds.g.add(node{kind: "to-seq", typ: row.TypeName[T](), inputs: []int{ds.id}, user: true,
		task: rowsTask(ds, "to seq")})
	return Streamed[T]{id: id, parts: ds.parts}
}

// Rows returns all rows, in order: a partition is computed when the rows of the one
// before it have been taken. An error is the last of them.
func (st Streamed[T]) Rows(ctx context.Context, s *Session) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		for part := 0; ; part++ {
			rows, more, err := st.part(ctx, s, part)
			if err != nil {
				yield(zero, err)
				return
			}
			if !more {
				return
			}
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// part returns the rows of a partition, and false beyond the last one.
func (st Streamed[T]) part(ctx context.Context, s *Session, part int) (rows []T, more bool, err error) {
	ctx, leave, err := s.enter(ctx, true)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	release, _, err := s.claim(ctx, running, st.id)
	if err != nil {
		return nil, false, err
	}
	defer release()
	if err := s.settleAction(ctx, st.id); err != nil || part >= st.parts() {
		return nil, false, err
	}
	raws, err := s.callParts(ctx, st.id, []int{part}, make([][]byte, 1))
	if err == nil {
		rows, err = row.AppendList(rows, raws[0])
	}
	return rows, true, err
}
