package rdd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/files"
)

// typedSource returns a dataset read from files, a part of which is read at a time.
func typedSource[T any](g *Graph, kind string, in Input, uris []string,
	each func(s *input.Source, ctx context.Context, part int, yield func([]T) error) error) Dataset[T] {
	d := &sourceDecl{URIs: uris, Options: in}
	g.sources.add(d)
	id := g.add(node{kind: kind, typ: row.TypeName[T](), detail: fmt.Sprintf("%v %v", uris, in.Typed), bytes: d.bytes})
	d.node = id
	g.node(id).pruned = func(keep func(T) bool) Dataset[T] {
		c := columnsFor[T](g, "filter partitions")
		next, before := in, in.Keep
		next.Keep = func(f files.File) (bool, error) {
			if before != nil {
				if ok, err := before(f); !ok || err != nil {
					return false, err
				}
			}
			r, err := c.KeysOnly(f)
			return err == nil && keep(r), err
		}
		return typedSource(g, kind, next, uris, each)
	}
	return Dataset[T]{g: g, id: id, parts: func() int { return d.source.Len() },
		produce: func(ctx context.Context, part int, yield func([]T) error) error {
			read := readBy(ctx)
			return each(d.source, ctx, part, func(rows []T) error {
				read(len(rows))
				return yield(rows)
			})
		}}
}

// FilterPartitions keeps of a dataset that is read from directories named after columns, such as country=DE, the files
// whose directories a function accepts: it is given a row that has these columns alone. The other files are not
// opened. It comes directly after Parquet, Arrow, CSV or JSONLines.
func FilterPartitions[T any](ds Dataset[T], keep func(T) bool) Dataset[T] {
	pruned, ok := ds.g.node(ds.id).pruned.(func(func(T) bool) Dataset[T])
	if !ok {
		ds.g.fail("filter partitions: it comes directly after a dataset is read from files; use Filter here")
		return ds
	}
	return pruned(keep)
}

// setting returns a function that sets columns of rows before it hands them on.
func setting[T any](set func([]T), yield func([]T) error) func([]T) error {
	if set == nil {
		return yield
	}
	return func(rows []T) error {
		set(rows)
		return yield(rows)
	}
}

// columnsFor derives the columns of T for a source or a sink; a type that has
// none is a mistake in the plan.
func columnsFor[T any](g *Graph, op string) *row.Columns[T] {
	c, err := row.ColumnsOf[T]()
	if err != nil {
		g.fail("%s: %v", op, err)
		return &row.Columns[T]{}
	}
	return c
}

// Parquet returns a dataset of the rows of Parquet files: each field of T is read from
// the column of its name, or of its tag col; other columns are not read at all.
// Whole numbers may be wider in T than in the file, or, where all values fit,
// narrower.
func Parquet[T any](g *Graph, uris ...string) Dataset[T] {
	c := columnsFor[T](g, "parquet")
	return typedSource(g, "parquet", Input{Format: input.Parquet, Typed: c.Names()}, uris,
		func(s *input.Source, ctx context.Context, part int, yield func([]T) error) error {
			in, set, err := c.Keyed(s.Parts[part].File)
			if err != nil {
				return err
			}
			if s.Flat && in.IsFlat() {
				return in.ReadFlat(ctx, s, part, setting(set, yield))
			}
			return in.ReadArrow(ctx, s, part, setting(set, yield))
		})
}

// Arrow does what Parquet does, with Arrow IPC files, in the file or the stream format.
func Arrow[T any](g *Graph, uris ...string) Dataset[T] {
	c := columnsFor[T](g, "arrow")
	return typedSource(g, "arrow", Input{Format: input.Arrow, Typed: c.Names()}, uris,
		func(s *input.Source, ctx context.Context, part int, yield func([]T) error) error {
			in, set, err := c.Keyed(s.Parts[part].File)
			if err != nil {
				return err
			}
			return in.ReadArrow(ctx, s, part, setting(set, yield))
		})
}

// WholeTextFiles returns a dataset of files: a pair of path and text for each, in a partition of its own. A file must
// fit into memory. gzip, bzip2 and zstd are unwrapped; Coalesce makes fewer partitions of many small files.
func WholeTextFiles(g *Graph, uris ...string) Dataset[Pair[string, string]] {
	return wholeFiles(g, "whole-text-files", uris, func(raw []byte) string { return string(raw) })
}

// BinaryFiles does what WholeTextFiles does, with the bytes of each file.
func BinaryFiles(g *Graph, uris ...string) Dataset[Pair[string, []byte]] {
	return wholeFiles(g, "binary-files", uris, func(raw []byte) []byte { return raw })
}

func wholeFiles[C any](g *Graph, kind string, uris []string, of func(raw []byte) C) Dataset[Pair[string, C]] {
	ds := typedSource(g, kind, Input{Format: input.Whole}, uris,
		func(s *input.Source, ctx context.Context, part int, yield func([]Pair[string, C]) error) error {
			path, raw, err := s.Content(part)
			if err != nil {
				return err
			}
			return yield([]Pair[string, C]{{Key: path, Value: of(raw)}})
		})
	g.node(ds.id).pruned = nil // its rows have no columns
	return ds
}

// JSONLines returns a dataset of files of one JSON value a line, read by encoding/json
// into T; an sql.Null is its value or null. Empty lines are left out.
func JSONLines[T any](g *Graph, uris ...string) Dataset[T] {
	j, err := row.JSONOf[T]()
	if err != nil {
		g.fail("json-lines: %v", err)
	}
	return typedSource(g, "json-lines", Input{Format: input.Text}, uris,
		func(s *input.Source, ctx context.Context, part int, yield func([]T) error) error {
			var set func([]T)
			if c, err := row.ColumnsOf[T](); err == nil { // what has no columns takes none from directories
				if _, set, err = c.Split(s.Parts[part].File); err != nil {
					return err
				}
			}
			b := row.NewBatcher(setting(set, yield))
			err := s.EachLine(ctx, part, func(where func() input.Where, line []byte) error {
				if len(bytes.TrimSpace(line)) == 0 {
					return nil
				}
				var row T
				if err := j.Unmarshal(line, &row); err != nil {
					return fault.New(fault.BadInput, "read", where().String(), jsonError(err))
				}
				return b.Add(row)
			})
			return cmp.Or(err, b.Flush())
		})
}

// jsonError returns what is wrong, and in which field.
func jsonError(err error) error {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) && t.Field != "" {
		return fmt.Errorf("field %s: a %s is no %v", t.Field, t.Value, t.Type)
	}
	return err
}
