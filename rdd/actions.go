package rdd

import (
	"context"
	"errors"
	"fmt"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Action is something that computes a value from a whole dataset.
type Action[R any] struct {
	g    *Graph
	id   int
	run  func(ctx context.Context, s *Session) (R, error)
	name string
}

// Run computes the action's value. Several actions may run side by side, each from a goroutine: they share the
// executors' slots, and a shuffle that two of them read is made once. Tasks of an action whose context has ended run to
// their end.
func (a Action[R]) Run(ctx context.Context, s *Session) (R, error) {
	var zero R
	if a.run == nil || a.id >= a.g.size() {
		return zero, fault.Newf(fault.UserCode, "run", "an action", "it is of no plan, or of a part that was not built")
	}
	ctx, leave, err := s.enter(ctx, true)
	if err != nil {
		return zero, err
	}
	defer leave()
	release, _, err := s.claim(ctx, running, a.id)
	if err != nil {
		return zero, err
	}
	defer release()
	return a.run(ctx, s)
}

// collectLimit is how many bytes of rows an action may bring to the driver's side.
const collectLimit = 1 << 30

// action adds a node whose tasks compute one encoded value a partition.
func action[T, R any](ds Dataset[T], kind string, task taskFunc,
	finish func(ctx context.Context, s *Session, id int) (R, error)) Action[R] {
	id := ds.g.add(node{kind: kind, typ: row.TypeName[T](), inputs: []int{ds.id}, user: true, task: task})
	return Action[R]{g: ds.g, id: id, name: kind,
		run: func(ctx context.Context, s *Session) (R, error) { return finish(ctx, s, id) }}
}

// Count counts the rows.
func Count[T any](ds Dataset[T]) Action[int64] {
	return action(ds, "count", countTask(ds), func(ctx context.Context, s *Session, id int) (int64, error) {
		var total int64
		raws, err := callAll(ctx, s, id, ds.parts)
		for _, raw := range raws {
			var n int64
			if err := Decode(raw, &n); err != nil {
				return 0, err
			}
			total += n
		}
		return total, err
	})
}

// rowsTask returns up to `most` rows of a partition, 0 being all of them.
func rowsTask[T any](ds Dataset[T], op string) taskFunc {
	c, err := row.CodecOf[T]()
	if err != nil {
		ds.g.fail("%s: the rows cannot be encoded: %v", op, err)
	}
	return func(ctx context.Context, part int, args []byte, _ runner.TaskContext) ([]byte, error) {
		most := 0
		if len(args) > 0 {
			if err := Decode(args, &most); err != nil {
				return nil, err
			}
		}
		if most < 0 {
			return row.NoRows, nil
		}
		rows := row.List[T]{Row: c}
		err := ds.rows(ctx, part, func(r T) error {
			if err := rows.Add(&r); err != nil {
				return fault.New(fault.UserCode, "encode", row.TypeName[T](), err)
			}
			if len(rows.Raw) > collectLimit {
				return fault.Newf(fault.NoResources, "collect", fmt.Sprintf("partition %d", part),
					"its rows are more than %d MiB", collectLimit>>20).WithHint("aggregate or save them instead")
			}
			if most > 0 && rows.N == most {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return nil, err
		}
		return rows.Encoded(), nil
	}
}

// tooMany returns an error where partitions come to more than an action may bring.
func tooMany(raws [][]byte) error {
	var total int64
	for _, raw := range raws {
		total += int64(len(raw))
	}
	if total > collectLimit {
		return fault.Newf(fault.NoResources, "collect", "the rows", "they are %d MiB, more than %d", total>>20,
			collectLimit>>20).WithHint("aggregate, save or stream them instead")
	}
	return nil
}

// Collect brings all rows to the driver's side, in input order.
func Collect[T any](ds Dataset[T]) Action[[]T] {
	return action(ds, "collect", rowsTask(ds, "collect"), func(ctx context.Context, s *Session, id int) ([]T, error) {
		raws, err := callAll(ctx, s, id, ds.parts)
		var rows []T
		if err == nil {
			err = tooMany(raws)
		}
		for _, raw := range raws {
			if err != nil {
				return nil, err
			}
			if rows, err = row.AppendList(rows, raw); err != nil {
				return nil, err
			}
		}
		return rows, err
	})
}

// Take brings the first n rows, reading partitions from the first on until it
// has them.
func Take[T any](ds Dataset[T], n int) Action[[]T] {
	ds.g.notNegative("take", n)
	return action(ds, "take", rowsTask(ds, "take"), func(ctx context.Context, s *Session, id int) ([]T, error) {
		return takeRows[T](ctx, s, id, ds.parts, n)
	})
}

// takeRows asks for one partition more at each round than in all before, so
// that a short prefix costs little and a sparse one few rounds.
func takeRows[T any](ctx context.Context, s *Session, id int, partsOf func() int, n int) ([]T, error) {
	if err := s.settleAction(ctx, id); err != nil {
		return nil, err
	}
	parts := partsOf()
	var rows []T
	for asked := 0; asked < parts && len(rows) < n; {
		args := make([][]byte, min(parts, 2*asked+1))
		most, err := Encode(n - len(rows))
		if err != nil {
			return nil, err
		}
		none, _ := Encode(-1)
		for i := range args {
			args[i] = none
			if i >= asked {
				args[i] = most
			}
		}
		raws, err := s.call(ctx, id, plan.NoPack, args)
		if err != nil {
			return nil, err
		}
		for _, raw := range raws[asked:] {
			if rows, err = row.AppendList(rows, raw); err != nil {
				return nil, err
			}
		}
		asked = len(args)
	}
	return rows[:min(n, len(rows))], nil
}

// First returns the first row; an empty dataset has none, which is an error.
func First[T any](ds Dataset[T]) Action[T] {
	return action(ds, "first", rowsTask(ds, "first"), func(ctx context.Context, s *Session, id int) (T, error) {
		rows, err := takeRows[T](ctx, s, id, ds.parts, 1)
		if err == nil && len(rows) == 0 {
			err = fault.Newf(fault.BadInput, "take", "the first row", "the dataset is empty")
		}
		if err != nil {
			var zero T
			return zero, err
		}
		return rows[0], nil
	})
}

// Reduce combines all rows with an associative function, in input order. An
// empty dataset has no result, which is an error.
func Reduce[T any](ds Dataset[T], f func(a, b T) T) Action[T] {
	c, err := row.CodecOf[T]()
	if err != nil {
		ds.g.fail("reduce: the rows cannot be encoded: %v", err)
	}
	task := func(ctx context.Context, part int, _ []byte, _ runner.TaskContext) ([]byte, error) {
		var acc T
		n := 0
		err := ds.rows(ctx, part, func(row T) error {
			if n++; n == 1 {
				acc = row
			} else {
				acc = f(acc, row)
			}
			return nil
		})
		if err != nil || n == 0 {
			return row.NoRows, err
		}
		one := row.List[T]{Row: c}
		err = one.Add(&acc)
		return one.Encoded(), err
	}
	return action(ds, "reduce", task, func(ctx context.Context, s *Session, id int) (T, error) {
		var rows []T
		var zero T
		raws, err := callAll(ctx, s, id, ds.parts)
		for _, raw := range raws {
			if rows, err = row.AppendList(rows, raw); err != nil {
				return zero, err
			}
		}
		if err == nil && len(rows) == 0 {
			err = fault.Newf(fault.BadInput, "reduce", "the dataset", "it is empty")
		}
		if err != nil {
			return zero, err
		}
		for _, row := range rows[1:] {
			rows[0] = f(rows[0], row)
		}
		return rows[0], nil
	})
}
