package model

import (
	"bytes"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/storage/input"
)

// Columns are a model's numbers as the columns of weights.arrow: one table, whose rows are what the model has a
// number, or a vector of them, for.
type Columns struct {
	fields []arrow.Field
	arrays []arrow.Array
	rows   int
}

func (c *Columns) add(name string, b array.Builder) *Columns {
	a := b.NewArray()
	b.Release()
	c.fields = append(c.fields, arrow.Field{Name: name, Type: a.DataType()})
	c.arrays, c.rows = append(c.arrays, a), a.Len()
	return c
}

// Texts adds a column of texts.
func (c *Columns) Texts(name string, v []string) *Columns {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendValues(v, nil)
	return c.add(name, b)
}

// Ints adds a column of whole numbers.
func (c *Columns) Ints(name string, v []int64) *Columns {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.AppendValues(v, nil)
	return c.add(name, b)
}

// Floats adds a column of numbers.
func (c *Columns) Floats(name string, v []float64) *Columns {
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	b.AppendValues(v, nil)
	return c.add(name, b)
}

// Vectors adds a column of vectors of one width, which follow one another in v.
func (c *Columns) Vectors(name string, v []float64, width int) *Columns {
	b := array.NewFixedSizeListBuilder(memory.DefaultAllocator, int32(width), arrow.PrimitiveTypes.Float64)
	to := b.ValueBuilder().(*array.Float64Builder)
	for i := 0; i+width <= len(v); i += width {
		b.Append(true)
		to.AppendValues(v[i:i+width], nil)
	}
	return c.add(name, b)
}

// Lists adds a column of lists of numbers.
func (c *Columns) Lists(name string, v [][]float64) *Columns {
	b := array.NewListBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Float64)
	to := b.ValueBuilder().(*array.Float64Builder)
	for _, row := range v {
		b.Append(true)
		to.AppendValues(row, nil)
	}
	return c.add(name, b)
}

// IntLists adds a column of lists of whole numbers.
func (c *Columns) IntLists(name string, v [][]int64) *Columns {
	b := array.NewListBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64)
	to := b.ValueBuilder().(*array.Int64Builder)
	for _, row := range v {
		b.Append(true)
		to.AppendValues(row, nil)
	}
	return c.add(name, b)
}

// encode returns the columns as a file in the Arrow format.
func (c *Columns) encode() ([]byte, error) {
	schema := arrow.NewSchema(c.fields, nil)
	rec := array.NewRecord(schema, c.arrays, int64(c.rows))
	defer rec.Release()
	var f memFile
	out, err := ipc.NewFileWriter(&f, ipc.WithSchema(schema))
	if err == nil {
		err = out.Write(rec)
	}
	if err == nil {
		err = out.Close()
	}
	return f.Bytes(), err
}

// FeatureNames returns the names of a model's features: those of the columns that they were made from, or of the data,
// or else their numbers as sparse text has them.
func FeatureNames(n int, p *input.Prepared, names []string, base int) []string {
	out := make([]string, n)
	for j := range out {
		switch {
		case p != nil:
			out[j] = p.Name(j)
		case j < len(names):
			out[j] = names[j]
		default:
			out[j] = strconv.Itoa(j + base)
		}
	}
	return out
}

// Stored are the columns of a saved model. The first mistake found in them is kept.
type Stored struct {
	rec  arrow.Record
	rows int
	err  error
}

