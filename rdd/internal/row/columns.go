package row

import (
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/volley-engine/volley/storage/input/parquet"
)

// Columns are the columns of a table whose rows are of type T: one for each field of a struct, by the name in
// its tag col or else its own; one column "value" for any other type. Fields with the tag col:"-" are left
// out.
//
// A null is a nil pointer, or an sql.Null that is not valid; in a field that can be neither, a null is an
// error.
type Columns[T any] struct {
	fields []column
	schema *arrow.Schema
}

// column is a field of a row.
type column struct {
	name      string
	offset    uintptr
	malformed bool // it is for the text of malformed records
	typ       reflect.Type
	columnType
}

// columnType is how values of a type are written and read.
type columnType struct {
	arrow arrow.DataType
	null  bool // there may be nulls
	text  bool // it is text or bytes, of which an empty one is a value
	// within are the fields of a column of structs; nil of others. What structs and lists within it hold is read
	// whole: the library that decodes them cannot leave out a part of that.
	within []string
	write  func(b array.Builder, p unsafe.Pointer)
	read   func(a arrow.Array, i int, p unsafe.Pointer) error
	// print and parse are nil of what cannot be a field of text.
	print func(out []byte, p unsafe.Pointer) []byte
	parse func(text []byte, p unsafe.Pointer, a *Arena) error
	// flat reads the k-th present value of a Parquet column; nil of what is not
	// in one.
	flat func(c *parquet.FlatColumn, k int, p unsafe.Pointer, a *Arena) error
	// all reads a whole batch without nulls at once, and reports whether it could.
	all func(c *parquet.FlatColumn, p unsafe.Pointer, stride uintptr, a *Arena) bool
	// fits returns why a value cannot be written; nil where all can.
	fits func(p unsafe.Pointer) error
	// clear makes a value null; at returns where it lies, nil of a null. Both are nil of
	// what cannot be null.
	clear func(p unsafe.Pointer)
	at    func(p unsafe.Pointer) unsafe.Pointer
}

// ColumnsOf returns the columns of T; what cannot be a column is an error that names the field.
func ColumnsOf[T any]() (*Columns[T], error) {
	t := reflect.TypeFor[T]()
	c := &Columns[T]{}
	if t.Kind() != reflect.Struct || t == timeType || isNull(t) {
		v, err := columnTypeOf(t, nameOf(t), nil)
		if err != nil {
			return nil, err
		}
		c.fields = []column{{name: "value", typ: t, columnType: v}}
	} else {
		var err error
		if c.fields, err = structColumns(t, nameOf(t), nil); err != nil {
			return nil, err
		}
	}
	c.schema = arrow.NewSchema(arrowFields(c.fields), nil)
	return c, nil
}

func arrowFields(fields []column) (out []arrow.Field) {
	for _, f := range fields {
		out = append(out, arrow.Field{Name: f.name, Type: f.arrow, Nullable: f.null})
	}
	return out
}

func structColumns(t reflect.Type, at string, within []reflect.Type) ([]column, error) {
	var out []column
	seen := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, ok := f.Tag.Lookup("col")
		switch {
		case name == "-" || f.Name == "_":
			continue
		case !ok || name == "":
			name = f.Name
		}
		where := at + "." + f.Name
		if !f.IsExported() {
			return nil, fmt.Errorf("%s: a field that is not exported cannot be a column; leave it out with the tag "+
				"col:\"-\"", where)
		}
		if key := strings.ToLower(name); seen[key] {
			return nil, fmt.Errorf("%s: there are two columns %q", where, name)
		} else {
			seen[key] = true
		}
		v, err := columnTypeOf(f.Type, where, append(within, t))
		if err != nil {
			return nil, err
		}
		if v, err = v.inUnit(f.Tag.Get("unit")); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		if v, err = v.inDecimal(f.Type, f.Tag.Get("decimal")); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		out = append(out, column{name, f.Offset, f.Type == reflect.TypeFor[Malformed](), f.Type, v})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: it has no columns", at)
	}
	return out, nil
}

// Names returns the names of the columns.
func (c *Columns[T]) Names() (out []string) {
	for _, f := range c.fields {
		out = append(out, f.name)
	}
	return out
}

// paths returns the names of what is read of a file: of a column of structs only the fields that rows have.
func (c *Columns[T]) paths() []string { return pathsOf(c.fields) }

func pathsOf(fields []column) (out []string) {
	for _, f := range fields {
		if f.within == nil {
			out = append(out, f.name)
		}
		for _, w := range f.within {
			out = append(out, f.name+parquet.Below+w)
		}
	}
	return out
}

func namesOf(fields []column) (out []string) {
	for _, f := range fields {
		out = append(out, f.name)
	}
	return out
}

// isNull reports whether a type is an sql.Null of something.
func isNull(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == "database/sql" && strings.HasPrefix(t.Name(), "Null[")
}

var _ = sql.Null[int]{}

