package row

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
)

// JSON encodes and decodes rows as JSON values. An sql.Null, which encoding/json writes as an object of its
// fields, is its value or null.
type JSON[T any] struct {
	plain reflect.Type // T with pointers in place of sql.Null; nil where it has none
}

// JSONOf returns how rows of type T are written as JSON. A type that has an sql.Null, and embeds a struct or
// contains itself, is an error.
func JSONOf[T any]() (JSON[T], error) {
	t := reflect.TypeFor[T]()
	plain, ok := withoutNulls(t, nil)
	switch {
	case ok && plain != t:
		return JSON[T]{plain}, nil
	case !ok && hasNull(t, map[reflect.Type]bool{}):
		return JSON[T]{}, fmt.Errorf("%v has an sql.Null, and embeds a struct or contains itself: make the null "+
			"a pointer, or give the struct a name", t)
	}
	return JSON[T]{}, nil
}

// hasNull reports whether there is an sql.Null in a type.
func hasNull(t reflect.Type, seen map[reflect.Type]bool) bool {
	if isNull(t) || seen[t] {
		return isNull(t)
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return hasNull(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && hasNull(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// Marshal returns a row as JSON.
func (j JSON[T]) Marshal(row *T) ([]byte, error) {
	if j.plain == nil {
		return json.Marshal(row)
	}
	to := reflect.New(j.plain)
	move(to.Elem(), reflect.ValueOf(row).Elem())
	return json.Marshal(to.Interface())
}

// Unmarshal reads a row from JSON.
func (j JSON[T]) Unmarshal(raw []byte, row *T) error {
	if j.plain == nil {
		return json.Unmarshal(raw, row)
	}
	from := reflect.New(j.plain)
	if err := json.Unmarshal(raw, from.Interface()); err != nil {
		return err
	}
	move(reflect.ValueOf(row).Elem(), from.Elem())
	return nil
}

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// hasOwnJSON reports whether a type says itself how it is written or read.
func hasOwnJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonMarshaler) || p.Implements(textMarshaler) || p.Implements(jsonUnmarshaler) ||
		p.Implements(textUnmarshaler)
}

// withoutNulls returns a type with pointers in place of each sql.Null in it; false where such a type cannot be
// made: of structs that contain themselves, or that embed others.
func withoutNulls(t reflect.Type, within []reflect.Type) (reflect.Type, bool) {
	for _, w := range within {
		if w == t {
			return t, false
		}
	}
	within = append(within, t)
	switch {
	case hasOwnJSON(t):
		return t, true
	case isNull(t):
		v, _ := t.FieldByName("V")
		elem, ok := withoutNulls(v.Type, within)
		return reflect.PointerTo(elem), ok
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		elem, ok := withoutNulls(t.Elem(), within)
		if !ok || elem == t.Elem() {
			return t, ok
		}
		return around(t, elem), true
	case reflect.Struct:
		return structWithoutNulls(t, within)
	}
	return t, true
}

// around returns a type like t of other elements.
func around(t, elem reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Pointer:
		return reflect.PointerTo(elem)
	case reflect.Slice:
		return reflect.SliceOf(elem)
	case reflect.Array:
		return reflect.ArrayOf(t.Len(), elem)
	}
	return reflect.MapOf(t.Key(), elem)
}

func structWithoutNulls(t reflect.Type, within []reflect.Type) (reflect.Type, bool) {
	var fields []reflect.StructField
	changed := false
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			return t, !hasNull(t, map[reflect.Type]bool{}) // fields of its own are promoted
		}
		if !f.IsExported() {
			continue // encoding/json leaves it out, too
		}
		elem, ok := withoutNulls(f.Type, within)
		if !ok {
			return t, false
		}
		changed = changed || elem != f.Type
		fields = append(fields, reflect.StructField{Name: f.Name, Type: elem, Tag: f.Tag})
	}
	if !changed {
		return t, true
	}
	return reflect.StructOf(fields), true
}

// move copies a value to one of a type that differs by sql.Null and pointers alone.
func move(to, from reflect.Value) {
	switch {
	case to.Type() == from.Type():
		to.Set(from)
	case isNull(from.Type()):
		if from.FieldByName("Valid").Bool() {
			to.Set(reflect.New(to.Type().Elem()))
			move(to.Elem(), from.FieldByName("V"))
		}
	case isNull(to.Type()):
		if !from.IsNil() {
			to.FieldByName("Valid").SetBool(true)
			move(to.FieldByName("V"), from.Elem())
		}
	default:
		moveParts(to, from)
	}
}

func moveParts(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Struct:
		moveFields(to, from)
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
			move(to.Elem(), from.Elem())
		}
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		}
		fallthrough
	case reflect.Array:
		for i := range from.Len() {
			move(to.Index(i), from.Index(i))
		}
	case reflect.Map:
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeMapWithSize(to.Type(), from.Len()))
		for at := from.MapRange(); at.Next(); {
			v := reflect.New(to.Type().Elem()).Elem()
			move(v, at.Value())
			to.SetMapIndex(at.Key(), v)
		}
	}
}

// moveFields copies the fields that both have, by their names.
func moveFields(to, from reflect.Value) {
	for i := range from.NumField() {
		f := from.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		if v := to.FieldByName(f.Name); v.IsValid() {
			move(v, from.Field(i))
		}
	}
}
