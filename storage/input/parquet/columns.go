package parquet

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/rows"
)

// Plan is which columns of a Parquet or Arrow file are label and features:
// numeric columns, or one list column "features", or the two list columns
// "indices" and "values" of sparse rows.
type Plan struct {
	Label    string   `json:"label"` // empty: there is none
	Weight   string   `json:"weight,omitempty"`
	Features []string `json:"features"`
	List     string   `json:"list"`
	Sparse   bool     `json:"sparse"`

	first int // number of the first row of the record in hand
}

// About how much of a Parquet file one part holds, at the least and at the most.
const (
	groupLeast = 16 << 20
	groupBytes = 128 << 20
)

// Kind is the format of a file of columns.
type Kind string

// The kinds.
const (
	Parquet Kind = "parquet"
	Arrow   Kind = "arrow"
)

// Options choose the columns. The zero value detects everything.
type Options struct {
	Label   string // column of the label: a name or a zero-based number
	NoLabel bool   // there is no label column
	Weight  string // column of rows' weights: a name or a zero-based number; empty is none
}

// describeFiles returns the descriptions of some files, and whether they have
// certain columns; one child reads them all.
func describeFiles(ctx context.Context, inputs []files.File, kind Kind,
	columns []string) (found []*columnsInFile, err error) {
	if len(inputs) == 0 {
		return nil, nil
	}
	order := decodeOrder{Path: inputs[0].Path, Kind: kind, Columns: columns}
	for _, f := range inputs {
		order.Describe, order.Memory = append(order.Describe, f.Path), max(order.Memory, memoryFor(f.Size))
	}
	err = decode(ctx, order, func(r *decodeReply) error {
		found = append(found, r.Describe)
		return nil
	})
	if err == nil && (len(found) < len(inputs) || slices.Contains(found, nil)) {
		err = fault.Newf(fault.BadInput, "read", inputs[0].Path, "the decoder returned no description of the file")
	}
	return found, err
}

// Open examines every file once and determines which columns make points;
// Parquet files are cut into parts of whole row groups.
func Open(ctx context.Context, inputs []files.File, kind Kind, o Options) (p *Plan, parts []files.Range, err error) {
	found, err := describeFiles(ctx, inputs, kind, nil)
	if err != nil {
		return nil, nil, err
	}
	for i, f := range inputs {
		if i == 0 {
			if p, err = planOf(f.Path, found[i], o); err != nil {
				return nil, nil, err
			}
		}
		parts = append(parts,
			groupParts(f, found[i], files.PartSize(files.TotalSize(inputs), groupLeast, groupBytes))...)
	}
	return p, parts, nil
}

// groupParts returns ranges of row groups: Offset is the first, Length how
// many. A file without row groups is one part of length 0.
func groupParts(f files.File, d *columnsInFile, most int64) []files.Range {
	if len(d.Groups) == 0 {
		return []files.Range{{File: f}}
	}
	var out []files.Range
	part, size, row := files.Range{File: f}, int64(0), int64(0)
	for i, g := range d.Groups {
		size, part.Length = size+g, part.Length+1
		if i < len(d.GroupRows) {
			row += d.GroupRows[i]
		}
		if size >= most || i == len(d.Groups)-1 {
			out = append(out, part)
			part, size = files.Range{File: f, Offset: int64(i + 1), Row: row}, 0
		}
	}
	return out
}

func planOf(path string, d *columnsInFile, o Options) (*Plan, error) {
	p := &Plan{}
	var err error
	if !o.NoLabel {
		if p.Label, err = chooseLabel(path, d, o.Label); err != nil {
			return nil, err
		}
	}
	if o.Weight != "" {
		if p.Weight, err = d.named(path, "weight-column", o.Weight); err != nil {
			return nil, err
		}
		if p.Weight == p.Label {
			return nil, rows.SameColumn(path, p.Label)
		}
	}
	if d.isListNamed("indices") && d.isListNamed("values") {
		p.Sparse = true
		return p, nil
	}
	for i, name := range d.Names {
		if name == p.Label || name == p.Weight {
			continue
		}
		if isList(d.Types[i]) {
			if p.List != "" {
				return nil, fault.Newf(fault.BadInput, "read", path,
					"columns %q and %q are both lists: which are the features?", p.List, name)
			}
			p.List = name
			continue
		}
		p.Features = append(p.Features, name)
	}
	if p.List != "" && len(p.Features) > 0 {
		return nil, fault.Newf(fault.BadInput, "read", path,
			"column %q is a list of features, and column %q is beside it", p.List, p.Features[0]).
			WithHint("save a file of the columns to be used: label, weight, and either the list or single columns")
	}
	if p.List == "" && len(p.Features) == 0 {
		return nil, fault.Newf(fault.BadInput, "read", path, "it has no column of features")
	}
	return p, nil
}

