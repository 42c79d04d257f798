package rdd

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage"
)

// Entry is an entry of a sparse matrix whose rows and columns are named by
// numbers.
type Entry struct {
	Row, Col int64
	Value    float64
}

// PackEntries lays entries out for steps, one row of the matrix a row of the
// pack: its Label is the row's number, its Indices the places of its columns
// among all columns in order, from 0. Entries of one place stay side by side. The
// executor that makes the pack holds all entries in memory meanwhile, 36 bytes
// each, and no more than 2³¹ of them.
func PackEntries(ds Dataset[Entry], options ...PackOption) Packed[Point] {
	options = append(options, func(o *storage.PackOptions) { o.Sparse = true })
	return packRows[Entry, Point](ds, "entries", func() storage.Rows { return matrixRows{ds} }, options)
}

// Transposed are the entries of the transposed matrix.
func Transposed(ds Dataset[Entry]) Dataset[Entry] {
	return Map(ds, func(e Entry) Entry { return Entry{e.Col, e.Row, e.Value} })
}

// matrixRows reads the entries of all partitions and hands them out by row.
type matrixRows struct{ ds Dataset[Entry] }

func (m matrixRows) Len() int { return 1 }

func (m matrixRows) Read(ctx context.Context, _ int, yield func(*storage.Chunk) error) error {
	all, err := m.collect(ctx)
	if err != nil {
		return err
	}
	rows, cols := ranksOf(all, func(e *Entry) int64 { return e.Row }), ranksOf(all, func(e *Entry) int64 { return e.Col })
	byCol := cols.sorted(all, nil)
	order := rows.sorted(all, byCol)
	c := &storage.Chunk{ZeroBased: true}
	var indices []int32
	var values []float64
	starts := rowStarts(all, order)
	for k, from := range starts {
		indices, values = indices[:0], values[:0]
		row := all[order[from]].Row
		for to := int(from); to < len(order) && all[order[to]].Row == row; to++ {
			e := &all[order[to]]
			indices, values = append(indices, int32(cols.of(e.Col))), append(values, e.Value)
		}
		c.AppendSparse(float64(row), indices, values)
		if len(c.Labels) == chunkRows || k == len(starts)-1 {
			full := c
			c = &storage.Chunk{ZeroBased: true}
			if err := yield(full); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowStarts are the places where rows begin among entries in their order, mixed.
func rowStarts(all []Entry, order []int32) []int32 {
	var starts []int32
	for i := range order {
		if i == 0 || all[order[i]].Row != all[order[i-1]].Row {
			starts = append(starts, int32(i))
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(starts), func(i, j int) { starts[i], starts[j] = starts[j], starts[i] })
	return starts
}

// ranks are the places of numbers among all that there are, in order.
type ranks struct {
	key   func(*Entry) int64
	all   []int64 // in order
	first int64
	table []int32 // of the rank of first+i; nil where the numbers lie too far apart
}

// sparseTable is how many places a table of ranks has for each entry, at the most.
const sparseTable = 4

func ranksOf(entries []Entry, key func(*Entry) int64) *ranks {
	r := &ranks{key: key}
	if len(entries) == 0 {
		return r
	}
	low, high := key(&entries[0]), key(&entries[0])
	for i := range entries {
		low, high = min(low, key(&entries[i])), max(high, key(&entries[i]))
	}
	r.first = low
	if spread := uint64(high) - uint64(low); spread < uint64(sparseTable*len(entries)+1024) {
		r.table = make([]int32, spread+1)
		for i := range entries {
			r.table[key(&entries[i])-low] = 1
		}
		for i, there := range r.table {
			if there == 1 {
				r.table[i] = int32(len(r.all))
				r.all = append(r.all, low+int64(i))
			}
		}
		return r
	}
	r.all = make([]int64, len(entries))
	for i := range entries {
		r.all[i] = key(&entries[i])
	}
	slices.Sort(r.all)
	r.all = slices.Compact(r.all)
	return r
}

func (r *ranks) of(n int64) int {
	if r.table != nil {
		return int(r.table[n-r.first])
	}
	at, _ := slices.BinarySearch(r.all, n)
	return at
}

// sorted is the order of entries by rank, those of one rank in the order given (nil:
// as they are).
func (r *ranks) sorted(entries []Entry, order []int32) []int32 {
	at, rank := make([]int32, len(r.all)+1), make([]int32, len(entries))
	for i := range entries {
		rank[i] = int32(r.of(r.key(&entries[i])))
		at[rank[i]+1]++
	}
	for i := range r.all {
		at[i+1] += at[i]
	}
	out := make([]int32, len(entries))
	for k := range entries {
		i := int32(k)
		if order != nil {
			i = order[k]
		}
		out[at[rank[i]]] = i
		at[rank[i]]++
	}
	return out
}

// collect reads the partitions side by side, and keeps their order.
func (m matrixRows) collect(ctx context.Context) ([]Entry, error) {
	parts := make([][][]Entry, m.ds.parts())
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i := range parts {
		g.Go(func() error {
			return m.ds.each(ctx, i, func(rows []Entry) error {
				parts[i] = append(parts[i], slices.Clone(rows))
				return nil
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := slices.Concat(slices.Concat(parts...)...)
	if len(all) > math.MaxInt32 {
		return nil, fault.Newf(fault.NoResources, "pack", "the entries of a matrix", "%d are more than an executor packs", len(all))
	}
	return all, nil
}

// packRows declares a pack of rows that are made of a dataset's.
func packRows[T, R any](ds Dataset[T], kind string, rows func() storage.Rows, options []PackOption) Packed[R] {
	var o storage.PackOptions
	for _, set := range options {
		set(&o)
	}
	id := ds.g.add(node{kind: "pack", typ: typeName[T](), detail: fmt.Sprintf("%s %+v", kind, o), inputs: []int{ds.id},
		pack: &packDecl{rows: rows, options: o, input: ds.id}})
	ds.g.nodes[id].task = makePack(id)
	return Packed[R]{g: ds.g, id: id}
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
					failed = fault.Newf(fault.Usage, "read", strings.Join(decl.URIs, " "), "columns %d, %d and %d are not three", at[0], at[1], at[2])
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
				return e, fault.Newf(fault.Usage, "read", strings.Join(decl.URIs, " "), "its rows have %d columns in a table, column %d is wanted", len(p.Values), j)
			}
			if v := p.Values[j]; i < 2 && (v != math.Trunc(v) || math.Abs(v) >= 1<<53) {
				return e, fault.Newf(fault.BadInput, "read", strings.Join(decl.URIs, " "), "column %q is %v, not a whole number", columns[i][0], v)
			}
		}
		return Entry{int64(p.Values[at[0]]), int64(p.Values[at[1]]), p.Values[at[2]]}, nil
	})
}
