package rdd

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
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
// executor that makes them holds all entries in memory meanwhile, 24 bytes each, as much
// again while they are sorted, and no more than 2³¹ of them.
func PackEntries(ds Dataset[Entry], options ...PackOption) (rows, columns Packed[Point]) {
	options = append(options, func(o *pack.Options) { o.Sparse = true })
	make := func() []pack.Rows {
		m := &matrix{ds: ds}
		return []pack.Rows{matrixRows{m.byRow}, matrixRows{m.byColumn}}
	}
	ids := declarePacks(ds, []string{"rows of entries", "columns of entries"}, make, options)
	return Packed[Point]{g: ds.g, id: ids[0]}, Packed[Point]{g: ds.g, id: ids[1]}
}

// matrix holds entries by rows and by columns, once either is asked for. The side with
// more numbers comes first: it is made from the other, before that is in order.
type matrix struct {
	ds            Dataset[Entry]
	reading       sync.Once
	failed        error
	columnsFirst  bool
	first, second *compressed
	turning       sync.Once
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
	m.turning.Do(func() { m.second = m.first.transposed() })
	return m.second, nil
}

func (m *matrix) read(ctx context.Context) error {
	parts, err := collectEntries(ctx, m.ds)
	if err != nil {
		return err
	}
	var rows, columns []int64
	var both sync.WaitGroup
	both.Go(func() { rows = rank(parts, func(e *Entry) *int64 { return &e.Row }) })
	both.Go(func() { columns = rank(parts, func(e *Entry) *int64 { return &e.Col }) })
	both.Wait()
	if m.columnsFirst = len(columns) > len(rows); m.columnsFirst {
		m.first = compressedBy(parts, rows, columns, func(e *Entry) (row, column int64) { return e.Row, e.Col })
	} else {
		m.first = compressedBy(parts, columns, rows, func(e *Entry) (row, column int64) { return e.Col, e.Row })
	}
	runtime.GC() // what follows takes the place of the entries
	m.first = m.first.transposed()
	return nil
}

// collectEntries reads the partitions side by side, and keeps their order.
func collectEntries(ctx context.Context, ds Dataset[Entry]) ([][]Entry, error) {
	parts := make([][][]Entry, ds.parts())
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i := range parts {
		g.Go(pack.Guarded(func() error {
			return ds.each(ctx, i, func(rows []Entry) error {
				parts[i] = append(parts[i], slices.Clone(rows))
				return nil
			})
		}))
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all, n := slices.Concat(parts...), 0
	for _, entries := range all {
		n += len(entries)
	}
	if n > math.MaxInt32 {
		return nil, fault.Newf(fault.NoResources, "pack", "the entries of a matrix",
			"%d are more than an executor packs", n)
	}
	return all, nil
}

// compressed are entries by row: those of the i-th row lie from starts[i] up to, but
// without, starts[i+1].
type compressed struct {
	rows, columns []int64 // the numbers of those that there are, in order
	starts        []int
	at            []int32 // columns, by their places
	values        []float64
}

// compressedBy sorts entries, whose numbers are ranks, by row, those of one row in the
// order they came in.
func compressedBy(parts [][]Entry, rows, columns []int64, of func(*Entry) (row, column int64)) *compressed {
	c := &compressed{rows: rows, columns: columns}
	next := c.begin(func(from, to int, count []int) {
		for _, entries := range parts {
			for i := range entries {
				if row, _ := of(&entries[i]); int(row) >= from && int(row) < to {
					count[row]++
				}
			}
		}
	})
	inRanges(len(rows), func(from, to int) {
		for _, entries := range parts {
			for i := range entries {
				row, column := of(&entries[i])
				if int(row) < from || int(row) >= to {
					continue
				}
				c.at[next[row]], c.values[next[row]] = int32(column), entries[i].Value
				next[row]++
			}
		}
	})
	return c
}

// begin makes room for entries, which are counted by ranges of rows, and says where
// each row begins.
func (c *compressed) begin(count func(from, to int, of []int)) (next []int) {
	c.starts = make([]int, len(c.rows)+1)
	inRanges(len(c.rows), func(from, to int) { count(from, to, c.starts[1:]) })
	for i := range c.rows {
		c.starts[i+1] += c.starts[i]
	}
	n := c.starts[len(c.rows)]
	c.at, c.values = make([]int32, n), make([]float64, n)
	return slices.Clone(c.starts)
}

// inRanges shares n rows out to as many goroutines as there are processors: each goes
// over all entries and takes those of its rows.
func inRanges(n int, do func(from, to int)) {
	var all sync.WaitGroup
	k := runtime.GOMAXPROCS(0)
	for i := range k {
		all.Go(func() { do(i*n/k, (i+1)*n/k) })
	}
	all.Wait()
}

// transposed returns the same entries by column; those of one column are in the order of
// the rows.
func (c *compressed) transposed() *compressed {
	t := &compressed{rows: c.columns, columns: c.rows}
	next := t.begin(func(from, to int, count []int) {
		for _, column := range c.at {
			if int(column) >= from && int(column) < to {
				count[column]++
			}
		}
	})
	inRanges(len(t.rows), func(from, to int) {
		for row := range c.rows {
			for k := c.starts[row]; k < c.starts[row+1]; k++ {
				column := int(c.at[k])
				if column < from || column >= to {
					continue
				}
				t.at[next[column]], t.values[next[column]] = int32(row), c.values[k]
				next[column]++
			}
		}
	})
	return t
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
	order := rand.New(rand.NewPCG(1, 1)).Perm(len(all.rows))
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
		Offsets: append(make([]int64, 0, len(which)+1), 0),
		Indices: make([]int32, 0, n), Values: make([]float64, 0, n)}
	for _, row := range which {
		from, to := c.starts[row], c.starts[row+1]
		out.AppendSparse(float64(c.rows[row]), c.at[from:to], c.values[from:to])
	}
	return out
}

