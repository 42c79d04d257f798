package rdd

import (
	"context"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/storage"
)

// packAction adds a node whose tasks compute one encoded value a split.
func packAction[T, R any](pk Packed[T], kind string, task func(s *storage.Split) ([]byte, error), finish func(raws [][]byte) (R, error)) Action[R] {
	run := func(ctx context.Context, part int, _ []byte, packs runner.Packs) ([]byte, error) {
		s, err := packs.OpenSplit(pk.id, part)
		if err != nil {
			return nil, err
		}
		return task(s)
	}
	id := pk.g.add(node{kind: kind, typ: typeName[T](), inputs: []int{pk.id}, user: true, task: run})
	return Action[R]{g: pk.g, id: id, name: kind, run: func(ctx context.Context, s *Session) (R, error) {
		var zero R
		p, err := s.open(ctx, pk.id)
		if err != nil {
			return zero, err
		}
		raws, err := s.cluster.RunCall(ctx, id, make([][]byte, len(p.pack.Meta.Splits)))
		if err != nil {
			return zero, err
		}
		return finish(raws)
	}}
}

// Prefix brings the first rows of every split, about `rows` in all. Since
// rows are shuffled within their split it is a sample stratified by split.
func Prefix[T any](pk Packed[T], rows int) Action[[]T] {
	task := func(s *storage.Split) ([]byte, error) {
		share := int(int64(rows)*s.Rows/max(1, s.Meta.Rows)) + 1
		out := [][]byte{}
		for i := range s.Batches {
			b := &s.Batches[i]
			for r := 0; r < b.Rows && len(out) < share; r++ {
				row, err := rowAt[T](s.Meta, b, r)
				if err != nil {
					return nil, err
				}
				raw, err := Encode(row)
				if err != nil {
					return nil, fault.New(fault.UserCode, "encode", typeName[T](), err)
				}
				out = append(out, raw)
			}
		}
		return cborMode.Marshal(out)
	}
	return packAction(pk, "prefix", task, func(raws [][]byte) ([]T, error) {
		var all []T
		var err error
		for _, raw := range raws {
			if all, err = appendRows(all, raw); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
}