func (d *columnsInFile) isListNamed(name string) bool {
	at := slices.Index(d.Names, name)
	return at >= 0 && isList(d.Types[at])
}

func isList(t string) bool {
	return strings.HasPrefix(t, "list<") || strings.HasPrefix(t, "fixed_size_list<") ||
		strings.HasPrefix(t, "large_list<")
}

// chooseLabel follows the rule for tables: by name, by zero-based number, the
// column named "label", else the first.
func chooseLabel(path string, d *columnsInFile, want string) (string, error) {
	if len(d.Names) == 0 {
		return "", fault.Newf(fault.BadInput, "read", path, "it has no columns")
	}
	if want == "" {
		if slices.Contains(d.Names, "label") {
			return "label", nil
		}
		return d.Names[0], nil
	}
	return d.named(path, "label", want)
}

// named returns the name of a column of a name or a zero-based number, for the flag
// that names it.
func (d *columnsInFile) named(path, flag, want string) (string, error) {
	if slices.Contains(d.Names, want) {
		return want, nil
	}
	if n, err := strconv.Atoi(want); err == nil && n >= 0 && n < len(d.Names) {
		return d.Names[n], nil
	}
	return "", rows.NoColumn(path, flag, want, d.Names)
}

// Read yields the rows of one part.
func (p *Plan) Read(ctx context.Context, kind Kind, rng files.Range, yield func(*rows.Chunk) error) error {
	if err := rng.File.Unchanged(); err != nil {
		return err
	}
	order := decodeOrder{Path: rng.File.Path, Kind: kind, Plan: p, Groups: groupsOf(rng),
		Memory: memoryFor(rng.File.Size)}
	err := decode(ctx, order, func(r *decodeReply) error {
		c, err := r.chunk()
		if c == nil || err != nil {
			return err
		}
		c.Where, c.ZeroBased = func() string { return rng.File.Path }, true
		return yield(c)
	})
	return cmp.Or(err, rng.File.Unchanged())
}

// row returns the number of a row of the record in hand.
func (p *Plan) row(i int) int { return p.first + i }

// one returns the row of all values of a list.
func one(row int) func(int) int { return func(int) int { return row } }

