package rdd

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/pack"
)

// Entry is an entry of a sparse matrix whose rows and columns are named by
// numbers.
type Entry struct {
	Row, Col int64
	Value    float64
}

// PackEntries lays the entries of a matrix out for steps, twice: one row of the
// matrix a row of the first pack, one column a row of the second. Its Label is the
// row's number, its Indices are the places of its columns among all columns in order,
// from 0; for columns the other way round. Entries of one place stay side by side, in
// their order. Rows come mixed, always alike, so that splits have about as many
// entries where neighbours have many. Both packs are made from one reading: the
// executor that makes them holds all entries in memory meanwhile, 40 bytes each, 32 where
// all values are the same, some more where their numbers lie far apart, and no more than 2³¹ of them.
func PackEntries(ds Dataset[Entry], options ...PackOption) (rows, columns Packed[Point]) {
	options = append(options, func(o *pack.Options) { o.Sparse = true })
	make := func() []pack.Rows {
		m := &matrix{ds: ds}
		return []pack.Rows{matrixRows{m.byRow}, matrixRows{m.byColumn}}
	}
	o := optionsOf(options)
	return declarePair(ds, [2]packKind{{"rows of entries", o}, {"columns of entries", o}}, make)
}

// PackRows lays the entries of a matrix out by row alone, as PackEntries does, in less time and memory. What the second
// pack has of each column is its number, as Label, and two values: how many entries it has, and in how many rows these
// are.
func PackRows(ds Dataset[Entry], options ...PackOption) (rows, columns Packed[Point]) {
	options = append(options, func(o *pack.Options) { o.Sparse = true })
	make := func() []pack.Rows {
		m := &matrix{ds: ds, rowsOnly: true}
		return []pack.Rows{matrixRows{m.byRow}, columnCounts{m.byRow}}
	}
	all, counts := optionsOf(options), optionsOf(options)
	counts.Sparse, counts.Float32 = false, false // which has no room for large counts
	return declarePair(ds, [2]packKind{{"rows of entries alone", all}, {"counts of their columns", counts}}, make)
}

// declarePair declares two packs that are made together.
func declarePair(ds Dataset[Entry], kinds [2]packKind, make func() []pack.Rows) (rows, columns Packed[Point]) {
	ids := declarePacks(ds, kinds[:], make)
	return Packed[Point]{g: ds.g, id: ids[0]}, Packed[Point]{g: ds.g, id: ids[1]}
}

// matrix holds entries by rows and by columns, once either is asked for. The side with
// more numbers comes first: it is made from the other, before that is in order.
type matrix struct {
	ds            Dataset[Entry]
	rowsOnly      bool // nothing asks for columns
	reading       sync.Once
	failed        error
	columnsFirst  bool
	first, second *compressed
	turning       sync.Once
	room          *buckets // for sorting
}

func (m *matrix) byRow(ctx context.Context) (*compressed, error) { return m.by(ctx, false) }

func (m *matrix) byColumn(ctx context.Context) (*compressed, error) { return m.by(ctx, true) }

// by returns one side. Entries are sorted twice or three times: rows of columns that come in
// order are in order.
func (m *matrix) by(ctx context.Context, columns bool) (*compressed, error) {
	m.reading.Do(func() { m.failed = m.read(ctx) })
	if m.failed != nil || columns == m.columnsFirst {
		return m.first, m.failed
	}
	m.turning.Do(func() {
		m.second = m.first.transposed(m.room)
		m.room = nil
	})
	return m.second, nil
}

func (m *matrix) read(ctx context.Context) error {
	e, err := collectEntries(ctx, m.ds)
	if err != nil {
		return err
	}
	var rows, columns *ranking
	var both sync.WaitGroup
	both.Go(func() { rows = rank(e.parts, e.n, e.rows, func(e *Entry) *int64 { return &e.Row }) })
	both.Go(func() { columns = rank(e.parts, e.n, e.columns, func(e *Entry) *int64 { return &e.Col }) })
	both.Wait()
	m.columnsFirst = !m.rowsOnly && len(columns.all) > len(rows.all)
	m.first, m.room = e.placed(rows, columns, m.columnsFirst)
	if m.first = m.first.transposed(m.room); m.rowsOnly {
		m.room = nil
	}
	return nil
}

// span is what some numbers lie between.
type span struct{ low, high int64 }

// nothing is a span of no numbers.
var nothing = span{math.MaxInt64, math.MinInt64}

func (s span) with(t span) span { return span{min(s.low, t.low), max(s.high, t.high)} }

// entries are those of a matrix, as they were read.
type entries struct {
	parts         [][]Entry
	n             int
	rows, columns span
	one           bool // all values are value
	value         float64
}

