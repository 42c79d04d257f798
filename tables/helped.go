package tables

import (
	"errors"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables/reassign"
)

// Help is how workers do parts of one another's clocks: the parameters of FlexRR's RapidReassignment (SoCC '16, section
// 4 and table 1), of which DefaultHelp returns those that its authors have found to be good.
type Help = reassign.Options

// DefaultHelp returns FlexRR's parameters.
func DefaultHelp() Help { return reassign.Defaults() }

// Part is items of a worker's clock that another worker does for it, of those that it shares (Clock.Share): From of
// them come before it, and To before its end.
type Part struct {
	Worker, Clock int
	From, To      int
}

// Helping is what workers need to do parts of one another's clocks. What a worker gives and a helper has made must be
// of types that Encode takes.
type Helping[P, D, S, T, R any] struct {
	// By says who helps whom, and when.
	By Help
	// Give returns what a helper has to know of the worker's state to do a part. The worker goes on meanwhile, with
	// other items.
	Give func(c *Clock[P, D, S], p Part) T
	// Do does a part for another worker; the clock is the helper's, between two of its items or after its last. It uses
	// no table, so that it waits for nothing: what the helper sees of tables it has in its notes. It reads the rows of
	// the other by BatchesOf.
	Do func(c *Clock[P, D, S], p Part, given T) R
	// NoRows says that Do reads no rows of the other's split, so that helpers need not have it.
	NoRows bool
	// Take adds what a helper has made to the worker's state and to tables, as if the worker had done the part itself.
	Take func(c *Clock[P, D, S], p Part, made R)
}

// helping is a Helping whose values are encoded, as they travel.
type helping[P, D, S any] struct {
	by   Help
	rows bool // helpers read those of others
	give func(c *Clock[P, D, S], p Part) ([]byte, error)
	do   func(c *Clock[P, D, S], p Part, given []byte) ([]byte, error)
	take func(c *Clock[P, D, S], p Part, made []byte) error
}

// HelpedWorker declares workers as Worker does, that do parts of one another's clocks where one is far behind. What the
// tables are after a clock has each part once, whichever worker did it.
func HelpedWorker[P, D, S, T, R any](data rdd.Packed[D], do func(c *Clock[P, D, S]) error,
	h Helping[P, D, S, T, R], used ...anyTable) Work[P, D, S] {
	var mistakes []error
	if err := h.By.Check(); err != nil {
		mistakes = append(mistakes, err)
	}
	for _, v := range []any{*new(T), *new(R)} {
		if _, err := rdd.Encode(v); err != nil {
			mistakes = append(mistakes, fault.New(fault.UserCode, "encode", "what helpers are given or make", err))
		}
	}
	return declare(data, do, encoding(h), used, mistakes)
}

// encoding returns a helping whose values are encoded.
func encoding[P, D, S, T, R any](h Helping[P, D, S, T, R]) *helping[P, D, S] {
	return &helping[P, D, S]{
		by: h.By, rows: !h.NoRows,
		give: func(c *Clock[P, D, S], p Part) ([]byte, error) {
			return rdd.Encode(h.Give(c, p))
		},
		do: func(c *Clock[P, D, S], p Part, given []byte) ([]byte, error) {
			var t T
			if err := rdd.Decode(given, &t); err != nil {
				return nil, fault.New(fault.Corrupt, "read", "what a helper is given", err)
			}
			return rdd.Encode(h.Do(c, p, t))
		},
		take: func(c *Clock[P, D, S], p Part, made []byte) error {
			var r R
			if err := rdd.Decode(made, &r); err != nil {
				return fault.New(fault.Corrupt, "read", "what a helper has made", err)
			}
			h.Take(c, p, r)
			return nil
		},
	}
}

// hands returns what a run calls.
func (h *helping[P, D, S]) hands(clock func(w *worker) *Clock[P, D, S]) *hands {
	return &hands{
		give: func(w *worker, p Part) ([]byte, error) { return h.give(clock(w), p) },
		do: func(w *worker, p Part, given []byte) ([]byte, error) {
			c := clock(w)
			c.helps = true
			made, err := h.do(c, p, given)
			return made, errors.Join(err, c.err)
		},
		take: func(w *worker, p Part, made []byte) error {
			c := clock(w)
			return errors.Join(h.take(c, p, made), c.err)
		},
	}
}

// Share calls do for items of the clock, some at a time, from one up to another, in their order: for all of them, but
// for those that other workers do (HelpedWorker). It returns when all are done. What is handed over is whole items: a
// clock should have a hundred, or more. Helped workers share once in a clock.
func (c *Clock[P, D, S]) Share(items int, do func(from, to int)) {
	switch {
	case items <= 0 && c.w.sharing == nil:
		return
	case c.w.sharing == nil:
		do(0, items)
		return
	}
	c.run.share(c.w, items, do)
}

// SizeOf returns how many rows another worker's split has, which this one helps.
func (c *Clock[P, D, S]) SizeOf(worker int) int64 { return c.rows.Size(worker) }

// BatchesOf yields the rows of another worker's split as Batches does, of one that this one helps.
func (c *Clock[P, D, S]) BatchesOf(worker int, from int64, size int) func(func(int64, *rdd.Batch) bool) {
	if !c.rows.Points(worker) {
		c.err = fault.Newf(fault.UserCode, "read", "batches of rows", "the rows are no points: they have no columns")
		return func(func(int64, *rdd.Batch) bool) {}
	}
	return c.rows.Batches(&c.w.looks, worker, from, size)
}
