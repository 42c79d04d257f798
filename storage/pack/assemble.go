package pack

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/raw"
	"github.com/volley-engine/volley/storage/input/rows"
)

// SplitFile returns the name of split i's file within a pack.
func SplitFile(i int) string { return "split-" + pad5(i) + ".arrow" }

func pad5(i int) string {
	s := strconv.Itoa(i)
	for len(s) < 5 {
		s = "0" + s
	}
	return s
}

// rowRun is a run of rows of one chunk.
type rowRun struct {
	chunk    *spooled
	from, to int
}

// assemble writes all splits of a pack into dir and fills in meta.
func assemble(ctx context.Context, l *loaded, m *Meta, o Options, dir string) error {
	runs, err := l.assign(ctx, len(m.Splits), o)
	if err != nil {
		return err
	}
	names := l.labels.names()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, o.Workers))
	for i := range m.Splits {
		g.Go(Guarded(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			a := assembler{l: l, m: m, names: names, rng: rand.New(rand.NewPCG(o.Seed, uint64(i)))}
			if err := a.gather(runs[i]); err != nil {
				return err
			}
			sm, err := writeSplit(filepath.Join(dir, SplitFile(i)), m, a.allowed)
			m.Splits[i] = sm
			return err
		}))
	}
	return g.Wait()
}

// assign gives each split its rows, in input order.
func (l *loaded) assign(ctx context.Context, splits int, o Options) ([][]rowRun, error) {
	if o.Random {
		return l.scatter(ctx, splits, o.Seed)
	}
	runs := make([][]rowRun, splits)
	var at int64
	for _, h := range l.chunks {
		for from := 0; from < h.rows; {
			split := splitOfRow(at, l.rows, splits)
			end := (int64(split) + 1) * l.rows / int64(splits)
			to := int(min(int64(h.rows), int64(from)+end-at))
			runs[split] = append(runs[split], rowRun{h, from, to})
			h.left.Add(1)
			at, from = at+int64(to-from), to
		}
	}
	return runs, nil
}

// splitOfRow returns the split i with i·rows/splits <= row < (i+1)·rows/splits.
func splitOfRow(row, rows int64, splits int) int {
	i := int(row * int64(splits) / rows)
	for (int64(i)+1)*rows/int64(splits) <= row {
		i++
	}
	return i
}

