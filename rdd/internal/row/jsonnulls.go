package row

import (
	"encoding"
	"encoding/json"
	"reflect"
)

// JSON encodes and decodes rows as JSON values. An sql.Null, which encoding/json writes as an object of its
// fields, is its value or null.
type JSON[T any] struct {
	plain reflect.Type // T with pointers in place of sql.Null; nil where it has none
}

// JSONOf returns how rows of type T are written as JSON.
func JSONOf[T any]() JSON[T] {
	t := reflect.TypeFor[T]()
	if plain, ok := withoutNulls(t, nil); ok && plain != t {
		return JSON[T]{plain}
	}
	return JSON[T]{}
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
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// withoutNulls returns a type with pointers in place of each sql.Null in it; false where such a type cannot be
// made: of structs that contain themselves, or that embed others.
func withoutNulls(t reflect.Type, within []reflect.Type) (reflect.Type, bool) {
	for _, w := range within {
		if w == t {
			return t, false
		}
	}
	within = append(within, t)
	own := reflect.PointerTo(t).Implements(jsonMarshaler) || reflect.PointerTo(t).Implements(textMarshaler)
	switch {
	case own:
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
	changed, embeds := false, false
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue // encoding/json leaves it out, too
		}
		elem, ok := withoutNulls(f.Type, within)
		if !ok {
			return t, false
		}
		changed, embeds = changed || elem != f.Type, embeds || f.Anonymous
		fields = append(fields, reflect.StructField{Name: f.Name, Type: elem, Tag: f.Tag})
	}
	if !changed {
		return t, true
	}
	return reflect.StructOf(fields), !embeds
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
