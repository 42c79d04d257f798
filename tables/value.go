package tables

import (
	"slices"
	"sync"
)

// Number is what the cells of a table are.
type Number interface {
	float64 | float32 | int32 | int64
}

// Row is a row as a worker sees it: of a dense table all cells, of a sparse one those that are not zero, in the order
// of their columns. It must not be changed, and is valid until the worker reads or adds to the row again.
type Row[T Number] struct {
	Columns []int32 // nil where the row is dense
	Values  []T
}

// At returns a cell.
func (r Row[T]) At(column int) T {
	if r.Columns == nil {
		if r.Values == nil {
			return 0
		}
		return r.Values[column]
	}
	if at, ok := slices.BinarySearch(r.Columns, int32(column)); ok {
		return r.Values[at]
	}
	return 0
}

// sums adds up rows of a table. A dense table's rows, and what a worker adds to one within a clock, have all cells;
// updates that leave have only those that are not zero, where that is shorter.
type sums[T Number] struct {
	columns int
	sparse  bool
	size    int        // of a cell, in bytes
	zeros   *sync.Pool // of whole rows of zeros
}

func newSums[T Number](columns int, sparse bool) *sums[T] {
	s := &sums[T]{columns: columns, sparse: sparse, size: 8}
	switch any(T(0)).(type) {
	case float32, int32:
		s.size = 4
	}
	s.zeros = &sync.Pool{}
	return s
}

// zero returns a whole row of zeros.
func (s *sums[T]) zero() []T {
	if row, ok := s.zeros.Get().(*[]T); ok {
		return *row
	}
	return make([]T, s.columns)
}

// whole returns a copy of a whole row.
func (s *sums[T]) whole(of []T) []T {
	if row, ok := s.zeros.Get().(*[]T); ok {
		copy(*row, of)
		return *row
	}
	return slices.Clone(of)
}

// Add returns the sum of a row and an update.
func (s *sums[T]) Add(sum, delta Row[T]) Row[T] {
	switch {
	case delta.Values == nil:
		return sum
	case s.sparse:
		return merge(sum, delta)
	case sum.Values == nil:
		sum.Values = make([]T, s.columns)
	}
	if delta.Columns == nil {
		to := sum.Values[:len(delta.Values)]
		for i, x := range delta.Values {
			to[i] += x
		}
		return sum
	}
	for i, c := range delta.Columns {
		sum.Values[c] += delta.Values[i]
	}
	return sum
}

// merged adds an update to another, of which neither need have all cells.
func (s *sums[T]) merged(sum, delta Row[T]) Row[T] {
	if !s.sparse && sum.Values != nil && sum.Columns == nil {
		return s.Add(sum, delta)
	}
	return merge(sum, delta)
}

// merge adds a sparse update to a sparse row, in place where it has all of its columns. Cells that become zero go.
func merge[T Number](sum, delta Row[T]) Row[T] {
	if inPlace(sum, delta) {
		return sum
	}
	most := len(sum.Columns) + len(delta.Columns)
	out := Row[T]{make([]int32, 0, most), make([]T, 0, most)}
	put := func(c int32, x T) {
		if x != 0 {
			out.Columns, out.Values = append(out.Columns, c), append(out.Values, x)
		}
	}
	i := 0
	for k, c := range delta.Columns {
		for ; i < len(sum.Columns) && sum.Columns[i] < c; i++ {
			put(sum.Columns[i], sum.Values[i])
		}
		if i < len(sum.Columns) && sum.Columns[i] == c {
			put(c, sum.Values[i]+delta.Values[k])
			i++
		} else {
			put(c, delta.Values[k])
		}
	}
	for ; i < len(sum.Columns); i++ {
		put(sum.Columns[i], sum.Values[i])
	}
	return out
}

// inPlace adds an update to a row if that changes none of its columns, and reports whether it has.
func inPlace[T Number](sum, delta Row[T]) bool {
	if len(delta.Columns) > 4 { // few are looked up, many merged
		return false
	}
	var at [4]int
	for k, c := range delta.Columns {
		i, ok := slices.BinarySearch(sum.Columns, c)
		if !ok || sum.Values[i]+delta.Values[k] == 0 {
			return false
		}
		at[k] = i
	}
	for k, x := range delta.Values {
		sum.Values[at[k]] += x
	}
	return true
}

// Clone returns a copy.
func (s *sums[T]) Clone(v Row[T]) Row[T] {
	return Row[T]{slices.Clone(v.Columns), slices.Clone(v.Values)}
}

// Bytes returns what a row takes in a message.
func (s *sums[T]) Bytes(v Row[T]) int { return 16 + 4*len(v.Columns) + s.size*len(v.Values) }

// Seal returns an update as it is sent: the cells that are not zero, where that is shorter.
func (s *sums[T]) Seal(v Row[T]) Row[T] {
	if s.sparse || v.Values == nil || v.Columns != nil {
		return v
	}
	n, least := 0, (s.columns*s.size+s.size+3)/(s.size+4) // cells that make the other form no shorter
	for _, x := range v.Values {
		if x == 0 {
			continue
		}
		if n++; n >= least {
			return v
		}
	}
	out := Row[T]{make([]int32, 0, n), make([]T, 0, n)}
	for c, x := range v.Values {
		if x != 0 {
			out.Columns, out.Values = append(out.Columns, int32(c)), append(out.Values, x)
		}
	}
	clear(v.Values)
	s.zeros.Put(&v.Values)
	return out
}

// Columns calls f with the cells of an update that are not zero.
func (s *sums[T]) Columns(v Row[T], f func(column int, value float64)) {
	for i, x := range v.Values {
		switch {
		case x == 0:
		case v.Columns == nil:
			f(i, float64(x))
		default:
			f(int(v.Columns[i]), float64(x))
		}
	}
}

// insert adds to a cell of a sparse row that is the caller's own.
func insert[T Number](r *Row[T], column int32, x T) {
	at, ok := slices.BinarySearch(r.Columns, column)
	switch {
	case !ok && x == 0:
	case !ok:
		r.Columns, r.Values = slices.Insert(r.Columns, at, column), slices.Insert(r.Values, at, x)
	case r.Values[at]+x == 0:
		r.Columns, r.Values = slices.Delete(r.Columns, at, at+1), slices.Delete(r.Values, at, at+1)
	default:
		r.Values[at] += x
	}
}
