package rdd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/pack"
)

// Packed is a dataset laid out in splits that steps fold: mapped Arrow files
// whose rows are shuffled within each split. Only packs have cursors.
type Packed[T any] struct {
	g  *Graph
	id int
}

// PackOption says how rows become splits.
type PackOption func(*pack.Options)

// Splits sets the number of splits; by default it depends on the data only.
func Splits(n int) PackOption { return func(o *pack.Options) { o.Splits = n } }

// RandomAssign sends rows to splits by a seeded hash of their ordinal instead
// of by contiguous ranges of the input.
func RandomAssign() PackOption { return func(o *pack.Options) { o.Random = true } }

// Seed sets the seed of the shuffle within splits and of RandomAssign.
func Seed(seed uint64) PackOption { return func(o *pack.Options) { o.Seed = seed } }

// SinglePrecision stores features as float32; arithmetic stays in float64.
func SinglePrecision() PackOption { return func(o *pack.Options) { o.Float32 = true } }

// Columns sets the number of features and the first column number (0 or 1) of
// sparse text; −1 detects the latter.
func Columns(features, base int) PackOption {
	return func(o *pack.Options) { o.Features, o.IndexBase = features, base+1 }
}

// Pack lays a dataset out for steps. Points become vectors; rows of any other
// type are stored in their encoding.
func Pack[T any](ds Dataset[T], options ...PackOption) Packed[T] {
	rows := func() pack.Rows { return encodedRows[T]{ds, rowCodecFor[T]()} }
	points, ok := any(ds).(Dataset[Point])
	if !ok {
		mustEncode[T](ds.g, "pack", "rows")
	} else {
		rows = func() pack.Rows {
			if points.source != nil {
				return points.source.source
			}
			return pointRows{points}
		}
	}
	made := func() []pack.Rows { return []pack.Rows{rows()} }
	return Packed[T]{g: ds.g, id: declarePacks(ds, []packKind{{"rows", optionsOf(options)}}, made)[0]}
}

// chunkRows is how many rows a derived dataset hands to the packer at a time, or as many as
// take chunkBytes.
const (
	chunkRows  = 8192
	chunkBytes = 4 << 20
)

// encodedRows packs rows of a type without columns of its own.
type encodedRows[T any] struct {
	ds  Dataset[T]
	row row.Codec[T]
}

// rowCodecFor returns the codec of a type that the plan has found to be encodable.
func rowCodecFor[T any]() row.Codec[T] {
	c, _ := row.CodecOf[T]()
	return c
}

func (r encodedRows[T]) Len() int { return r.ds.parts() }

func (r encodedRows[T]) Read(ctx context.Context, part int, yield func(*rows.Chunk) error) error {
	c, bytes := &rows.Chunk{}, 0
	err := r.ds.rows(ctx, part, func(v T) error {
		one := row.List[T]{Row: r.row}
		if err := one.Add(&v); err != nil {
			return fault.New(fault.UserCode, "encode", row.TypeName[T](), err)
		}
		c.Blobs, bytes = append(c.Blobs, one.Raw), bytes+len(one.Raw)
		if len(c.Blobs) < chunkRows && bytes < chunkBytes {
			return nil
		}
		full := c
		c, bytes = &rows.Chunk{}, 0
		return yield(full)
	})
	if err != nil || len(c.Blobs) == 0 {
		return err
	}
	return yield(c)
}

// pointRows packs points that were computed, not read.
type pointRows struct{ ds Dataset[Point] }

func (r pointRows) Len() int { return r.ds.parts() }

func (r pointRows) Read(ctx context.Context, part int, yield func(*rows.Chunk) error) error {
	c, n := &rows.Chunk{ZeroBased: true}, 0
	err := r.ds.rows(ctx, part, func(p Point) error {
		if err := checkPoint(c, &p); err != nil {
			return fault.New(fault.UserCode, "pack", fmt.Sprintf("row %d of partition %d", n, part), err)
		}
		n++
		if p.Indices == nil {
			c.AppendDense(p.Label, p.Values)
		} else {
			c.AppendSparse(p.Label, p.Indices, p.Values)
		}
		if p.Class != "" {
			c.LabelText(p.Class)
		}
		if p.Weight != 0 {
			c.AppendWeight(p.Weight)
		}
		if len(c.Labels) < chunkRows && c.Bytes() < chunkBytes {
			return nil
		}
		full := c
		c = &rows.Chunk{ZeroBased: true}
		return yield(full)
	})
	if err != nil || len(c.Labels) == 0 {
		return err
	}
	return yield(c)
}

