package rdd

import (
	"context"
	"fmt"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Accumulator folds the rows that pass by into a value of any type that can be encoded. It is exact, as a Counter:
// a partition counts once, however often it is tried or computed again, and only when it has been read to its end.
// What partitions come to is merged in their order, so the value is the same on any cluster.
type Accumulator[T, A any] struct {
	nodes *[]int
	zero  func() A
	add   func(a A, row T) A
	merge func(a, b A) A
}

// NewAccumulator makes an accumulator. add and merge own what they are given, and return it.
func NewAccumulator[T, A any](zero func() A, add func(a A, row T) A, merge func(a, b A) A) Accumulator[T, A] {
	return Accumulator[T, A]{new([]int), zero, add, merge}
}

// Accumulate adds every row to an accumulator. Rows pass unchanged.
func Accumulate[T, A any](ds Dataset[T], acc Accumulator[T, A]) Dataset[T] {
	if acc.zero == nil || acc.add == nil || acc.merge == nil {
		ds.g.fail("an accumulator is made by NewAccumulator, of three functions")
		return ds
	}
	mustEncode[A](ds.g, "accumulate", "value")
	var id int
	out := derive(ds, "accumulate", func(ctx context.Context, part int, yield func([]T) error) error {
		env, err := envOf(ctx)
		if err != nil {
			return fmt.Errorf("accumulate: %w", err)
		}
		value := acc.zero()
		err = ds.each(ctx, part, func(rows []T) error {
			for i := range rows {
				value = acc.add(value, rows[i])
			}
			return yield(rows)
		})
		if err != nil {
			return err
		}
		raw, err := row.Encode(value)
		if err != nil {
			return fault.New(fault.UserCode, "encode", "an accumulator's value", err)
		}
		env.tally(tally{Node: id, Part: part, Value: raw})
		return nil
	})
	id = out.id
	ds.g.notes(acc.nodes, id)
	return preservesPartitioning(ds.spread, out)
}

// Value returns what has been accumulated so far.
func (acc Accumulator[T, A]) Value(s *Session) (A, error) {
	total := acc.zero()
	for _, id := range *acc.nodes {
		for _, one := range s.tallies.of(id) {
			var a A
			if err := row.Decode(one.Value, &a); err != nil {
				return total, fault.New(fault.Corrupt, "decode", "an accumulator's value", err)
			}
			total = acc.merge(total, a)
		}
	}
	return total, nil
}

// Named gives a dataset a name, which Graph.Explain and messages show beside what it is made by. Rows are the same.
func Named[T any](ds Dataset[T], name string) Dataset[T] {
	ds.g.node(ds.id).label = name
	return ds
}
