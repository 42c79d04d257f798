package rdd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

// Dataset is a partitioned, ordered collection of rows of type T, computed
// when an action or a pack needs it. It keeps the order of its input.
type Dataset[T any] struct {
	g       *Graph
	id      int
	parts   func() int
	produce func(ctx context.Context, part int, yield func(rows []T) error) error // call ds.each, not this
	// of a reader whose chunks can be packed as they are
	source *sourceDecl
	// of pairs: partitions over which the hashes of their keys are spread; 0 where they are not, or may be joined
	spread int
}

// errEnough ends an iteration early, without being a failure.
var errEnough = errors.New("enough rows")

// TextFile returns a dataset of the lines of text files. Paths, globs, directories
// and file:// URIs are taken; gzip, bzip2 and zstd are unwrapped.
func TextFile(g *Graph, uris ...string) Dataset[string] {
	d := &sourceDecl{URIs: uris, Options: input.Options{Format: input.Text}}
	g.sources.add(d)
	id := g.add(node{kind: "text", typ: "string", detail: fmt.Sprint(uris), bytes: d.bytes})
	d.node = id
	return Dataset[string]{g: g, id: id, parts: func() int { return d.source.Len() },
		produce: func(ctx context.Context, part int, yield func([]string) error) error {
			var text row.Arena
			b := row.NewBatcher(yield)
			b.Count = readBy(ctx)
			if err := d.source.Lines(ctx, part, func(line []byte) error { return b.Add(text.Text(line)) }); err != nil {
				return err
			}
			return b.Flush()
		}}
}

// FlatMapLines replaces every line of text files by the rows that f makes of it and appends to a slice. The bytes of a
// line, which is without its end, are valid during the call only: it is FlatMapAppend of TextFile for lines that are
// parsed and not kept. The first error fails the action, naming partition and row.
func FlatMapLines[T any](g *Graph, f func(out []T, line []byte) ([]T, error), uris ...string) Dataset[T] {
	d := &sourceDecl{URIs: uris, Options: input.Options{Format: input.Text}}
	g.sources.add(d)
	d.node = g.add(node{kind: "flat-map-lines", typ: row.TypeName[T](), detail: fmt.Sprint(uris), bytes: d.bytes,
		user: true, at: callSite()})
	return Dataset[T]{g: g, id: d.node, parts: func() int { return d.source.Len() },
		produce: func(ctx context.Context, part int, yield func([]T) error) error {
			count, alive := readBy(ctx), livenessOf(ctx)
			most, lines := row.BatchSize[T](), 0
			out := make([]T, 0, most)
			err := d.source.Lines(ctx, part, func(line []byte) (err error) {
				if out, err = f(out, line); err != nil {
					return fault.New(fault.UserCode, "map", rowName(ctx, lines, part), err)
				}
				if lines++; lines%livenessRows == 0 {
					alive.moved(1)
					count(livenessRows)
				}
				if len(out) < most {
					return nil
				}
				err = yield(out)
				out = out[:0]
				return err
			})
			count(lines % livenessRows)
			if err != nil || len(out) == 0 {
				return err
			}
			return yield(out)
		}}
}

// Point is a labelled row of numbers: dense where Indices is nil, else sparse
// with ascending zero-based Indices. Weight is the row's where the dataset has weights:
// where any of its points has one that is not zero.
type Point struct {
	Label   float64
	Indices []int32
	Values  []float64
	Weight  float64
	Class   string // the label where labels are text, and Label is zero
}

// optionsText returns options as the plan's fingerprint has them: the same on every
// machine.
func optionsText(in Input) string {
	raw, err := json.Marshal(in)
	if err != nil {
		panic(err) // it is plain data
	}
	return string(raw)
}

// Points returns a dataset of labelled rows in any format that can be read
// (LIBSVM, CSV, TSV, Parquet, Arrow). Column numbers of sparse text are kept
// as the file has them until the rows are packed.
func Points(g *Graph, in Input, uris ...string) Dataset[Point] {
	d := declarePoints(g, node{kind: "points", typ: "Point"}, in, uris)
	g.node(d.node).points = d
	return Dataset[Point]{g: g, id: d.node, source: d, parts: func() int { return d.source.Len() },
		produce: func(ctx context.Context, part int, yield func([]Point) error) error {
			b := row.NewBatcher(yield)
			b.Count = readBy(ctx)
			err := d.source.Read(ctx, part, func(c *rows.Chunk) error { return eachPoint(c, b.Add) })
			if err != nil {
				return err
			}
			return b.Flush()
		}}
}

// declarePoints declares an input of points, and the node that reads it.
func declarePoints(g *Graph, n node, in Input, uris []string) *sourceDecl {
	d := &sourceDecl{URIs: uris, Options: in}
	g.sources.add(d)
	n.detail, n.bytes = fmt.Sprintf("%v %s", uris, optionsText(in)), d.bytes
	d.node = g.add(n)
	return d
}

// Chunks returns a dataset of what a function makes of the data that Points reads, some rows at a time, as their reader
// has them. open is called where a partition begins to be read, of several at the same time, and what it returns with
// the partition's chunks in order. A chunk's memory is the reader's: what is yielded must not refer to it.
func Chunks[T any](g *Graph, in Input, uris []string,
	open func(s *input.Source) (func(c *rows.Chunk, yield func(T) error) error, error)) Dataset[T] {
	d := declarePoints(g, node{kind: "chunks", typ: row.TypeName[T](), user: true, at: callSite()}, in, uris)
	return Dataset[T]{g: g, id: d.node, parts: func() int { return d.source.Len() },
		produce: func(ctx context.Context, part int, yield func([]T) error) error {
			of, err := open(d.source)
			if err != nil {
				return err
			}
			b := row.NewBatcher(yield)
			b.Count = readBy(ctx)
			if err := d.source.Read(ctx, part, func(c *rows.Chunk) error { return of(c, b.Add) }); err != nil {
				return err
			}
			return b.Flush()
		}}
}