// chunk turns a record into rows.
func (p *Plan) chunk(rec arrow.Record) (*rows.Chunk, error) {
	c := &rows.Chunk{}
	if err := p.labels(c, rec); err != nil {
		return nil, err
	}
	if err := p.weights(c, rec); err != nil {
		return nil, err
	}
	switch {
	case p.Sparse:
		return c, p.sparseColumns(c, rec)
	case p.List != "":
		return c, p.listColumn(c, rec)
	}
	c.Width = len(p.Features)
	c.Values = make([]float64, int(rec.NumRows())*c.Width)
	for j, name := range p.Features {
		col, err := columnNamed(rec, name)
		if err != nil {
			return nil, err
		}
		if err := numbers(col, name, p.row, 0, col.Len(),
			func(i int, v float64) { c.Values[i*c.Width+j] = v }); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func columnNamed(rec arrow.Record, name string) (arrow.Array, error) {
	at := rec.Schema().FieldIndices(name)
	if len(at) == 0 {
		return nil, fmt.Errorf("the file has no column %q, the first one had", name)
	}
	return rec.Column(at[0]), nil
}

func (p *Plan) labels(c *rows.Chunk, rec arrow.Record) error {
	n := int(rec.NumRows())
	if p.Label == "" {
		c.Labels = make([]float64, n)
		return nil
	}
	col, err := columnNamed(rec, p.Label)
	if err != nil {
		return err
	}
	if isText(col.DataType()) {
		of, err := fieldsOf(col, p.Label)
		if err != nil {
			return err
		}
		for i := range n {
			f := of(i)
			if f.text == nil {
				return fmt.Errorf("the label in column %q is null in row %d", p.Label, p.row(i))
			}
			c.AddText(f.text)
		}
		return nil
	}
	c.Labels = make([]float64, n)
	return numbers(col, p.Label, p.row, 0, n, func(i int, v float64) { c.Labels[i] = v })
}

func (p *Plan) weights(c *rows.Chunk, rec arrow.Record) error {
	if p.Weight == "" {
		return nil
	}
	col, err := columnNamed(rec, p.Weight)
	if err != nil {
		return err
	}
	c.Weights = make([]float64, col.Len())
	if err := numbers(col, p.Weight, p.row, 0, col.Len(), func(i int, v float64) { c.Weights[i] = v }); err != nil {
		return err
	}
	if at := negative(c.Weights); at >= 0 {
		return fmt.Errorf("the weight in column %q is %v in row %d, less than zero", p.Weight, c.Weights[at], p.row(at))
	}
	return nil
}

// negative returns the first of some numbers that is less than zero; −1 without one.
func negative(v []float64) int {
	return slices.IndexFunc(v, func(x float64) bool { return x < 0 })
}

// numbers reads a column of numbers; nulls and values that are not finite are
// errors that name column and row.
func numbers(col arrow.Array, name string, row func(i int) int, from, to int, put func(i int, v float64)) error {
	at, ok := reader(col)
	if !ok {
		return fmt.Errorf("column %q is %v, not a number", name, col.DataType())
	}
	for i := from; i < to; i++ {
		if col.IsNull(i) {
			return fmt.Errorf("column %q is null in row %d", name, row(i))
		}
		v := at(i)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("column %q is %v in row %d, not finite", name, v, row(i))
		}
		if !holds(col, i, v) {
			return fmt.Errorf("column %q is %s in row %d, which no double is", name, col.ValueStr(i), row(i))
		}
		put(i-from, v)
	}
	return nil
}

// holds reports whether a number that was read from a column is exact.
func holds(col arrow.Array, i int, v float64) bool {
	switch c := col.(type) {
	case *array.Int64:
		return exactly(v, c.Value(i))
	case *array.Uint64:
		u := c.Value(i)
		return v < 1<<64 && uint64(v) == u
	}
	return true
}

// exactly reports whether a double is a whole number.
func exactly(v float64, whole int64) bool { return v < 1<<63 && int64(v) == whole }

// reader returns how the values of a column are read as numbers.
func reader(col arrow.Array) (func(int) float64, bool) {
	switch c := col.(type) {
	case *array.Float64:
		return c.Value, true
	case *array.Float32:
		return func(i int) float64 { return float64(c.Value(i)) }, true
	case *array.Int64:
		return func(i int) float64 { return float64(c.Value(i)) }, true
	case *array.Int32:
		return func(i int) float64 { return float64(c.Value(i)) }, true
	case *array.Int16:
		return func(i int) float64 { return float64(c.Value(i)) }, true
	case *array.Int8:
		return func(i int) float64 { return float64(c.Value(i)) }, true
	case *array.Uint64:
		return func(i int) float64 { return float64(c.Value(i)) }, true
	case *array.Uint32:
		return func(i int) float64 { return float64(c.Value(i)) }, true
	case *array.Uint16:
		return func(i int) float64 { return float64(c.Value(i)) }, true
	case *array.Uint8:
		return func(i int) float64 { return float64(c.Value(i)) }, true
	case *array.Float16:
		return func(i int) float64 { return float64(Half(c.Value(i).Uint16())) }, true
	case *array.Decimal128:
		scale := c.DataType().(*arrow.Decimal128Type).Scale
		return func(i int) float64 { return nearest(c.Value(i).BigInt(), scale) }, true
	case *array.Decimal256:
		scale := c.DataType().(*arrow.Decimal256Type).Scale
		return func(i int) float64 { return nearest(c.Value(i).BigInt(), scale) }, true
	case *array.Boolean:
		return func(i int) float64 {
			if c.Value(i) {
				return 1
			}
			return 0
		}, true
	}
	return nil, false
}

// Half returns the number that 16 bits are as a half float.
func Half(bits uint16) float32 {
	sign, exponent, fraction := 1-2*float32(bits>>15), int(bits>>10&31), float32(bits&1023)
	switch exponent {
	case 0:
		return sign * float32(math.Ldexp(float64(fraction), -24))
	case 31:
		if fraction > 0 {
			return float32(math.NaN())
		}
		return float32(math.Inf(int(sign)))
	}
	return sign * float32(math.Ldexp(float64(1024+fraction), exponent-25))
}

// nearest returns the double nearest to v / 10^scale.
func nearest(v *big.Int, scale int32) float64 {
	r := new(big.Rat).SetInt(v)
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil)
	if scale >= 0 {
		r.Quo(r, new(big.Rat).SetInt(ten))
	} else {
		r.Mul(r, new(big.Rat).SetInt(ten))
	}
	f, _ := r.Float64()
	return f
}