// scatter sends every row to the split that its seeded hash names.
func (l *loaded) scatter(ctx context.Context, splits int, seed uint64) ([][]rowRun, error) {
	runs := make([][]rowRun, splits)
	open := make([]*rows.Chunk, splits)
	flush := func(i int) error {
		if open[i] == nil {
			return nil
		}
		h, err := l.spool.add(open[i])
		h.left.Store(1)
		runs[i] = append(runs[i], rowRun{h, 0, h.rows})
		open[i] = nil
		return err
	}
	ordinal := uint64(0)
	for _, h := range l.chunks {
		c, err := l.spool.load(h)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		labels := recode(c, l.labels.names())
		for r := range c.Rows() {
			i := int(rows.Mix(seed, ordinal) % uint64(splits))
			ordinal++
			if open[i] == nil {
				open[i] = &rows.Chunk{}
			}
			copyRow(open[i], c, labels, r)
			if open[i].Bytes() > 256<<10 {
				if err := flush(i); err != nil {
					return nil, err
				}
			}
		}
		h.left.Store(1)
		l.spool.done(h) // its rows have been copied
	}
	for i := range open {
		if err := flush(i); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// copyRow appends row r of another chunk, with its label recoded.
func copyRow(c, from *rows.Chunk, labels []float64, r int) {
	switch {
	case from.Blobs != nil:
		c.Blobs = append(c.Blobs, from.Blobs[r])
	case from.Dense():
		c.AppendDense(labels[r], from.Values[r*from.Width:(r+1)*from.Width])
	default:
		c.AppendSparseOf(labels[r], from, r)
	}
	if r < len(from.Weights) {
		c.AppendWeight(from.Weights[r])
	}
}

// assembler holds one split's rows while they are shuffled and written.
type assembler struct {
	l     *loaded
	m     *Meta
	names []string
	rng   *rand.Rand
	rows  rows.Chunk
	order []int32
}

// gather collects the split's rows in input order and draws the seeded order in
// which they are written.
func (a *assembler) gather(runs []rowRun) error {
	total := 0
	for _, run := range runs {
		total += run.to - run.from
	}
	for k, run := range runs {
		c, err := a.l.spool.load(run.chunk)
		if err != nil {
			return err
		}
		if k == 0 {
			reserve(&a.rows, c, total, a.l.nnz)
		}
		labels := recode(c, a.names)
		for r := run.from; r < run.to; r++ {
			copyRow(&a.rows, c, labels, r)
		}
		a.l.spool.done(run.chunk)
	}
	n := a.rows.Rows()
	a.order = make([]int32, n)
	for i := range a.order {
		a.order[i] = int32(i)
	}
	a.rng.Shuffle(n, func(i, j int) { a.order[i], a.order[j] = a.order[j], a.order[i] })
	return nil
}

// reserve makes room for rows like those of another chunk, of n values at the most.
func reserve(c, like *rows.Chunk, rows int, most int64) {
	if like.Blobs == nil {
		c.Labels = make([]float64, 0, rows)
		numbers := max(len(like.Values), len(like.Indices)) * rows / max(1, like.Rows())
		if !like.Dense() { // rows differ
			numbers = int(min(int64(numbers+numbers/16), most))
			c.Indices, c.Offsets = make([]int32, 0, numbers), append(make([]int64, 0, rows+1), 0)
		}
		if like.Same == nil {
			c.Values = make([]float64, 0, numbers)
		}
	}
}

// allowed returns batches, as far as the allowance permits.
func (a *assembler) allowed(yield func(*columns) error) error {
	return a.batches(func(c *columns) error {
		if err := a.l.spool.disk.take(c.bytes()); err != nil {
			return err
		}
		return yield(c)
	})
}

// batches yields the shuffled rows, a record batch at a time.
func (a *assembler) batches(yield func(*columns) error) error {
	for from := 0; from < len(a.order); from += batchRows {
		order := a.order[from:min(from+batchRows, len(a.order))]
		c, err := a.batch(order)
		if err != nil {
			return err
		}
		if err := yield(c); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembler) batch(order []int32) (*columns, error) {
	c := &columns{rows: len(order)}
	if a.m.Layout == BlobLayout {
		return c, a.blobBatch(c, order)
	}
	c.labels = make([]float64, len(order))
	for i, r := range order {
		c.labels[i] = a.rows.Labels[r]
	}
	if a.m.Weighted {
		c.weights = make([]float64, len(order))
		for i, r := range order {
			if int(r) < len(a.rows.Weights) {
				c.weights[i] = a.rows.Weights[r]
			}
		}
	}
	switch {
	case a.m.Layout == SparseLayout:
		return c, a.sparseBatch(c, order)
	case a.m.Float32:
		a.denseBatch(len(order)*a.m.Features, order, float32Sink(c))
	case a.rows.Dense():
		d, out := a.m.Features, make([]float64, len(order)*a.m.Features)
		for i, r := range order {
			copy(out[i*d:(i+1)*d], a.rows.Values[int(r)*d:])
		}
		c.values = raw.Bytes(out)
	default:
		a.denseBatch(len(order)*a.m.Features, order, float64Sink(c))
	}
	return c, nil
}

// float64Sink and float32Sink give the function that stores feature k.
func float64Sink(c *columns) func(n int) func(int, float64) {
	return func(n int) func(int, float64) {
		out := make([]float64, n)
		c.values = raw.Bytes(out)
		return func(k int, v float64) { out[k] = v }
	}
}

func float32Sink(c *columns) func(n int) func(int, float64) {
	return func(n int) func(int, float64) {
		out := make([]float32, n)
		c.values = raw.Bytes(out)
		return func(k int, v float64) { out[k] = float32(v) }
	}
}

func (a *assembler) denseBatch(n int, order []int32, sink func(int) func(int, float64)) {
	put, d := sink(n), a.m.Features
	for i, r := range order {
		if a.rows.Dense() {
			for j, v := range a.rows.Values[int(r)*d : int(r)*d+d] {
				put(i*d+j, v)
			}
			continue
		}
		for k := a.rows.Offsets[r]; k < a.rows.Offsets[r+1]; k++ {
			put(i*d+int(a.rows.Indices[k])-a.m.IndexBase, a.rows.Value(k))
		}
	}
}

func (a *assembler) sparseBatch(c *columns, order []int32) error {
	nnz := 0
	for _, r := range order {
		nnz += int(a.rows.Offsets[r+1] - a.rows.Offsets[r])
	}
	if nnz > 1<<31-1 {
		return fault.Newf(fault.NoResources, "pack", "a split", "%d nonzeros do not fit one record batch", nnz).
			WithHint("raise --splits")
	}
	c.indices, c.offsets = make([]int32, 0, nnz), make([]int32, 1, len(order)+1)
	for _, r := range order {
		for _, index := range a.rows.Indices[a.rows.Offsets[r]:a.rows.Offsets[r+1]] {
			c.indices = append(c.indices, index-int32(a.m.IndexBase))
		}
		c.offsets = append(c.offsets, int32(len(c.indices)))
	}
	c.values = a.sparseValues(order, nnz)
	return nil
}

// sparseValues returns the values of sparse rows, one row's after the other's.
func (a *assembler) sparseValues(order []int32, nnz int) []byte {
	if same := a.rows.Same; same != nil && a.m.Float32 {
		return raw.Bytes(slices.Repeat([]float32{float32(*same)}, nnz))
	} else if same != nil {
		return raw.Bytes(slices.Repeat([]float64{*same}, nnz))
	}
	if !a.m.Float32 {
		all := make([]float64, 0, nnz)
		for _, r := range order {
			all = append(all, a.rows.Values[a.rows.Offsets[r]:a.rows.Offsets[r+1]]...)
		}
		return raw.Bytes(all)
	}
	all := make([]float32, 0, nnz)
	for _, r := range order {
		for _, v := range a.rows.Values[a.rows.Offsets[r]:a.rows.Offsets[r+1]] {
			all = append(all, float32(v))
		}
	}
	return raw.Bytes(all)
}

func (a *assembler) blobBatch(c *columns, order []int32) error {
	c.offsets = make([]int32, 1, len(order)+1)
	for _, r := range order {
		c.blob = append(c.blob, a.rows.Blobs[r]...)
		if len(c.blob) > 1<<31-1 {
			return fault.Newf(fault.NoResources, "pack", "a split", "its rows do not fit one record batch").
				WithHint("raise --splits")
		}
		c.offsets = append(c.offsets, int32(len(c.blob)))
	}
	return nil
}