// LIBSVM returns Points of files in the LIBSVM format.
func LIBSVM(g *Graph, uris ...string) Dataset[Point] {
	return Points(g, Input{Format: input.LIBSVM}, uris...)
}

// eachPoint yields the rows of a chunk. Numbers of labels that are text are the chunk's own.
func eachPoint(c *rows.Chunk, yield func(Point) error) error {
	for r := range c.Rows() {
		p := Point{Label: c.Labels[r]}
		if c.Texts != nil {
			p.Label, p.Class = 0, c.Texts[int(c.Labels[r])]
		}
		if c.Weights != nil {
			p.Weight = c.Weights[r]
		}
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
func derive[T, U any](ds Dataset[T], kind string,
	each func(ctx context.Context, part int, yield func(rows []U) error) error) Dataset[U] {
	id := ds.g.add(node{kind: kind, typ: row.TypeName[U](), user: true, inputs: []int{ds.id}})
	return Dataset[U]{g: ds.g, id: id, parts: ds.parts, produce: each}
}

// Map applies f to every row. Nothing moves; order is kept.
func Map[T, U any](ds Dataset[T], f func(T) U) Dataset[U] {
	return byRow(derive(ds, "map", func(ctx context.Context, part int, yield func([]U) error) error {
		var out []U
		p := livenessOf(ctx)
		return ds.pull(ctx, part, func(rows []T) error {
			out = slices.Grow(out[:0], len(rows))[:len(rows)]
			for from := 0; from < len(rows); from += livenessRows {
				to := min(len(rows), from+livenessRows)
				for i := from; i < to; i++ {
					out[i] = f(rows[i])
				}
				p.moved(to - from)
			}
			return yield(out)
		})
	}))
}

// MapErr maps with a function that may fail: the first error fails the
// action, naming partition and row.
func MapErr[T, U any](ds Dataset[T], f func(T) (U, error)) Dataset[U] {
	return byRow(derive(ds, "map-err", func(ctx context.Context, part int, yield func([]U) error) error {
		n := 0
		b := row.NewBatcher(yield)
		err := ds.rows(ctx, part, func(row T) error {
			u, err := f(row)
			if err != nil {
				return fault.New(fault.UserCode, "map", rowName(ctx, n, part), err)
			}
			n++
			return b.Add(u)
		})
		if err != nil && !errors.Is(err, errSplit) {
			return err
		}
		return cmp.Or(b.Flush(), err)
	}))
}

// rowName names a row of a partition; in a piece of one its number is not known.
func rowName(ctx context.Context, row, part int) string {
	if env, err := envOf(ctx); err == nil && env.args.Piece != nil {
		return fmt.Sprintf("a row of partition %d", part)
	}
	return fmt.Sprintf("row %d of partition %d", row, part)
}

// Filter keeps the rows that f accepts. Nothing moves; order is kept.
func Filter[T any](ds Dataset[T], f func(T) bool) Dataset[T] {
	return preservesPartitioning(ds.spread, byRow(derive(ds, "filter",
		func(ctx context.Context, part int, yield func([]T) error) error {
			var out []T
			p := livenessOf(ctx)
			return ds.pull(ctx, part, func(rows []T) error {
				out = slices.Grow(out[:0], len(rows))[:len(rows)]
				n := 0
				for from := 0; from < len(rows); from += livenessRows {
					to := min(len(rows), from+livenessRows)
					for i := from; i < to; i++ {
						out[n] = rows[i] // stored before the test: no branch to mispredict
						if f(rows[i]) {
							n++
						}
					}
					p.moved(to - from)
				}
				if n == 0 {
					return nil
				}
				return yield(out[:n])
			})
		})))
}

// FlatMap replaces every row by the rows that f makes of it. Nothing moves;
// order is kept.
func FlatMap[T, U any](ds Dataset[T], f func(T) []U) Dataset[U] {
	return FlatMapAppend(ds, func(out []U, row T) []U { return append(out, f(row)...) })
}

// FlatMapAppend does what FlatMap does, with a function that appends the rows it makes to a
// slice, which takes no memory for each row.
func FlatMapAppend[T, U any](ds Dataset[T], f func(out []U, row T) []U) Dataset[U] {
	return byRow(derive(ds, "flat-map", func(ctx context.Context, part int, yield func([]U) error) error {
		most := row.BatchSize[U]()
		out := make([]U, 0, most)
		p := livenessOf(ctx)
		err := ds.pull(ctx, part, func(rows []T) error {
			for i := range rows {
				if out = f(out, rows[i]); len(out) >= most {
					if err := yield(out); err != nil {
						return err
					}
					out = out[:0]
				}
				if i%livenessRows == 0 {
					p.moved(1)
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errSplit) || len(out) == 0 {
			return err
		}
		return cmp.Or(yield(out), err)
	}))
}

// rows calls yield with the rows of a partition, one after the other.
func (ds Dataset[T]) rows(ctx context.Context, part int, yield func(T) error) error {
	p := livenessOf(ctx)
	return ds.pull(ctx, part, func(rows []T) error {
		for i := range rows {
			if err := yield(rows[i]); err != nil {
				return err
			}
			if i%livenessRows == 0 {
				p.moved(1)
			}
		}
		return nil
	})
}

// readBy returns what tells the task how many rows it has read; while a pack is made it does nothing.
func readBy(ctx context.Context) func(rows int) {
	env, err := envOf(ctx)
	if err != nil {
		return func(int) {}
	}
	return env.packs.Advance
}