// entriesOf returns what is known of some entries.
func entriesOf(some []Entry) entries {
	e := entries{parts: [][]Entry{some}, n: len(some), rows: nothing, columns: nothing, one: true}
	for i := range some {
		x := &some[i]
		e.rows, e.columns = e.rows.with(span{x.Row, x.Row}), e.columns.with(span{x.Col, x.Col})
		e.one = e.one && math.Float64bits(x.Value) == math.Float64bits(some[0].Value)
		e.value = x.Value
	}
	return e
}

// add adds the entries that come next.
func (e *entries) add(next entries) {
	switch {
	case e.n == 0:
		*e = next
		return
	case next.n == 0:
		return
	}
	e.parts, e.n = append(e.parts, next.parts...), e.n+next.n
	e.rows, e.columns = e.rows.with(next.rows), e.columns.with(next.columns)
	e.one = e.one && next.one && math.Float64bits(e.value) == math.Float64bits(next.value)
}

// collectEntries reads the partitions side by side, and keeps their order.
func collectEntries(ctx context.Context, ds Dataset[Entry]) (all entries, err error) {
	parts := make([]entries, ds.parts())
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i := range parts {
		g.Go(pack.Guarded(func() error {
			return ds.each(ctx, i, func(rows []Entry) error {
				parts[i].add(entriesOf(slices.Clone(rows)))
				return nil
			})
		}))
	}
	if err := g.Wait(); err != nil {
		return all, err
	}
	for _, p := range parts {
		all.add(p)
	}
	if all.n > math.MaxInt32 {
		return all, fault.Newf(fault.NoResources, "pack", "the entries of a matrix",
			"%d are more than an executor packs", all.n)
	}
	return all, nil
}

// placed returns entries by column, or by row where columns come first: the other side than
// the first, which is then made of it. The entries are given up, and
// the memory that they were sorted in is returned, too.
func (e *entries) placed(rows, columns *ranking, columnsFirst bool) (*compressed, *buckets) {
	by, other := columns, rows
	numbers := func(e *Entry) (by, other int64) { return e.Col, e.Row }
	if columnsFirst {
		by, other = rows, columns
		numbers = func(e *Entry) (by, other int64) { return e.Row, e.Col }
	}
	blocks := func(part int, yield func([]Entry)) {
		for _, some := range e.parts[part*len(e.parts)/sortedParts : (part+1)*len(e.parts)/sortedParts] {
			for block := range slices.Chunk(some, cellBlock) {
				yield(block)
			}
		}
	}
	dealt := deal(len(by.all), nil, stream{one: e.one, value: e.value,
		rows: func(part int, yield func([]int32)) {
			var places [cellBlock]int32
			blocks(part, func(block []Entry) {
				for i := range block {
					first, _ := numbers(&block[i])
					places[i] = by.place(first)
				}
				yield(places[:len(block)])
			})
		},
		cells: func(part int, yield func([]cell, []float64)) {
			var some [cellBlock]cell
			var values []float64
			if !e.one {
				values = make([]float64, cellBlock)
			}
			blocks(part, func(block []Entry) {
				for i := range block {
					first, second := numbers(&block[i])
					some[i] = cell{by.place(first), other.place(second)}
				}
				for i := range min(len(values), len(block)) {
					values[i] = block[i].Value
				}
				yield(some[:len(block)], values)
			})
		}})
	e.parts = nil
	rows.forget()
	columns.forget()
	runtime.GC() // sorted cells take the place of the entries
	return dealt.compress(by.all, other.all), dealt
}

// matrixRows hands rows out, mixed.
type matrixRows struct {
	of func(context.Context) (*compressed, error)
}

// matrixParts is how many parts rows are packed in side by side.
const matrixParts = 8

func (m matrixRows) Len() int { return matrixParts }

func (m matrixRows) Read(ctx context.Context, part int, yield func(*rows.Chunk) error) error {
	all, err := m.of(ctx)
	if err != nil {
		return err
	}
	order := all.order()
	order = order[part*len(order)/matrixParts : (part+1)*len(order)/matrixParts]
	for some := range slices.Chunk(order, chunkRows) {
		if err := yield(all.chunk(some)); err != nil {
			return err
		}
	}
	return nil
}

// chunk has some rows.
func (c *compressed) chunk(which []int) *rows.Chunk {
	n := 0
	for _, row := range which {
		n += c.starts[row+1] - c.starts[row]
	}
	out := &rows.Chunk{ZeroBased: true, Labels: make([]float64, 0, len(which)),
		Offsets: append(make([]int64, 0, len(which)+1), 0), Indices: make([]int32, 0, n)}
	if c.values == nil {
		out.Same = &c.value
	} else {
		out.Values = make([]float64, 0, n)
	}
	for _, row := range which {
		from, to := c.starts[row], c.starts[row+1]
		var values []float64
		if c.values != nil {
			values = c.values[from:to]
		}
		out.AppendSparse(float64(c.rows[row]), c.at[from:to], values)
	}
	return out
}