// load reads the columns from a file's bytes.
func (s *Stored) load(raw []byte, rows int) (err error) {
	r, err := ipc.NewFileReader(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	defer r.Close()
	if r.NumRecords() != 1 {
		return wrong("it has %d pieces, one is wanted", r.NumRecords())
	}
	if s.rec, err = r.Record(0); err != nil {
		return err
	}
	s.rec.Retain()
	if s.rows = int(s.rec.NumRows()); s.rows != rows {
		return wrong("it has %d rows, the model has %d", s.rows, rows)
	}
	return nil
}

func wrong(format string, args ...any) error {
	return fault.Newf(fault.Corrupt, "read", "weights.arrow", format, args...)
}

// LoadColumns reads the columns of a model's numbers, which have a number of rows, with parse.
func LoadColumns(raw []byte, rows int, parse func(s *Stored)) (err error) {
	if rows < 0 || rows > 1<<40 {
		return fault.Newf(fault.Corrupt, "read", "model.json", "a model cannot have numbers of %d things", rows)
	}
	defer func() {
		if r := recover(); r != nil {
			err = wrong("%v", r)
		}
	}()
	var s Stored
	if err := s.load(raw, rows); err != nil {
		return err
	}
	defer s.rec.Release()
	parse(&s)
	return s.err
}

// column returns a column by its name.
func (s *Stored) column(name string) arrow.Array {
	at := s.rec.Schema().FieldIndices(name)
	if len(at) != 1 {
		s.fail("it has %d columns %q", len(at), name)
		return nil
	}
	return s.rec.Column(at[0])
}

func (s *Stored) fail(format string, args ...any) {
	if s.err == nil {
		s.err = wrong(format, args...)
	}
}

// columnAs returns a column of a type; nil where there is none.
func columnAs[A arrow.Array](s *Stored, name string) (a A, ok bool) {
	c := s.column(name)
	if c == nil {
		return a, false
	}
	if a, ok = c.(A); !ok {
		s.fail("its column %q is %v", name, c.DataType())
	} else if c.NullN() > 0 {
		s.fail("its column %q has nulls", name)
	}
	return a, ok
}

// Texts returns a column of texts.
func (s *Stored) Texts(name string) (out []string) {
	if a, ok := columnAs[*array.String](s, name); ok {
		for i := range a.Len() {
			out = append(out, a.Value(i))
		}
	}
	return out
}

// Ints returns a column of whole numbers.
func (s *Stored) Ints(name string) []int64 {
	if a, ok := columnAs[*array.Int64](s, name); ok {
		return append([]int64(nil), a.Int64Values()...)
	}
	return nil
}

// Floats returns a column of numbers.
func (s *Stored) Floats(name string) []float64 {
	if a, ok := columnAs[*array.Float64](s, name); ok {
		return s.finite(name, a.Float64Values())
	}
	return nil
}

// finite returns a copy of numbers that must be finite.
func (s *Stored) finite(name string, v []float64) []float64 {
	for i, x := range v {
		if !num.Finite(x) {
			s.fail("number %d of its column %q is %v", i, name, x)
		}
	}
	return append([]float64(nil), v...)
}

// Vectors returns a column of vectors of one width, one after the other.
func (s *Stored) Vectors(name string, width int) []float64 {
	a, ok := columnAs[*array.FixedSizeList](s, name)
	if !ok {
		return nil
	}
	t := a.DataType().(*arrow.FixedSizeListType)
	v, ok := a.ListValues().(*array.Float64)
	if !ok || int(t.Len()) != width || v.NullN() > 0 {
		s.fail("its column %q is %v, wanted are %d numbers in each row", name, t, width)
		return nil
	}
	return s.finite(name, v.Float64Values()[a.Offset()*width:(a.Offset()+a.Len())*width])
}

// Lists returns a column of lists of numbers.
func (s *Stored) Lists(name string) (out [][]float64) {
	a, ok := columnAs[*array.List](s, name)
	if !ok {
		return nil
	}
	v, ok := a.ListValues().(*array.Float64)
	if !ok || v.NullN() > 0 {
		s.fail("its column %q is %v", name, a.DataType())
		return nil
	}
	for i := range a.Len() {
		from, to := a.ValueOffsets(i)
		out = append(out, s.finite(name, v.Float64Values()[from:to]))
	}
	return out
}

// IntLists returns a column of lists of whole numbers.
func (s *Stored) IntLists(name string) (out [][]int64) {
	a, ok := columnAs[*array.List](s, name)
	if !ok {
		return nil
	}
	v, ok := a.ListValues().(*array.Int64)
	if !ok || v.NullN() > 0 {
		s.fail("its column %q is %v", name, a.DataType())
		return nil
	}
	for i := range a.Len() {
		from, to := a.ValueOffsets(i)
		out = append(out, append([]int64(nil), v.Int64Values()[from:to]...))
	}
	return out
}

// Fail refuses the columns.
func (s *Stored) Fail(why string) { s.fail("%s", why) }
