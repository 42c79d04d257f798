package row

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// The state of a loop is kept with what its type looks like: rows have no names in them, and a
// program whose type has changed since must not take one field for another.

// shapeOf describes a type: the kinds of all that it is made of, in order, and the names
// of fields.
func shapeOf(t reflect.Type, within []reflect.Type) string {
	for _, w := range within {
		if w == t {
			return "^" + nameOf(t)
		}
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return t.Kind().String() + " of " + shapeOf(t.Elem(), within)
	case reflect.Array:
		return fmt.Sprint("array ", t.Len(), " of ", shapeOf(t.Elem(), within))
	case reflect.Map:
		return "map from " + shapeOf(t.Key(), within) + " to " + shapeOf(t.Elem(), within)
	case reflect.Struct:
		var b strings.Builder
		b.WriteString("{")
		for i := range t.NumField() {
			fmt.Fprintf(&b, "%s %s;", t.Field(i).Name, shapeOf(t.Field(i).Type, within))
		}
		return b.String() + "}"
	}
	return t.Kind().String()
}

// SealState returns an encoded state with a hash of the shape of its type before it.
func SealState[T any](raw []byte) []byte {
	sum := xxhash.Sum64String(shapeOf(reflect.TypeFor[T](), nil))
	return append(binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(raw)), sum), raw...)
}

// OpenState decodes what SealState returned; a state of another shape is an error.
func OpenState[T any](raw []byte, state *T) error {
	if len(raw) < 8 || binary.LittleEndian.Uint64(raw) != xxhash.Sum64String(shapeOf(reflect.TypeFor[T](), nil)) {
		return fmt.Errorf("it is not that of a %v as this program has it", reflect.TypeFor[T]())
	}
	return Decode(raw[8:], state)
}