func columnTypeOf(t reflect.Type, at string, within []reflect.Type) (columnType, error) {
	for _, w := range within {
		if w == t {
			return columnType{}, fmt.Errorf("%s: a %v that contains itself cannot be a column", at, t)
		}
	}
	switch {
	case t == timeType:
		return timeColumn(), nil
	case t == reflect.TypeFor[time.Duration]():
		return durationColumn(), nil
	case isNull(t):
		return nullColumn(t, at, append(within, t))
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return bytesColumn(), nil
	case t.Kind() == reflect.Array && t.Elem().Kind() == reflect.Uint8 && t.Len() > 0:
		return fixedColumn(t.Len()), nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return boolColumn(), nil
	case reflect.Int:
		return intColumn[int](arrow.PrimitiveTypes.Int64), nil
	case reflect.Int64:
		return intColumn[int64](arrow.PrimitiveTypes.Int64), nil
	case reflect.Int32:
		return intColumn[int32](arrow.PrimitiveTypes.Int32), nil
	case reflect.Int16:
		return intColumn[int16](arrow.PrimitiveTypes.Int16), nil
	case reflect.Int8:
		return intColumn[int8](arrow.PrimitiveTypes.Int8), nil
	case reflect.Uint:
		return uintColumn[uint](arrow.PrimitiveTypes.Uint64), nil
	case reflect.Uint64:
		return uintColumn[uint64](arrow.PrimitiveTypes.Uint64), nil
	case reflect.Uint32:
		return uintColumn[uint32](arrow.PrimitiveTypes.Uint32), nil
	case reflect.Uint16:
		return uintColumn[uint16](arrow.PrimitiveTypes.Uint16), nil
	case reflect.Uint8:
		return uintColumn[uint8](arrow.PrimitiveTypes.Uint8), nil
	case reflect.Float64:
		return floatColumn[float64](arrow.PrimitiveTypes.Float64), nil
	case reflect.Float32:
		return floatColumn[float32](arrow.PrimitiveTypes.Float32), nil
	case reflect.String:
		return stringColumn(), nil
	case reflect.Pointer:
		return pointerColumn(t, at, append(within, t))
	case reflect.Slice:
		return listColumn(t, at, append(within, t))
	case reflect.Struct:
		return structColumn(t, at, within)
	}
	return columnType{}, fmt.Errorf("%s: a %v cannot be a column", at, t)
}

// pointerColumn has nulls for nil pointers.
func pointerColumn(t reflect.Type, at string, within []reflect.Type) (columnType, error) {
	elem, err := columnTypeOf(t.Elem(), at, within)
	if err != nil {
		return elem, err
	}
	if elem.null {
		return elem, fmt.Errorf("%s: a %v could be null in two ways", at, t)
	}
	out := columnType{arrow: elem.arrow, null: true}
	fresh := func(p unsafe.Pointer) unsafe.Pointer {
		to := reflect.New(t.Elem()).UnsafePointer()
		*(*unsafe.Pointer)(p) = to
		return to
	}
	out.clear = func(p unsafe.Pointer) { *(*unsafe.Pointer)(p) = nil }
	return nullable(out, elem, fresh, func(p unsafe.Pointer) unsafe.Pointer { return *(*unsafe.Pointer)(p) }), nil
}

// nullColumn has nulls for values that are not valid.
func nullColumn(t reflect.Type, at string, within []reflect.Type) (columnType, error) {
	v, _ := t.FieldByName("V")
	valid, _ := t.FieldByName("Valid")
	elem, err := columnTypeOf(v.Type, at, within)
	if err != nil {
		return elem, err
	}
	if elem.null {
		return elem, fmt.Errorf("%s: a %v could be null in two ways", at, t)
	}
	out := columnType{arrow: elem.arrow, null: true}
	fresh := func(p unsafe.Pointer) unsafe.Pointer {
		*(*bool)(unsafe.Add(p, valid.Offset)) = true
		return unsafe.Add(p, v.Offset)
	}
	out.clear = func(p unsafe.Pointer) { reflect.NewAt(t, p).Elem().SetZero() }
	return nullable(out, elem, fresh, func(p unsafe.Pointer) unsafe.Pointer {
		if !*(*bool)(unsafe.Add(p, valid.Offset)) {
			return nil
		}
		return unsafe.Add(p, v.Offset)
	}), nil
}

// nullable makes a column of values that may be absent: fresh is where one is to
// be put, at where it lies, or nil.
func nullable(out, elem columnType, fresh, at func(unsafe.Pointer) unsafe.Pointer) columnType {
	out.at, out.within, out.text = at, elem.within, elem.text
	out.fits = out.present(elem.fits)
	out.write = out.orNull(elem.write)
	out.read = func(a arrow.Array, i int, p unsafe.Pointer) error {
		if a.IsNull(i) {
			out.clear(p)
			return nil
		}
		return elem.read(a, i, fresh(p))
	}
	if elem.print != nil {
		out.print = func(text []byte, p unsafe.Pointer) []byte {
			if v := at(p); v != nil {
				return elem.print(text, v)
			}
			return text
		}
		out.parse = func(text []byte, p unsafe.Pointer, a *Arena) error {
			if text == nil || len(text) == 0 && !isText(elem.arrow) { // an empty text is one
				out.clear(p)
				return nil
			}
			return elem.parse(text, fresh(p), a)
		}
	}
	if elem.flat != nil {
		out.flat = func(c *parquet.FlatColumn, k int, p unsafe.Pointer, a *Arena) error {
			return elem.flat(c, k, fresh(p), a)
		}
	}
	return out
}