// columnCounts hands out of each column its number, how many entries it has, and in how many rows these are.
type columnCounts struct {
	rows func(context.Context) (*compressed, error)
}

func (columnCounts) Len() int { return 1 }

func (m columnCounts) Read(ctx context.Context, _ int, yield func(*rows.Chunk) error) error {
	all, err := m.rows(ctx)
	if err != nil {
		return err
	}
	counts := all.countColumns()
	for from := 0; from < len(all.columns); from += chunkRows {
		to := min(from+chunkRows, len(all.columns))
		out := &rows.Chunk{Width: 2, Values: counts[2*from : 2*to : 2*to]}
		for _, number := range all.columns[from:to] {
			out.Labels = append(out.Labels, float64(number))
		}
		if err := yield(out); err != nil {
			return err
		}
	}
	return nil
}

// countColumns returns two numbers of each column: how many entries it has, and in how many rows.
func (c *compressed) countColumns() []float64 {
	counts := make([]float64, 2*len(c.columns))
	for row := range c.rows {
		before := int32(-1)
		for _, column := range c.at[c.starts[row]:c.starts[row+1]] {
			if counts[2*int(column)]++; column != before {
				counts[2*int(column)+1]++
			}
			before = column
		}
	}
	return counts
}

// packKind is what a pack is of, and how it is laid out.
type packKind struct {
	name    string
	options pack.Options
}

func optionsOf(options []PackOption) (o pack.Options) {
	for _, set := range options {
		set(&o)
	}
	return o
}

// declarePacks declares packs that are made together of a dataset's rows.
func declarePacks[T any](ds Dataset[T], kinds []packKind, rows func() []pack.Rows) []int {
	d := &packDecl{rows: rows, input: ds.id}
	ds.g.mayPack(ds.id)
	for _, kind := range kinds {
		d.options = append(d.options, kind.options)
		id := ds.g.add(node{kind: "pack", typ: row.TypeName[T](),
			detail: fmt.Sprintf("%s %+v", kind.name, kind.options), inputs: []int{ds.id}, pack: d})
		ds.g.node(id).task = makePack(id)
		ds.g.node(id).reads = func(int, int) []int { return allParts(ds.parts()) }
		d.nodes = append(d.nodes, id)
	}
	return d.nodes
}

// PreparationOf returns the preparation that turns the rows of files into points, once the plan's inputs are resolved;
// nil where they need none.
func PreparationOf(ds Dataset[Point]) *input.Prepared {
	if ds.source == nil || ds.source.source == nil {
		return nil
	}
	return ds.source.source.Preparation()
}

// Entries makes entries of a table that was read: of its columns for row, column
// and value, each the first of some names that the table has, or that is a number
// from 0. Rows and columns are whole numbers. Order is kept, nothing moves.
func Entries(ds Dataset[Point], columns [3][]string) Dataset[Entry] {
	decl := ds.source
	if decl == nil {
		ds.g.fail("Entries: its rows must come from Points")
	}
	var once sync.Once
	var at [3]int
	var failed error
	return MapErr(ds, func(p Point) (e Entry, err error) {
		once.Do(func() {
			defer func() {
				if failed == nil && (at[0] == at[1] || at[0] == at[2] || at[1] == at[2]) {
					failed = fault.Newf(fault.Usage, "read", strings.Join(decl.URIs, " "),
						"columns %d, %d and %d are not three", at[0], at[1], at[2])
				}
			}()
			for i, names := range columns {
				if at[i], err = decl.source.Column(names...); err != nil && failed == nil {
					failed = err
				}
			}
		})
		if failed != nil {
			return e, failed
		}
		for i, j := range at {
			if p.Indices != nil || j >= len(p.Values) {
				return e, fault.Newf(fault.Usage, "read", strings.Join(decl.URIs, " "),
					"its rows have %d columns in a table, column %d is wanted", len(p.Values), j)
			}
			if v := p.Values[j]; i < 2 && (v != math.Trunc(v) || math.Abs(v) >= 1<<53) {
				return e, fault.Newf(fault.BadInput, "read", strings.Join(decl.URIs, " "),
					"column %q is %v, not a whole number", columns[i][0], v)
			}
		}
		return Entry{int64(p.Values[at[0]]), int64(p.Values[at[1]]), p.Values[at[2]]}, nil
	})
}