// sparseTable is how many places a table of ranks has for each entry, at the most.
const sparseTable = 4

// rank puts the places of numbers among all that there are, in order, in the numbers'
// stead, and returns these.
func rank(parts [][]Entry, number func(*Entry) *int64) (all []int64) {
	low, high, n := int64(math.MaxInt64), int64(math.MinInt64), 0
	for _, entries := range parts {
		for i := range entries {
			v := *number(&entries[i])
			low, high = min(low, v), max(high, v)
		}
		n += len(entries)
	}
	if spread := uint64(high) - uint64(low); n > 0 && spread < uint64(sparseTable*n+1024) {
		return rankByTable(parts, number, low, spread+1)
	}
	return rankBySearch(parts, number, n)
}

// rankByTable looks places up in a table of all numbers that there could be.
func rankByTable(parts [][]Entry, number func(*Entry) *int64, first int64, places uint64) (all []int64) {
	table := make([]int32, places)
	for _, entries := range parts {
		for i := range entries {
			table[*number(&entries[i])-first] = 1
		}
	}
	for i, there := range table {
		if there == 1 {
			table[i] = int32(len(all))
			all = append(all, first+int64(i))
		}
	}
	for _, entries := range parts {
		for i := range entries {
			v := number(&entries[i])
			*v = int64(table[*v-first])
		}
	}
	return all
}

// rankBySearch looks places up among the numbers in order.
func rankBySearch(parts [][]Entry, number func(*Entry) *int64, n int) []int64 {
	all := make([]int64, 0, n)
	for _, entries := range parts {
		for i := range entries {
			all = append(all, *number(&entries[i]))
		}
	}
	slices.Sort(all)
	all = slices.Clone(slices.Compact(all))
	for _, entries := range parts {
		for i := range entries {
			v := number(&entries[i])
			at, _ := slices.BinarySearch(all, *v)
			*v = int64(at)
		}
	}
	return all
}

// declarePacks declares packs that are made together of a dataset's rows.
func declarePacks[T any](ds Dataset[T], kinds []string, rows func() []pack.Rows, options []PackOption) []int {
	var o pack.Options
	for _, set := range options {
		set(&o)
	}
	d := &packDecl{rows: rows, options: o, input: ds.id}
	ds.g.mayPack(ds.id)
	for _, kind := range kinds {
		id := ds.g.add(node{kind: "pack", typ: row.TypeName[T](), detail: fmt.Sprintf("%s %+v", kind, o),
			inputs: []int{ds.id}, pack: d})
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
