package rdd

import (
	"context"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/pack"
)

// packAction adds a node whose tasks compute one encoded value a split.
func packAction[T, R any](pk Packed[T], kind string, task func(s *pack.Split) ([]byte, error),
	finish func(raws [][]byte) (R, error)) Action[R] {
	run := func(ctx context.Context, part int, _ []byte, packs runner.TaskContext) ([]byte, error) {
		s, err := packs.OpenSplit(pk.id, part)
		if err != nil {
			return nil, err
		}
		return task(s)
	}
	id := pk.g.add(node{kind: kind, typ: row.TypeName[T](), inputs: []int{pk.id}, user: true, task: run})
	return Action[R]{g: pk.g, id: id, name: kind, run: func(ctx context.Context, s *Session) (R, error) {
		var zero R
		p, err := s.open(ctx, pk.id)
		if err != nil {
			return zero, err
		}
		raws, err := whilePacked(ctx, s, pk.id, func() ([][]byte, error) {
			return s.call(ctx, id, p.number, make([][]byte, len(p.meta.Splits)))
		})
		if err != nil {
			return zero, err
		}
		return finish(raws)
	}}
}

// packedPoint is a Point as packs have it: labels that are text are numbers there.
type packedPoint struct {
	Label   float64
	Indices []int32
	Values  []float64
	Weight  float64
}

// Prefix brings the first rows of every split, about `rows` in all. Since
// rows are shuffled within their split it is a sample stratified by split.
func Prefix[T any](pk Packed[T], rows int) Action[[]T] {
	if points, ok := any(pk).(Packed[Point]); ok {
		return any(prefixAs(points, rows, func(p Point) packedPoint {
			return packedPoint{p.Label, p.Indices, p.Values, p.Weight}
		}, func(p packedPoint) Point {
			return Point{Label: p.Label, Indices: p.Indices, Values: p.Values, Weight: p.Weight}
		})).(Action[[]T])
	}
	same := func(row T) T { return row }
	return prefixAs(pk, rows, same, same)
}

// prefixAs does what Prefix does, with rows that are brought as another type.
func prefixAs[T, E any](pk Packed[T], rows int, to func(T) E, from func(E) T) Action[[]T] {
	c, brought := rowCodecFor[T](), rowCodecFor[E]()
	task := func(s *pack.Split) ([]byte, error) {
		share := int(int64(rows)*s.Rows/max(1, s.Meta.Rows)) + 1
		out := row.List[E]{Row: brought}
		for i := range s.Batches {
			b := &s.Batches[i]
			for r := 0; r < b.Rows && out.N < share; r++ {
				row, err := rowAt(s.Meta, b, r, c)
				if err == nil {
					e := to(row)
					err = out.Add(&e)
				}
				if err != nil {
					return nil, err
				}
			}
		}
		return out.Encoded(), nil
	}
	return packAction(pk, "prefix", task, func(raws [][]byte) ([]T, error) {
		var all []T
		var some []E
		var err error
		for _, raw := range raws {
			if some, err = row.AppendList(some[:0], raw); err != nil {
				return nil, err
			}
			for _, e := range some {
				all = append(all, from(e))
			}
		}
		return all, nil
	})
}

// Scan is a pass over a pack that returns one value a split, in order. It is
// an action: it is never cut, moves no cursor and is not part of the event log.
type Scan[P, R any] struct {
	g      *Graph
	id     int
	packID int
}

// ScanBatches declares a scan: f takes each batch of a split into the split's
// value, which begins as R's zero value.
func ScanBatches[P, T, R any](pk Packed[T], f func(r R, p P, b *Batch) R) Scan[P, R] {
	mustEncode[P](pk.g, "scan", "parameter")
	mustEncode[R](pk.g, "scan", "result")
	task := func(_ context.Context, part int, args []byte, packs runner.TaskContext) ([]byte, error) {
		var p P
		if err := Decode(args, &p); err != nil {
			return nil, err
		}
		split, err := packs.OpenSplit(pk.id, part)
		if err != nil {
			return nil, err
		}
		scan := &folder[P, T, R]{meta: split.Meta, param: p, agg: Aggregator[P, T, R]{AddBatch: f}}
		acc := any(new(R))
		for i := range split.Batches {
			b := &split.Batches[i]
			if acc, _, err = scan.Fold(acc, b, 0, b.Rows, nil); err != nil {
				return nil, err
			}
			packs.Moved(b.Rows)
		}
		return Encode(*acc.(*R))
	}
	id := pk.g.add(node{kind: "scan", typ: row.TypeName[T](), inputs: []int{pk.id}, user: true, task: task})
	return Scan[P, R]{g: pk.g, id: id, packID: pk.id}
}

// Run scans the pack under a parameter.
func (sc Scan[P, R]) Run(ctx context.Context, s *Session, param P) ([]R, error) {
	raw, err := Encode(param)
	if err != nil {
		return nil, fault.New(fault.UserCode, "encode", "the parameter", err)
	}
	ctx, leave, err := s.enter(ctx, false)
	if err != nil {
		return nil, err
	}
	defer leave()
	p, err := s.open(ctx, sc.packID)
	if err != nil {
		return nil, err
	}
	args := make([][]byte, len(p.meta.Splits))
	for i := range args {
		args[i] = raw
	}
	raws, err := whilePacked(ctx, s, sc.packID, func() ([][]byte, error) { return s.call(ctx, sc.id, p.number, args) })
	if err != nil {
		return nil, err
	}
	out := make([]R, len(raws))
	for i, raw := range raws {
		if err := Decode(raw, &out[i]); err != nil {
			return nil, fault.New(fault.Corrupt, "decode", "a split's value", err)
		}
	}
	return out, nil
}