// checkPoint returns what is wrong with a point that is to follow those of a chunk.
func checkPoint(c *rows.Chunk, p *Point) error {
	switch dense := p.Indices == nil; {
	case dense && len(p.Values) == 0:
		return errors.New("it has no values")
	case len(c.Labels) > 0 && (p.Class == "") != (c.Texts == nil):
		return errors.New("some points have a Class, others have none")
	case len(c.Labels) > 0 && dense != c.Dense():
		return errors.New("dense and sparse points are mixed: give all of them Indices, or none")
	case dense && len(c.Labels) > 0 && len(p.Values) != c.Width:
		return fmt.Errorf("it has %d values, those before it %d", len(p.Values), c.Width)
	case !dense && len(p.Indices) != len(p.Values):
		return fmt.Errorf("it has %d indices and %d values", len(p.Indices), len(p.Values))
	}
	for i, at := range p.Indices {
		if at < 0 || at > rows.MaxIndex || i > 0 && at <= p.Indices[i-1] {
			return fmt.Errorf("indices %d do not ascend from 0 to %d", p.Indices, rows.MaxIndex)
		}
	}
	if at := slices.IndexFunc(p.Values, notFinite); at >= 0 || notFinite(p.Label) {
		return fmt.Errorf("its label %v or one of its values is not finite", p.Label)
	}
	return nil
}

func notFinite(x float64) bool { return x-x != 0 }

// Batch is a run of rows of a pack, in visiting order: Rows are their numbers
// within the columns. Values are valid during the call only.
type Batch struct {
	Features int
	Rows     []int32
	Labels   []float64 // by row
	Weights  []float64 // by row; nil where rows have none
	X64      []float64 // dense row-major, or sparse by nonzero
	X32      []float32 // the same where the pack is in single precision
	Offsets  []int32   // sparse only: row r has nonzeros Offsets[r] to Offsets[r+1]
	Indices  []int32
	State    []float64 // the row state, by visited row, Aggregator.State numbers each; AddBatch may change it

	scratch []float64
	weights []float64 // of Rows, in turn
	all     *pack.Batch
}

// Notes returns what folds have found out about the rows among which Rows are, numbered
// up to n, to save work the next time: who takes them (a pointer) finds what make
// has made, several at the same time. They may be gone at any time, and no result
// may depend on them; nil where none can be kept.
func (b *Batch) Notes(who any, make func(n int) any) any {
	if b.all == nil || b.all.Notes == nil {
		return nil
	}
	return b.all.Notes.Of(who, func() any { return make(b.all.Rows) })
}

// Scratch returns room for n numbers that AddBatch may use during the call; what is
// in it at first is undefined.
func (b *Batch) Scratch(n int) []float64 {
	if cap(b.scratch) < n {
		b.scratch = make([]float64, n)
	}
	return b.scratch[:n]
}

// WeightOf returns the weight of a row: 1 where rows have none.
func (b *Batch) WeightOf(row int32) float64 {
	if b.Weights == nil {
		return 1
	}
	return b.Weights[row]
}

// VisitedWeights returns the weights of Rows, in turn; nil where rows have none. They are
// valid during the call.
func (b *Batch) VisitedWeights() []float64 {
	if b.Weights == nil {
		return nil
	}
	b.weights = b.weights[:0]
	for _, r := range b.Rows {
		b.weights = append(b.weights, b.Weights[r])
	}
	return b.weights
}

// Dense reports whether rows are dense.
func (b *Batch) Dense() bool { return b.Offsets == nil }

// rowsPerBatch is how many rows AddBatch gets at a time at the most.
const rowsPerBatch = 1024