func isText(t arrow.DataType) bool { return t.ID() == arrow.STRING || t.ID() == arrow.BINARY }

// listColumn writes slices as lists; a nil slice is an empty one.
func listColumn(t reflect.Type, at string, within []reflect.Type) (columnType, error) {
	elem, err := columnTypeOf(t.Elem(), at+"[]", within)
	if err != nil {
		return elem, err
	}
	size := t.Elem().Size()
	if size == 0 {
		return elem, fmt.Errorf("%s: a slice of %v, which takes no memory, cannot be a column", at, t.Elem())
	}
	return columnType{
		fits:  eachFits(elem, size),
		arrow: arrow.ListOfField(arrow.Field{Name: "item", Type: elem.arrow, Nullable: elem.null}),
		write: func(b array.Builder, p unsafe.Pointer) {
			lb := b.(*array.ListBuilder)
			lb.Append(true)
			h := (*sliceHeader)(p)
			for i := range h.len {
				elem.write(lb.ValueBuilder(), unsafe.Add(h.data, uintptr(i)*size))
			}
		},
		read: func(a arrow.Array, i int, p unsafe.Pointer) error {
			list, ok := a.(array.ListLike)
			if !ok {
				return fmt.Errorf("it is %v, not a list", a.DataType())
			}
			from, to := list.ValueOffsets(i)
			s := reflect.MakeSlice(t, int(to-from), int(to-from))
			for k := from; k < to; k++ {
				if err := readValue(elem, list.ListValues(), int(k),
					unsafe.Add(s.UnsafePointer(), uintptr(k-from)*size)); err != nil {
					return err
				}
			}
			reflect.NewAt(t, p).Elem().Set(s)
			return nil
		},
	}, nil
}

// eachFits checks the values of a list; nil where all fit.
func eachFits(elem columnType, size uintptr) func(p unsafe.Pointer) error {
	if elem.fits == nil {
		return nil
	}
	return func(p unsafe.Pointer) error {
		h := (*sliceHeader)(p)
		for i := range h.len {
			if err := elem.fits(unsafe.Add(h.data, uintptr(i)*size)); err != nil {
				return err
			}
		}
		return nil
	}
}

// allFit checks the fields of a struct; nil where all values of them fit.
func allFit(fields []column) func(p unsafe.Pointer) error {
	checked := slices.DeleteFunc(slices.Clone(fields), func(f column) bool { return f.fits == nil })
	if len(checked) == 0 {
		return nil
	}
	return func(p unsafe.Pointer) error {
		for _, f := range checked {
			if err := f.fits(unsafe.Add(p, f.offset)); err != nil {
				return fmt.Errorf("column %q: %w", f.name, err)
			}
		}
		return nil
	}
}

func structColumn(t reflect.Type, at string, within []reflect.Type) (columnType, error) {
	fields, err := structColumns(t, at, within)
	if err != nil {
		return columnType{}, err
	}
	return columnType{
		fits:   allFit(fields),
		within: namesOf(fields),
		arrow:  arrow.StructOf(arrowFields(fields)...),
		write: func(b array.Builder, p unsafe.Pointer) {
			sb := b.(*array.StructBuilder)
			sb.Append(true)
			for i, f := range fields {
				f.write(sb.FieldBuilder(i), unsafe.Add(p, f.offset))
			}
		},
		read: func(a arrow.Array, i int, p unsafe.Pointer) error {
			s, ok := a.(*array.Struct)
			if !ok {
				return fmt.Errorf("it is %v, not a struct", a.DataType())
			}
			st := s.DataType().(*arrow.StructType)
			for _, f := range fields {
				at := fieldNamed(st.Fields(), f.name)
				if at < 0 {
					return fmt.Errorf("it has no field %q", f.name)
				}
				if err := readValue(f.columnType, s.Field(at), i, unsafe.Add(p, f.offset)); err != nil {
					return fmt.Errorf("field %q: %w", f.name, err)
				}
			}
			return nil
		},
	}, nil
}

// fieldNamed returns the index of a field: by name, else by name without regard to case; -1 where there is
// none.
func fieldNamed(fields []arrow.Field, name string) int {
	for i, f := range fields {
		if f.Name == name {
			return i
		}
	}
	for i, f := range fields {
		if strings.EqualFold(f.Name, name) {
			return i
		}
	}
	return -1
}

// readValue reads a value of an Arrow array.
func readValue(v columnType, a arrow.Array, i int, p unsafe.Pointer) error {
	for d, ok := a.(*array.Dictionary); ok && !a.IsNull(i); d, ok = a.(*array.Dictionary) {
		a, i = d.Dictionary(), d.GetValueIndex(i) // whose value may be null in turn
	}
	if a.IsNull(i) && !v.null {
		return errIsNull
	}
	return v.read(a, i, p)
}

var errIsNull = fmt.Errorf("it is null: make the field a pointer or an sql.Null")
