package tables

import (
	"fmt"
	"iter"
	"reflect"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
)

// Work is workers on the splits of a pack, a worker a split, and what they do in a clock.
type Work[P, D, S any] struct {
	data   rdd.Packed[D]
	do     func(c *Clock[P, D, S]) error
	tables []anyTable
	help   *helping[P, D, S] // nil where none does parts of another's clocks
	node   int               // of the plan
}

// Worker declares workers on the splits of a pack. In each clock a worker calls do, which may read and add to the
// tables that are named. What it hands from one clock to the next is in Clock.State, which begins as a zero S, and must
// be a type that Encode takes. What it does may depend on nothing but the parameter of Clocks, the rows, the state and
// the tables.
func Worker[P, D, S any](data rdd.Packed[D], do func(c *Clock[P, D, S]) error, used ...anyTable) Work[P, D, S] {
	return declare(data, do, nil, used, nil)
}

// declare adds workers to a plan.
func declare[P, D, S any](data rdd.Packed[D], do func(c *Clock[P, D, S]) error, help *helping[P, D, S],
	used []anyTable, mistakes []error) Work[P, D, S] {
	if len(used) == 0 {
		mistakes = append(mistakes, fault.Newf(fault.UserCode, "declare", "workers", "they use no table"))
	}
	if _, err := rdd.Encode(*new(S)); err != nil {
		mistakes = append(mistakes, fault.New(fault.UserCode, "encode", "the state of workers", err))
	}
	if _, err := rdd.Encode(*new(P)); err != nil {
		mistakes = append(mistakes, fault.New(fault.UserCode, "encode", "the parameter of workers", err))
	}
	w := Work[P, D, S]{data: data, do: do, tables: used, help: help}
	detail := fmt.Sprint(len(used), " tables, state ", reflect.TypeFor[S]())
	if help != nil {
		detail += ", helped"
	}
	w.node = rdd.DeclareGang(data.Of(), "workers", detail, w.member, mistakes...)
	return w
}

// StateAt returns a worker's state as it is after exactly the clocks of a tick.
func (w Work[P, D, S]) StateAt(tick *Tick, worker int) (s S, err error) {
	err = rdd.Decode(tick.of.states[worker], &s)
	return s, err
}

// Clock is a worker's clock: its rows, and its state.
type Clock[P, D, S any] struct {
	// State is the worker's own, from clock to clock.
	State *S
	// Param is the parameter of the run, which all workers share; it is not to be changed.
	Param P
	run   *run
	w     *worker
	rows  source[D]
	helps bool // it is between the worker's clocks, or their items: no table may be used
	err   error
}

// source has the rows of splits, as rdd.Resident does.
type source[D any] interface {
	Rows(split int) iter.Seq2[D, error]
	Batches(in *rdd.Looks, split int, from int64, size int) iter.Seq2[int64, *rdd.Batch]
	Size(split int) int64
	Points(split int) bool
}

// Worker returns the worker's number, from 0 on, which is that of its split.
func (c *Clock[P, D, S]) Worker() int { return int(c.w.id) }

// Workers returns how many workers there are.
func (c *Clock[P, D, S]) Workers() int { return len(c.run.workers) }

// Number returns how many clocks the worker has finished.
func (c *Clock[P, D, S]) Number() int { return c.w.clock }

// Notes returns what make has made, in this clock or an earlier one, of what a worker needs from clock to clock and can
// make again: it is no part of checkpoints. Make may be called again at any time.
func (c *Clock[P, D, S]) Notes(make func() any) any {
	if c.w.notes == nil {
		c.w.notes = make()
	}
	return c.w.notes
}

// SharedNotes returns what make has made, once, for all workers of the executor, which use it side by side; else it is
// as Notes. Make uses no table. What a worker has read in a clock is what the others read in the same clock only where
// tables are exact (Model.Exact); there no worker is in a clock before all have finished the one before it.
func (c *Clock[P, D, S]) SharedNotes(make func() any) any {
	x := c.w.executor
	c.w.waits.Store(true) // for one that makes them
	x.noting.Lock()
	c.w.waits.Store(false)
	defer x.noting.Unlock()
	if x.notes == nil {
		x.notes = make()
	}
	return x.notes
}

// Rows yields the rows of the worker's split, in the same order each time.
func (c *Clock[P, D, S]) Rows() iter.Seq[D] {
	return func(yield func(D) bool) {
		for row, err := range c.rows.Rows(int(c.w.id)) {
			c.w.did(c.run, 1)
			if err != nil {
				c.err = err
				return
			}
			if !yield(row) {
				return
			}
		}
	}
}

// Size returns how many rows the worker's split has.
func (c *Clock[P, D, S]) Size() int64 { return c.rows.Size(int(c.w.id)) }

// Batches yields the rows of a split of points as columns, at most a size at a time, from a position on, each with the
// position of its first row. A batch is valid until the worker's next one. Who uses it says by Worked what was
// processed.
func (c *Clock[P, D, S]) Batches(from int64, size int) iter.Seq2[int64, *rdd.Batch] {
	if !c.rows.Points(int(c.w.id)) {
		c.err = fault.Newf(fault.UserCode, "read", "batches of rows", "the rows are no points: they have no columns")
		return func(func(int64, *rdd.Batch) bool) {}
	}
	return c.rows.Batches(&c.w.looks, int(c.w.id), from, size)
}

// accessTo returns the worker's access to a table.
func (c *Clock[P, D, S]) accessTo(t any) any {
	if c.helps {
		panic("a part of another worker's clock uses a table: Helping.Do works with the worker's notes alone")
	}
	if i, ok := c.run.index[t]; ok {
		return c.w.access[i]
	}
	panic("the workers' declaration does not name this table")
}