// listColumn reads rows from a list column whose lists are equally long.
func (p *Plan) listColumn(c *rows.Chunk, rec arrow.Record) error {
	name := p.List
	col, err := columnNamed(rec, name)
	if err != nil {
		return err
	}
	list, ok := col.(array.ListLike)
	if !ok {
		return fmt.Errorf("column %q is %v, not a list", name, col.DataType())
	}
	for i := range list.Len() {
		if list.IsNull(i) {
			return fmt.Errorf("column %q is null in row %d", name, p.row(i))
		}
		from, to := list.ValueOffsets(i)
		if i == 0 {
			c.Width = int(to - from)
			c.Values = make([]float64, list.Len()*c.Width)
		}
		if int(to-from) != c.Width || c.Width == 0 {
			return fmt.Errorf("column %q has %d values in row %d, %d in the first", name, to-from, p.row(i), c.Width)
		}
		out := c.Values[i*c.Width:]
		if err := numbers(list.ListValues(), name, one(p.row(i)), int(from), int(to),
			func(k int, v float64) { out[k] = v }); err != nil {
			return err
		}
	}
	return nil
}

// sparseColumns reads rows from the list columns indices and values; indices
// count from zero.
func (p *Plan) sparseColumns(c *rows.Chunk, rec arrow.Record) error {
	ic, err := columnNamed(rec, "indices")
	if err != nil {
		return err
	}
	vc, err := columnNamed(rec, "values")
	if err != nil {
		return err
	}
	idx, ok1 := ic.(array.ListLike)
	val, ok2 := vc.(array.ListLike)
	if !ok1 || !ok2 {
		return fmt.Errorf("columns \"indices\" and \"values\" are not both lists")
	}
	c.Offsets = []int64{0}
	for i := range idx.Len() {
		if idx.IsNull(i) || val.IsNull(i) {
			return fmt.Errorf("columns \"indices\" and \"values\": one is null in row %d", p.row(i))
		}
		a, b := idx.ValueOffsets(i)
		x, y := val.ValueOffsets(i)
		if b-a != y-x {
			return fmt.Errorf("row %d has %d indices and %d values", p.row(i), b-a, y-x)
		}
		last := -1.0
		var bad error
		err := numbers(idx.ListValues(), "indices", one(p.row(i)), int(a), int(b), func(_ int, v float64) {
			if v <= last || v > rows.MaxIndex || v != math.Trunc(v) {
				bad = fmt.Errorf("row %d has the index %v after %v: indices must ascend from 0 to %d", p.row(i), v,
					last, rows.MaxIndex)
			}
			last = v
			c.Indices = append(c.Indices, int32(v))
		})
		if err == nil {
			err = bad
		}
		if err == nil {
			err = numbers(val.ListValues(), "values", one(p.row(i)), int(x), int(y),
				func(_ int, v float64) { c.Values = append(c.Values, v) })
		}
		if err != nil {
			return err
		}
		c.Offsets = append(c.Offsets, int64(len(c.Indices)))
	}
	return nil
}