// Aggregator folds rows of type T into an accumulator A under a parameter P.
// Add or AddBatch is needed, and Merge. Fold functions own the accumulator
// they are given and return it. Scale(a, f) makes a partial result stand for
// f times as many rows; without it a step can be cut only under
// weighting=rows.
type Aggregator[P, T, A any] struct {
	Zero     func(P) A
	Add      func(a A, p P, row T) A
	AddBatch func(a A, p P, b *Batch) A
	Merge    func(a, b A) A
	Scale    func(a A, f float64) A
	// Close, where there is one, sees the result of each split before it is merged
	// with others, and the number of rows that it stands for. Under leases there may
	// be no such moment: what it notes is for cut steps.
	Close func(a A, p P, rows float64) A
	// State is how many numbers live with each row: zeros at first, in Batch.State
	// afterwards what AddBatch made of them in the last step whose result was merged,
	// wherever the split is by then. Splits are folded in one piece, from row to row.
	State int
	// Weighted says that A is a sum over rows times their weights, where rows have
	// some (Batch.Weights, Point.Weight): it is scaled, and divided for means, by them.
	Weighted bool
	// Entries counts a step's progress in the entries of sparse rows, not in rows: for
	// rows whose cost goes by these, and that are folded whole.
	Entries bool
}

// StepOption modifies a step.
type StepOption func(*stepDecl)

type stepDecl struct {
	train    bool
	work     bool // part of the method, though it is not cut
	ratio    float64
	scalable bool
	entries  bool // in which progress is counted
}

// Aggressive lets a step end early, as the engine's synchronization policy
// says; ratio is the synchronization ratio in (0, 1], 0 the engine's own.
func Aggressive(ratio float64) StepOption {
	return func(d *stepDecl) { d.train, d.ratio = true, ratio }
}

// Step is an aggregation of a pack that is run again and again under changing
// parameters.
type Step[P, A any] struct {
	g      *Graph
	id     int
	packID int
	decl   stepDecl
	folder func(meta *pack.Meta, param P) runner.Folder
}

// Aggregate declares a step over a pack.
func Aggregate[P, T, A any](pk Packed[T], agg Aggregator[P, T, A], options ...StepOption) Step[P, A] {
	d := stepDecl{scalable: agg.Scale != nil, entries: agg.Entries}
	for _, set := range options {
		set(&d)
	}
	if agg.Zero == nil || agg.Merge == nil || (agg.Add == nil && agg.AddBatch == nil) {
		pk.g.fail("an Aggregator needs Zero, Merge and one of Add and AddBatch")
	}
	mustEncode[P](pk.g, "aggregate", "parameter")
	mustEncode[A](pk.g, "aggregate", "accumulator")
	if agg.State > 0 && agg.AddBatch == nil {
		pk.g.fail("an Aggregator with State needs AddBatch, which sees it")
	}
	if d.ratio < 0 || d.ratio > 1 {
		pk.g.fail("Aggressive(%v): the synchronization ratio lies in (0, 1]", d.ratio)
	}
	id := pk.g.add(node{kind: "aggregate", typ: row.TypeName[P]() + "→" + row.TypeName[A](),
		detail: fmt.Sprintf("%+v", d),
		inputs: []int{pk.id}, user: true,
		folder: func(meta *pack.Meta, raw []byte) (runner.Folder, error) {
			f := &folder[P, T, A]{agg: agg, meta: meta}
			return f, row.Decode(raw, &f.param)
		}})
	return Step[P, A]{g: pk.g, id: id, packID: pk.id, decl: d, folder: func(meta *pack.Meta, param P) runner.Folder {
		return &folder[P, T, A]{agg: agg, meta: meta, param: param}
	}}
}

// Uncut returns the same step over all rows, whatever the synchronization policy, as
// part of a method: its time is training time. Row state is the same for
// both.
func (st Step[P, A]) Uncut() Step[P, A] {
	st.decl.train, st.decl.work = false, true
	return st
}

