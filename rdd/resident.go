package rdd

import (
	"context"
	"iter"
	"path/filepath"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/pack"
)

// Host is where work goes on that is no step, beside the splits of a pack.
type Host struct {
	Dir              string   // of the pack
	Executors, Slots int      // slots of each
	Names            []string // of executors
	Pacer            func(executor, slot int) Pacer
	Timeout          time.Duration // how long a worker may give no sign
	Computed         *Computed     // where the clock is virtual; nil where it is real
}

// Pacer slows a slot down to a pace that is emulated; nil where it runs at its own.
type Pacer interface {
	// Worked is called after rows have been processed, and returns when the slot may go on.
	Worked(rows int64)
	// Waited is called after the slot has waited: the pace does not count that time.
	Waited(d time.Duration)
}

// Computed is what a virtual clock says of such work: times are those since it began.
type Computed struct {
	// Spend returns when rows are processed that a slot begins with at a time.
	Spend func(executor, slot int, at time.Duration, rows int64) time.Duration
	// Arrive returns when a message that leaves at a time arrives at an executor, or at the Leader.
	Arrive func(from, to int, at time.Duration, bytes int64) time.Duration
	// Handle returns how long a slot's core takes to write or to read bytes of messages; nil where others do.
	Handle func(bytes int64) time.Duration
	// Tick is how often what leaves as bandwidth allows is looked at.
	Tick time.Duration
}

// Worked notes that work which is no step has gone on for a time, for the job's time in training; a virtual clock is
// set on by it.
func (s *Session) Worked(d time.Duration) {
	if c, ok := s.cluster.(interface{ Worked(d time.Duration) }); ok {
		c.Worked(d)
	}
}

// hosting is a cluster that can have such work done within the job's own process.
type hosting interface {
	// Host returns where the rows of an open pack are.
	Host(ctx context.Context, node int) (Host, error)
}

// Resident is the rows of a pack, by split, for work that is no step: the workers of parameter tables. It is for
// package tables, and promises nothing to others.
type Resident[T any] struct {
	Host
	splits map[int]*pack.Split
	codec  row.Codec[T]
}

// Resident maps the splits of a pack into the job's own process, until Close.
func (pk Packed[T]) Resident(ctx context.Context, s *Session) (*Resident[T], error) {
	h, ok := s.cluster.(hosting)
	if !ok {
		return nil, fault.Newf(fault.Usage, "map", "the splits of a pack", "this cluster does not have them")
	}
	meta, err := pk.Meta(ctx, s)
	if err != nil {
		return nil, err
	}
	host, err := h.Host(ctx, pk.id)
	if err != nil {
		return nil, err
	}
	r := &Resident[T]{Host: host, codec: rowCodecFor[T](), splits: map[int]*pack.Split{}}
	for k := range meta.Splits {
		split, err := pack.OpenSplit(filepath.Join(host.Dir, pack.SplitFile(k)), meta, k)
		if err != nil {
			r.Close()
			return nil, err
		}
		r.splits[k] = split
	}
	return r, nil
}

// Close unmaps the splits.
func (r *Resident[T]) Close() {
	for _, s := range r.splits {
		_ = s.Close() // nothing was written
	}
}

// Splits returns how many there are.
func (r *Resident[T]) Splits() int { return len(r.splits) }

// Looks is memory of batches that one goroutine looks at, one after the other.
type Looks struct{ free []*look }

type look struct {
	Batch
	rows []int32
}

func (l *Looks) take() *look {
	last := len(l.free) - 1
	if last < 0 {
		return &look{}
	}
	look := l.free[last]
	l.free = l.free[:last]
	return look
}

// Batches yields rows of a split of points as columns, at most a size at a time, in the order in which steps visit them
// from a position on; each with the position of its first row. A batch is valid until the next that is looked at in the
// same memory.
func (r *Resident[T]) Batches(in *Looks, split int, from int64, size int) iter.Seq2[int64, *Batch] {
	return func(yield func(int64, *Batch) bool) {
		s, look := r.splits[split], in.take()
		defer func() { in.free = append(in.free, look) }()
		size = int(min(int64(size), s.Rows))
		if cap(look.rows) < size {
			look.rows = make([]int32, size)
		}
		view, rows := &look.Batch, look.rows[:size]
		for i := range s.Batches {
			b := &s.Batches[i]
			*view = Batch{Features: s.Meta.Features, Labels: b.Labels, Weights: b.Weights, X64: b.X64, X32: b.X32,
				Offsets: b.Offsets, Indices: b.Indices, scratch: view.scratch, weights: view.weights, all: b}
			for p := int(max(0, from-b.First)); p < b.Rows; p += size {
				view.Rows = rows[:min(size, b.Rows-p)]
				b.Visit(view.Rows, p)
				if !yield(b.First+int64(p), view) {
					return
				}
			}
		}
	}
}

// Size returns how many rows a split has.
func (r *Resident[T]) Size(split int) int64 { return r.splits[split].Rows }

// Points reports whether rows are points, so that they have columns.
func (r *Resident[T]) Points(split int) bool { return r.splits[split].Meta.Layout != pack.BlobLayout }

// Rows yields the rows of a split in the order in which steps visit them, up to one that cannot be decoded.
func (r *Resident[T]) Rows(split int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		s := r.splits[split]
		for i := range s.Batches {
			b := &s.Batches[i]
			for at := range b.Rows {
				v, err := rowAt(s.Meta, b, at, r.codec)
				if !yield(v, err) || err != nil {
					return
				}
			}
		}
	}
}

// Declare adds to a plan what is run beside its steps and actions, so that plans in which it differs are not taken for
// one, and an explanation of the plan has it; mistakes are noted as the plan's. It is for package tables.
func Declare(g *Graph, kind, detail string, mistakes ...error) {
	DeclareGang(g, kind, detail, nil, mistakes...)
}

// Of returns the plan that a pack is of.
func (pk Packed[T]) Of() *Graph { return pk.g }
