package parquet

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/schema"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/rows"
)

// Rows of numbers in Parquet files of the usual shapes are read by the low-level
// readers: columns of numbers, or one column of lists that are equally long, and a label
// that is a number. Everything else is read as Arrow records.

// plainNumbers reports whether a plan's columns are of these shapes in a file.
func (p *Plan) plainNumbers(f *flatFile) bool {
	flat := slices.Clone(p.Features)
	if p.List != "" {
		flat = nil
	}
	flat = append(flat, p.beside()...)
	if p.Sparse || !f.flat(flat) || p.List != "" && f.list(p.List) < 0 {
		return false
	}
	for _, name := range flat {
		c := f.r.MetaData().Schema.Column(f.column(name))
		_, time := logicalOf[schema.TimeLogicalType](c)
		if c.PhysicalType() == parquet.Types.ByteArray || time || unitOf(c) != NoTime {
			return false
		}
	}
	return true
}

// beside returns the columns beside the features: weight and label, where there are any.
func (p *Plan) beside() (names []string) {
	for _, name := range []string{p.Weight, p.Label} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// list returns the number of the column that has the numbers of a column of
// lists; −1 where there is none.
func (f *flatFile) list(name string) int {
	s, at := f.r.MetaData().Schema, -1
	for i := range s.NumColumns() {
		c := s.Column(i)
		if path := c.ColumnPath(); len(path) < 2 || path[0] != name {
			continue
		}
		if at >= 0 || c.MaxRepetitionLevel() != 1 ||
			c.PhysicalType() != parquet.Types.Double && c.PhysicalType() != parquet.Types.Float {
			return -1
		}
		at = i
	}
	return at
}

// readNumbers reads some row groups; false where the file is of another shape.
func readNumbers(order decodeOrder, out *sender) (read bool, err error) {
	f, err := openFlat(order.Path)
	if err != nil {
		return true, err
	}
	defer f.close()
	if !order.Plan.plainNumbers(f) {
		return false, nil
	}
	n := &numberReader{f: f, plan: order.Plan, out: out, row: rowsBefore(f.r.MetaData(), order.Groups)}
	for _, g := range order.Groups {
		if err := n.group(g); err != nil {
			return true, err
		}
	}
	return true, nil
}

// numberReader reads rows of numbers of one file.
type numberReader struct {
	f    *flatFile
	plan *Plan
	row  int64 // of the file
	cols []*FlatColumn
	list evenLists
	out  *sender
}

// group reads a row group, some thousand rows at a time.
func (n *numberReader) group(g int) error {
	names := n.plan.Features
	if n.plan.List != "" {
		names = nil
	}
	names = slices.Concat(names, n.plan.beside())
	readers, err := n.open(g, names)
	if err != nil {
		return err
	}
	width, err := n.width()
	if err != nil {
		return err
	}
	most := int64(min(decodeBatch, max(1, slotBytes/8/(width+2)))) // as many as a slot holds, if it holds one
	for left := n.f.r.MetaData().RowGroups[g].GetNumRows(); left > 0; {
		rows := int(min(left, most))
		if err := n.send(readers, rows, width); err != nil {
			return err
		}
		left, n.row = left-int64(rows), n.row+int64(rows)
	}
	return n.over()
}

// width returns how many features a row has.
func (n *numberReader) width() (width int, err error) {
	defer malformed(n.f.path, &err)
	if n.list == nil {
		return len(n.plan.Features), nil
	}
	width, at, err := n.list.begin()
	if err != nil {
		return 0, n.bad(n.row+int64(at), "column %q: %v", n.plan.List, err)
	}
	return width, nil
}

// send reads the next rows and sends them.
func (n *numberReader) send(readers []flatReader, count, width int) error {
	for i, col := range n.cols {
		if err := col.fill(n.f.path, readers[i], count); err != nil {
			return err
		}
		if at := slices.Index(col.Defs, 0); at >= 0 {
			return n.bad(n.row+int64(at), "column %q is null", col.Name)
		}
	}
	var c rows.Chunk
	if err := n.out.room(&c, count, width, n.plan.Weight != ""); err != nil {
		return err
	}
	if err := n.fill(&c, count); err != nil {
		return err
	}
	return n.out.chunk(&c)
}

// over returns an error if numbers are left over in the lists of a row group.
func (n *numberReader) over() (err error) {
	defer malformed(n.f.path, &err)
	if n.list == nil {
		return nil
	}
	more, err := n.list.more()
	if err != nil {
		return n.bad(n.row-1, "column %q: %v", n.plan.List, err)
	}
	if more {
		width, _, _ := n.list.begin()
		return n.bad(n.row-1, "column %q has more than %d values, as the first row,", n.plan.List, width)
	}
	return nil
}

func (n *numberReader) bad(row int64, format string, args ...any) error {
	return fault.New(fault.BadInput, "read", n.f.path, fmt.Errorf(format+" in row %d", append(args, row)...))
}

func (n *numberReader) open(g int, names []string) (readers []flatReader, err error) {
	defer malformed(n.f.path, &err)
	if readers, err = n.f.open(g, names); err != nil {
		return nil, err
	}
	n.cols, n.list = n.cols[:0], nil
	for _, name := range names {
		n.cols = append(n.cols, &FlatColumn{Name: name})
	}
	if n.plan.List != "" {
		if n.list, err = n.f.evenLists(g, n.f.list(n.plan.List)); err != nil {
			return nil, fault.New(fault.BadInput, "read", n.f.path, err)
		}
	}
	return readers, nil
}

// evenLists reads a column of lists of numbers that are equally long.
type evenLists interface {
	// begin returns how long they are, from the first; at is the list at which there was an error.
	begin() (width, at int, err error)
	// fill reads whole lists; at is the number at which there was an error.
	fill(out []float64) (at int, err error)
	// more reports whether numbers are left.
	more() (bool, error)
}

// evenLists opens a column of lists in a row group.
func (f *flatFile) evenLists(group, column int) (evenLists, error) {
	if err := foreign(f.path, f.r.MetaData(), group, column); err != nil {
		return nil, err
	}
	pages, err := f.listPages(group, column)
	if err != nil {
		return nil, err
	}
	if pages != nil {
		return pages, nil
	}
	r, err := f.r.RowGroup(group).Column(column)
	if err != nil {
		return nil, err
	}
	return &listReader{r: r, def: r.Descriptor().MaxDefinitionLevel()}, nil
}

// fill makes rows of the columns.
func (n *numberReader) fill(c *rows.Chunk, rows int) (err error) {
	features := n.cols
	sized(&c.Labels, rows)
	if n.plan.Label == "" {
		clear(c.Labels)
	}
	if n.plan.Label != "" {
		last := len(n.cols) - 1
		features = n.cols[:last]
		if at := n.cols[last].numbers(c.Labels, 1); at >= 0 {
			return n.bad(n.row+int64(at), "column %q %s", n.plan.Label, n.cols[last].wrong())
		}
	}
	if n.plan.Weight != "" {
		last := len(features) - 1
		sized(&c.Weights, rows)
		if at := max(features[last].numbers(c.Weights, 1), negative(c.Weights)); at >= 0 {
			return n.bad(n.row+int64(at), "the weight in column %q is %v, not a number of zero or more,",
				n.plan.Weight, c.Weights[at])
		}
		features = features[:last]
	}
	if n.list != nil {
		return n.fillList(c, rows)
	}
	c.Width = len(features)
	sized(&c.Values, rows*c.Width)
	for j, col := range features {
		if at := col.numbers(c.Values[j:], c.Width); at >= 0 {
			return n.bad(n.row+int64(at), "column %q %s", col.Name, col.wrong())
		}
	}
	return nil
}

// sized sets the length of a slice, reusing its capacity.
func sized[T any](s *[]T, n int) { *s = slices.Grow((*s)[:0], n)[:n] }

// numbers puts a column's values, a step apart; it returns the first row whose value
// is not finite, or not a double; −1 without one.
func (c *FlatColumn) numbers(out []float64, step int) int {
	switch {
	case c.Doubles != nil:
		return convert(out, step, c.Doubles)
	case c.Floats != nil:
		return convert(out, step, c.Floats)
	case c.Int64s != nil:
		return convertWhole(out, step, c.Int64s)
	case c.Int32s != nil:
		return convert(out, step, c.Int32s)
	}
	for i, b := range c.Bools {
		out[i*step] = 0
		if b {
			out[i*step] = 1
		}
	}
	return -1
}

// wrong returns the error of a value that numbers refused.
func (c *FlatColumn) wrong() string {
	if c.Int64s != nil {
		return "is a whole number that float64 does not have"
	}
	return "is not finite"
}

// convertWhole converts whole numbers that doubles may not have.
func convertWhole(out []float64, step int, in []int64) int {
	bad := -1
	for i, v := range in {
		x := float64(v)
		if bad < 0 && !exactly(x, v) {
			bad = i
		}
		out[i*step] = x
	}
	return bad
}

func convert[V float64 | float32 | int32](out []float64, step int, in []V) int {
	bad := -1
	for i, v := range in {
		x := float64(v)
		if x-x != 0 && bad < 0 {
			bad = i
		}
		out[i*step] = x
	}
	return bad
}

// notFinite returns the first number that is not; −1 without one. Differences of
// numbers to themselves are zero, of others not numbers: so is their sum.
func notFinite(x []float64) int {
	for from := 0; from < len(x); from += 64 {
		some := x[from:min(from+64, len(x))]
		var a, b, c, d float64
		k := 0
		for ; k+4 <= len(some); k += 4 {
			v := some[k : k+4 : k+4]
			a, b, c, d = a+(v[0]-v[0]), b+(v[1]-v[1]), c+(v[2]-v[2]), d+(v[3]-v[3])
		}
		for _, v := range some[k:] {
			a += v - v
		}
		if a+b+(c+d) != 0 {
			return from + slices.IndexFunc(some, func(v float64) bool { return v-v != 0 })
		}
	}
	return -1
}

// fillList reads lists that are as long as the first of the row group.
func (n *numberReader) fillList(c *rows.Chunk, rows int) (err error) {
	defer malformed(n.f.path, &err)
	if c.Width, _, err = n.list.begin(); err != nil {
		return n.bad(n.row, "column %q: %v", n.plan.List, err)
	}
	sized(&c.Values, rows*c.Width)
	at, err := n.list.fill(c.Values)
	if err != nil {
		return n.bad(n.row+int64(at/c.Width), "column %q: %v", n.plan.List, err)
	}
	if at := notFinite(c.Values); at >= 0 {
		return n.bad(n.row+int64(at/c.Width), "column %q is not finite", n.plan.List)
	}
	return nil
}

// listReader reads a column of lists, one number after the other, and checks where
// lists begin.
type listReader struct {
	r          file.ColumnChunkReader
	def        int16 // of a number that is there
	width      int   // of every list
	place      int   // in the list
	ahead      []float64
	floats     []float32
	defs, reps []int16
}

// longestList is how far the end of the first list is looked for.
const longestList = 1 << 20

// begin finds out how long lists are, from the first of the row group.
func (l *listReader) begin() (width, at int, err error) {
	if l.width == 0 {
		at, err = l.first()
	}
	return l.width, at, err
}

// more reports whether numbers are left.
func (l *listReader) more() (bool, error) {
	if len(l.ahead) > 0 {
		return true, nil
	}
	n, err := l.batch(make([]float64, 1))
	return n > 0, err
}

func (l *listReader) first() (at int, err error) {
	for l.width == 0 {
		had := len(l.ahead)
		l.ahead = append(l.ahead, make([]float64, max(4096, had))...)
		n, err := l.batch(l.ahead[had:])
		if err != nil {
			return n, err
		}
		l.ahead = l.ahead[:had+n]
		for i := range n {
			if l.reps[i] == 0 && had+i > 0 {
				l.width = had + i
				break
			}
		}
		if l.width == 0 && (n == 0 || len(l.ahead) > longestList) { // there is one list
			if l.width = len(l.ahead); n == 0 {
				break
			}
		}
		for i := range n {
			if err := l.check(had+i, l.reps[i], l.defs[i]); err != nil {
				return (had + i) / max(1, l.width), err
			}
		}
	}
	if l.width == 0 {
		return 0, fmt.Errorf("it has no values")
	}
	l.place = len(l.ahead) % l.width
	return 0, nil
}

// check reports whether a number, the i-th since the row group began, is where it
// should be.
func (l *listReader) check(i int, rep, def int16) error {
	if def != l.def {
		return fmt.Errorf("it has a null or an empty list,")
	}
	if l.width > 0 && (i%l.width == 0) != (rep == 0) {
		return fmt.Errorf("it has not %d values, as the first row,", l.width)
	}
	return nil
}

// batch reads some numbers, and where lists begin; 0 at the end.
func (l *listReader) batch(out []float64) (n int, err error) {
	k := len(out)
	if cap(l.defs) < k {
		l.defs, l.reps = make([]int16, k), make([]int16, k)
	}
	l.defs, l.reps = l.defs[:k], l.reps[:k]
	var total int64
	switch r := l.r.(type) {
	case *file.Float64ColumnChunkReader:
		total, n, err = r.ReadBatch(int64(k), out, l.defs, l.reps)
	case *file.Float32ColumnChunkReader:
		l.floats = slices.Grow(l.floats[:0], k)[:k]
		total, n, err = r.ReadBatch(int64(k), l.floats, l.defs, l.reps)
		for i, v := range l.floats[:n] {
			out[i] = float64(v)
		}
	}
	if err == nil && int64(n) != total {
		at := slices.IndexFunc(l.defs[:total], func(d int16) bool { return d < l.def })
		return l.lists(max(0, at)), fmt.Errorf("it has a null or an empty list,")
	}
	return n, err
}

// lists returns how many lists end before the i-th number of the last batch.
func (l *listReader) lists(i int) (n int) {
	for _, rep := range l.reps[:i+1] {
		if rep == 0 {
			n++
		}
	}
	return max(0, n-1)
}

// fill reads whole lists.
func (l *listReader) fill(out []float64) (at int, err error) {
	at = copy(out, l.ahead)
	l.ahead = l.ahead[at:]
	for at < len(out) {
		n, err := l.batch(out[at:])
		if err != nil {
			return at + n*l.width, err
		}
		if n == 0 {
			return at, fmt.Errorf("the row group has fewer")
		}
		for i := range n {
			if l.defs[i] != l.def || (l.place == 0) != (l.reps[i] == 0) {
				if l.place == 0 && at+i > 0 && l.reps[i] > 0 {
					at-- // the list before is too long
				}
				return at + i, l.check(l.place, l.reps[i], l.defs[i])
			}
			if l.place++; l.place == l.width {
				l.place = 0
			}
		}
		at += n
	}
	return at, nil
}