// folder runs an Aggregator under one parameter. Accumulators are held by
// pointer, and its scratch space makes it fit for one slot at a time, so that
// a fold allocates nothing.
type folder[P, T, A any] struct {
	agg   Aggregator[P, T, A]
	meta  *pack.Meta
	param P
	row   row.Codec[T]
	rows  [rowsPerBatch]int32
	view  Batch
}

func (f *folder[P, T, A]) Zero() any {
	a := f.agg.Zero(f.param)
	return &a
}

func (f *folder[P, T, A]) Merge(a, b any) any {
	into := a.(*A)
	*into = f.agg.Merge(*into, *b.(*A))
	return into
}

func (f *folder[P, T, A]) Scale(a any, by float64) any {
	into := a.(*A)
	*into = f.agg.Scale(*into, by)
	return into
}

// Close lets the Aggregator see the result of a split.
func (f *folder[P, T, A]) Close(a any, rows float64) any {
	into := a.(*A)
	if f.agg.Close != nil {
		*into = f.agg.Close(*into, f.param, rows)
	}
	return into
}

func (f *folder[P, T, A]) Encode(a any) ([]byte, error) { return row.Encode(*a.(*A)) }

func (f *folder[P, T, A]) State() int { return f.agg.State }

func (f *folder[P, T, A]) Weighted() bool { return f.agg.Weighted }

func (f *folder[P, T, A]) Fold(acc any, b *pack.Batch, from, to int, state []float64) (any, int, error) {
	if f.agg.AddBatch == nil || f.meta.Layout == pack.BlobLayout {
		return f.foldRows(acc, b, from, to)
	}
	a := acc.(*A)
	f.view = Batch{Features: f.meta.Features, Labels: b.Labels, Weights: b.Weights, X64: b.X64, X32: b.X32,
		Offsets: b.Offsets, Indices: b.Indices, scratch: f.view.scratch, weights: f.view.weights, all: b}
	for p := from; p < to; p += rowsPerBatch {
		n := min(to-p, rowsPerBatch)
		b.Visit(f.rows[:n], p)
		f.view.Rows = f.rows[:n]
		if k := f.agg.State; k > 0 {
			f.view.State = state[(p-from)*k : (p-from+n)*k]
		}
		*a = f.agg.AddBatch(*a, f.param, &f.view)
	}
	return acc, to - from, nil
}

func (f *folder[P, T, A]) foldRows(acc any, b *pack.Batch, from, to int) (any, int, error) {
	if f.agg.Add == nil {
		return nil, 0, fault.Newf(fault.UserCode, "fold", row.TypeName[T](),
			"its rows have no columns: the Aggregator needs Add")
	}
	a := acc.(*A)
	if f.row.Put == nil {
		f.row = rowCodecFor[T]()
	}
	for p := from; p < to; p++ {
		row, err := rowAt(f.meta, b, int(b.RowAt(p)), f.row)
		if err != nil {
			return nil, 0, err
		}
		*a = f.agg.Add(*a, f.param, row)
	}
	return acc, to - from, nil
}

// rowAt brings one row of a pack back to its type.
func rowAt[T any](meta *pack.Meta, b *pack.Batch, at int, c row.Codec[T]) (r T, err error) {
	if meta.Layout == pack.BlobLayout {
		rest, err := c.Parse(b.Blob[b.Offsets[at]:b.Offsets[at+1]], &r, &row.Arena{})
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%d bytes are left after it", len(rest))
		}
		if err != nil {
			return r, fault.New(fault.Corrupt, "decode", row.TypeName[T](), err)
		}
		return r, nil
	}
	p := Point{Label: b.Labels[at]}
	if b.Weights != nil {
		p.Weight = b.Weights[at]
	}
	from, to := at*meta.Features, (at+1)*meta.Features
	if b.Offsets != nil {
		from, to = int(b.Offsets[at]), int(b.Offsets[at+1])
		p.Indices = b.Indices[from:to]
	}
	if b.X32 == nil {
		p.Values = b.X64[from:to]
	} else {
		p.Values = make([]float64, to-from)
		for k, v := range b.X32[from:to] {
			p.Values[k] = float64(v)
		}
	}
	return any(p).(T), nil
}
