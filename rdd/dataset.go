package rdd

import (
	"context"
	"errors"
	"fmt"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage"
)

// Dataset is a partitioned, ordered collection of rows of type T, computed
// when an action or a pack needs it. It keeps the order of its input.
type Dataset[T any] struct {
	g      *Graph
	id     int
	parts  func() int
	each   func(ctx context.Context, part int, yield func(T) error) error
	source *sourceDecl // of a reader whose chunks can be packed as they are
}

// errEnough ends an iteration early, without being a failure.
var errEnough = errors.New("enough rows")

// TextFile is a dataset of the lines of text files. Paths, globs, directories
// and file:// URIs are taken; gzip, bzip2 and zstd are unwrapped.
func TextFile(g *Graph, uris ...string) Dataset[string] {
	d := &sourceDecl{URIs: uris, Options: storage.ReadOptions{Format: storage.Text}}
	g.sources = append(g.sources, d)
	id := g.add(node{kind: "text", typ: "string", detail: fmt.Sprint(uris)})
	return Dataset[string]{g: g, id: id, parts: func() int { return d.source.Len() },
		each: func(ctx context.Context, part int, yield func(string) error) error {
			return d.source.Lines(ctx, part, func(line []byte) error { return yield(string(line)) })
		}}
}

// Point is a labelled row of numbers: dense where Indices is nil, else sparse
// with ascending zero-based Indices.
type Point struct {
	Label   float64
	Indices []int32
	Values  []float64
}

// Points is a dataset of labelled rows in any format that can be read
// (LIBSVM, CSV, TSV, Parquet, Arrow). Column numbers of sparse text are kept
// as the file has them until the rows are packed.
func Points(g *Graph, in Input, uris ...string) Dataset[Point] {
	d := &sourceDecl{URIs: uris, Options: in}
	g.sources = append(g.sources, d)
	id := g.add(node{kind: "points", typ: "Point", detail: fmt.Sprintf("%v %+v", uris, in)})
	return Dataset[Point]{g: g, id: id, source: d, parts: func() int { return d.source.Len() },
		each: func(ctx context.Context, part int, yield func(Point) error) error {
			return d.source.Read(ctx, part, func(c *storage.Chunk) error { return eachPoint(c, yield) })
		}}
}

// LIBSVM is Points of files in the LIBSVM format.
func LIBSVM(g *Graph, uris ...string) Dataset[Point] {
	return Points(g, Input{Format: storage.LIBSVM}, uris...)
}

func eachPoint(c *storage.Chunk, yield func(Point) error) error {
	for r := range c.Rows() {
		p := Point{Label: c.Labels[r]}
		if c.Dense() {
			p.Values = c.Values[r*c.Width : (r+1)*c.Width]
		} else {
			from, to := c.Offsets[r], c.Offsets[r+1]
			p.Indices, p.Values = c.Indices[from:to], c.Values[from:to]
		}
		if err := yield(p); err != nil {
			return err
		}
	}
	return nil
}

// derive makes a dataset whose partitions are computed from another's.
func derive[T, U any](ds Dataset[T], kind string, each func(ctx context.Context, part int, yield func(U) error) error) Dataset[U] {
	id := ds.g.add(node{kind: kind, typ: typeName[U](), user: true, inputs: []int{ds.id}})
	return Dataset[U]{g: ds.g, id: id, parts: ds.parts, each: each}
}

// Map applies f to every row. Nothing moves; order is kept.
func Map[T, U any](ds Dataset[T], f func(T) U) Dataset[U] {
	return derive(ds, "map", func(ctx context.Context, part int, yield func(U) error) error {
		return ds.each(ctx, part, func(row T) error { return yield(f(row)) })
	})
}

// MapErr is Map with a function that may fail: the first error fails the
// action, naming partition and row.
func MapErr[T, U any](ds Dataset[T], f func(T) (U, error)) Dataset[U] {
	return derive(ds, "map-err", func(ctx context.Context, part int, yield func(U) error) error {
		n := 0
		return ds.each(ctx, part, func(row T) error {
			u, err := f(row)
			if err != nil {
				return fault.New(fault.UserCode, "map", fmt.Sprintf("row %d of partition %d", n, part), err)
			}
			n++
			return yield(u)
		})
	})
}

// Filter keeps the rows that f accepts.
func Filter[T any](ds Dataset[T], f func(T) bool) Dataset[T] {
	return derive(ds, "filter", func(ctx context.Context, part int, yield func(T) error) error {
		return ds.each(ctx, part, func(row T) error {
			if !f(row) {
				return nil
			}
			return yield(row)
		})
	})
}

// FlatMap replaces every row by the rows that f makes of it.
func FlatMap[T, U any](ds Dataset[T], f func(T) []U) Dataset[U] {
	return derive(ds, "flat-map", func(ctx context.Context, part int, yield func(U) error) error {
		return ds.each(ctx, part, func(row T) error {
			for _, u := range f(row) {
				if err := yield(u); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
