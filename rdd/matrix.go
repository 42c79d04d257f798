package rdd

import (
	"context"
	"fmt"
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
// executor that makes the pack holds all entries in memory meanwhile, 24 bytes
// each.
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
	columns := make([]int64, len(all))
	for i := range all {
		columns[i] = all[i].Col
	}
	slices.Sort(columns)
	columns = slices.Compact(columns)
	slices.SortStableFunc(all, func(a, b Entry) int {
		switch {
		case a.Row != b.Row && a.Row < b.Row, a.Row == b.Row && a.Col < b.Col:
			return -1
		case a.Row != b.Row || a.Col != b.Col:
			return 1
		}
		return 0
	})
	c := &storage.Chunk{ZeroBased: true}
	var indices []int32
	var values []float64
	for from := 0; from < len(all); {
		indices, values = indices[:0], values[:0]
		at, to := 0, from
		for ; to < len(all) && all[to].Row == all[from].Row; to++ {
			for columns[at] != all[to].Col { // both are in order
				at++
				if at == len(columns) || columns[at] > all[to].Col || all[to].Col-columns[at] > 64 {
					at, _ = slices.BinarySearch(columns, all[to].Col)
				}
			}
			indices, values = append(indices, int32(at)), append(values, all[to].Value)
		}
		c.AppendSparse(float64(all[from].Row), indices, values)
		if from = to; len(c.Labels) == chunkRows || from == len(all) {
			full := c
			c = &storage.Chunk{ZeroBased: true}
			if err := yield(full); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect reads the partitions side by side, and keeps their order.
func (m matrixRows) collect(ctx context.Context) ([]Entry, error) {
	parts := make([][]Entry, m.ds.parts())
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i := range parts {
		g.Go(func() error {
			return m.ds.each(ctx, i, func(rows []Entry) error {
				parts[i] = append(parts[i], rows...)
				return nil
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(parts...), nil
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

// Select keeps some columns of dense rows that were read, in the order given: each
// by the first of some names that the data has, or that is a number from 0. Order is
// kept, nothing moves.
func Select(ds Dataset[Point], columns ...[]string) Dataset[Point] {
	decl := ds.source
	if decl == nil {
		ds.g.fail("Select: its rows must come from Points")
	}
	var once sync.Once
	var at []int
	var failed error
	return MapErr(ds, func(p Point) (Point, error) {
		once.Do(func() { at, failed = placesOf(decl.source, columns) })
		if failed != nil {
			return p, failed
		}
		return pick(p, at, decl.URIs)
	})
}

// placesOf are the places of columns among a source's.
func placesOf(s *storage.Source, columns [][]string) (at []int, err error) {
	at = make([]int, len(columns))
	for i, c := range columns {
		if at[i], err = s.Column(c...); err != nil {
			return nil, err
		}
	}
	return at, nil
}

func pick(p Point, at []int, uris []string) (Point, error) {
	out := Point{Label: p.Label, Values: make([]float64, len(at))}
	for i, j := range at {
		if p.Indices != nil || j >= len(p.Values) {
			return p, fault.Newf(fault.Usage, "read", strings.Join(uris, " "), "its rows have %d columns in a table, column %d is wanted", len(p.Values), j)
		}
		out.Values[i] = p.Values[j]
	}
	return out, nil
}
