package parquet

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/rows"
)

// Single reports whether features are single columns, which can be prepared one by one.
func (p *Plan) Single() bool { return p.List == "" && !p.Sparse }

// ReadPrepared yields the rows of one part, whose features a Taker makes of the fields of the plan's features, by
// their places among these. The Taker that begin returns takes the rows of a chunk.
func (p *Plan) ReadPrepared(ctx context.Context, kind Kind, rng files.Range, begin func(c *rows.Chunk) rows.Taker,
	yield func(*rows.Chunk) error) error {
	at := *p
	at.first = int(rng.Row)
	names := slices.Concat(p.Features, p.beside())
	err := ReadRecords(ctx, kind, rng, names, func(rec arrow.Record) error {
		c := &rows.Chunk{Where: func() string { return rng.File.Path }}
		if err := at.prepare(rng.File.Path, c, rec, begin(c)); err != nil {
			return err
		}
		if at.first += int(rec.NumRows()); c.Rows() == 0 {
			return nil
		}
		return yield(c)
	})
	return cmp.Or(err, rng.File.Unchanged())
}

// prepare gives a Taker the fields of a record, row by row.
func (p *Plan) prepare(path string, c *rows.Chunk, rec arrow.Record, taker rows.Taker) error {
	label, err1 := p.labelOf(c, rec)
	weight, err2 := p.weightOf(c, rec, taker)
	fields, err3 := p.fields(rec)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return fault.New(fault.BadInput, "read", path, err)
	}
	for i := range int(rec.NumRows()) {
		label(i)
		if err := weight(i); err != nil {
			return fault.New(fault.BadInput, "read", path, err)
		}
		for k := range fields {
			if f := fields[k](i); !taker.Field(k, f.text, f.v, f.number) {
				return noNumber(path, p.Features[k], f, p.row(i))
			}
		}
		taker.End(c)
	}
	return nil
}

// fields returns how the features of a record are read.
func (p *Plan) fields(rec arrow.Record) ([]func(int) field, error) {
	out := make([]func(int) field, len(p.Features))
	for k, name := range p.Features {
		col, err := columnNamed(rec, name)
		if err == nil {
			out[k], err = fieldsOf(col, name)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// noNumber returns the error of a field that has to be a number.
func noNumber(path, name string, f field, row int) error {
	if f.text == nil {
		return fault.Newf(fault.BadInput, "read", path, "column %q is null in row %d", name, row).
			WithHint("--missing zero or mean fills it in, --missing drop leaves the row out")
	}
	return fault.Newf(fault.BadInput, "read", path, "column %q is %q in row %d, not a number", name, f.text, row).
		WithHint("columns of text are for --onehot, --hash or --text")
}

// labelOf returns what appends the label of a row to a chunk.
func (p *Plan) labelOf(c *rows.Chunk, rec arrow.Record) (func(i int), error) {
	all := &rows.Chunk{}
	if err := p.labels(all, rec); err != nil {
		return nil, err
	}
	return func(i int) {
		if all.Texts != nil {
			c.AddText([]byte(all.Texts[int(all.Labels[i])]))
		} else {
			c.Labels = append(c.Labels, all.Labels[i])
		}
	}, nil
}

// weightOf returns what appends the weight of a row to a chunk.
func (p *Plan) weightOf(c *rows.Chunk, rec arrow.Record, taker rows.Taker) (func(i int) error, error) {
	if p.Weight == "" {
		return func(int) error { return nil }, nil
	}
	col, err := columnNamed(rec, p.Weight)
	if err != nil {
		return nil, err
	}
	of, err := fieldsOf(col, p.Weight)
	if err != nil {
		return nil, err
	}
	return func(i int) error {
		f := of(i)
		if (f.text == nil || math.IsNaN(f.v)) && taker.Weightless() {
			c.Weights = append(c.Weights, 0)
			return nil
		}
		if !f.number || f.v < 0 {
			return fmt.Errorf("the weight in column %q is %q in row %d, not a number of zero or more", p.Weight, f.text,
				p.row(i))
		}
		c.Weights = append(c.Weights, f.v)
		return nil
	}, nil
}

// field is a value of a column: as text, and as a number where it is one. A null has no text.
type field struct {
	text   []byte
	v      float64
	number bool
}

// fieldsOf returns how the values of a column are read.
func fieldsOf(col arrow.Array, name string) (func(i int) field, error) {
	var of func(i int) field
	switch c := col.(type) {
	case *array.Dictionary:
		values, err := fieldsOf(c.Dictionary(), name)
		if err != nil {
			return nil, err
		}
		of = func(i int) field { return values(c.GetValueIndex(i)) }
	case *array.String:
		of = func(i int) field { return field{text: []byte(c.Value(i))} }
	case *array.LargeString:
		of = func(i int) field { return field{text: []byte(c.Value(i))} }
	case array.ListLike, *array.Struct:
		return nil, fmt.Errorf("column %q is %v, which makes no features", name, col.DataType())
	default:
		of = fieldsOfNumbers(col)
	}
	return func(i int) field {
		if col.IsNull(i) {
			return field{}
		}
		return of(i)
	}, nil
}

// fieldsOfNumbers returns how the values of a column without text are read: what is no number is as it is written.
func fieldsOfNumbers(col arrow.Array) func(i int) field {
	at, ok := reader(col)
	if !ok {
		return func(i int) field { return field{text: []byte(col.ValueStr(i))} }
	}
	whole := arrow.IsInteger(col.DataType().ID())
	return func(i int) field {
		v := at(i)
		f := field{v: v, number: !math.IsNaN(v) && !math.IsInf(v, 0) && holds(col, i, v)}
		if whole || col.DataType().ID() == arrow.BOOL || arrow.IsDecimal(col.DataType().ID()) {
			f.text = []byte(col.ValueStr(i))
		} else {
			f.text = strconv.AppendFloat(nil, v, 'f', -1, 64)
		}
		return f
	}
}

// isText reports whether the values of a type are texts, in a dictionary or not.
func isText(t arrow.DataType) bool {
	if d, ok := t.(*arrow.DictionaryType); ok {
		return isText(d.ValueType)
	}
	return t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING
}
