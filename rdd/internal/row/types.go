package row

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"unsafe"
)

// nothingCodec is that of rows that take no memory: one byte, so that they are there.
var nothingCodec = rawCodec{
	Put: func(out []byte, _ unsafe.Pointer) []byte { return append(out, 0) },
	get: func(in []byte, _ unsafe.Pointer, _ *Arena) ([]byte, bool) {
		if len(in) == 0 || in[0] != 0 {
			return nil, false
		}
		return in[1:], true
	},
}

// notSerializable reports whether values of a type mean nothing outside the process that they
// are in: what locks, waits, or points to what a process has one of.
func notSerializable(t reflect.Type) bool {
	switch t.PkgPath() {
	case "sync", "sync/atomic", "internal/sync", "unique", "weak", "reflect", "runtime", "os", "context":
		return true
	}
	return false
}

var (
	marshalerType   = reflect.TypeFor[encoding.BinaryMarshaler]()
	unmarshalerType = reflect.TypeFor[encoding.BinaryUnmarshaler]()
)

// marshalsItself reports whether a type has MarshalBinary and UnmarshalBinary of its own.
// Those of an embedded field would be about that field alone.
func marshalsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || !p.Implements(marshalerType) ||
		!p.Implements(unmarshalerType) {
		return false
	}
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		if f := t.Field(i); f.Anonymous && (f.Type.Implements(marshalerType) ||
			reflect.PointerTo(f.Type).Implements(marshalerType)) {
			return false
		}
	}
	return true
}

// encodeFailure is what a codec panics with where a value cannot be written.
type encodeFailure struct{ err error }

// marshalCodec writes what MarshalBinary returns, its length before it.
func marshalCodec(t reflect.Type) rawCodec {
	return rawCodec{
		Put: func(out []byte, p unsafe.Pointer) []byte {
			raw, err := reflect.NewAt(t, p).Interface().(encoding.BinaryMarshaler).MarshalBinary()
			if err != nil {
				panic(encodeFailure{fmt.Errorf("%v: %w", t, err)})
			}
			return append(binary.AppendUvarint(out, uint64(len(raw))), raw...)
		},
		get: func(in []byte, p unsafe.Pointer, _ *Arena) ([]byte, bool) {
			n, rest, ok := lengthOf(in, 1)
			if !ok {
				return nil, false
			}
			err := reflect.NewAt(t, p).Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(slices.Clone(rest[:n]))
			return rest[n:], err == nil
		},
	}
}

// mapped writes the number of entries plus one, 0 being nil, and the entries in the order
// of their bytes.
func (d codecBuilder) mapped(t reflect.Type, at string) (rawCodec, error) {
	key, err := d.codec(t.Key(), at+"[key]")
	if err == nil {
		err = comparedByValue(t.Key(), at+"[key]")
	}
	if err == nil && hasTime(t.Key()) {
		err = fmt.Errorf("%s: a map tells one instant in two zones apart, and a row does not: use t.UnixNano() as "+
			"its key", at)
	}
	if err == nil && t.Key().Size() == 0 {
		err = fmt.Errorf("%s: a map whose keys take no memory has one entry at most, and cannot be part of a row", at)
	}
	if err != nil {
		return rawCodec{}, err
	}
	value, err := d.codec(t.Elem(), at+"[]")
	if err != nil {
		return rawCodec{}, err
	}
	return rawCodec{
		Put: func(out []byte, p unsafe.Pointer) []byte {
			return putMap(out, reflect.NewAt(t, p).Elem(), key, value)
		},
		get: func(in []byte, p unsafe.Pointer, a *Arena) ([]byte, bool) {
			return getMap(in, reflect.NewAt(t, p).Elem(), key, value, a)
		},
	}, nil
}

func putMap(out []byte, m reflect.Value, key, value rawCodec) []byte {
	if m.IsNil() {
		return append(out, 0)
	}
	var entries [][]byte
	for it := m.MapRange(); it.Next(); {
		k, v := reflect.New(m.Type().Key()), reflect.New(m.Type().Elem())
		k.Elem().SetIterKey(it)
		v.Elem().SetIterValue(it)
		entries = append(entries, value.Put(key.Put(nil, k.UnsafePointer()), v.UnsafePointer()))
	}
	slices.SortFunc(entries, bytes.Compare)
	out = binary.AppendUvarint(out, uint64(len(entries))+1)
	for _, e := range entries {
		out = append(out, e...)
	}
	return out
}

func getMap(in []byte, m reflect.Value, key, value rawCodec, a *Arena) (rest []byte, ok bool) {
	n, k := binary.Uvarint(in)
	if k <= 0 || n > math.MaxInt32 {
		return nil, false
	}
	in = in[k:]
	if n > uint64(len(in))+1 { // a key takes a byte at the least
		return nil, false
	}
	if m.SetZero(); n == 0 {
		return in, true
	}
	m.Set(reflect.MakeMapWithSize(m.Type(), min(int(n-1), len(in))))
	for range n - 1 {
		k, v := reflect.New(m.Type().Key()), reflect.New(m.Type().Elem())
		if in, ok = key.get(in, k.UnsafePointer(), a); !ok {
			return nil, false
		}
		if in, ok = value.get(in, v.UnsafePointer(), a); !ok {
			return nil, false
		}
		m.SetMapIndex(k.Elem(), v.Elem())
	}
	return in, true
}

// hasTime reports whether a time is part of a type, which a codec brings to UTC.
func hasTime(t reflect.Type) bool {
	return holds(t, func(t reflect.Type) bool { return t == timeType }, nil)
}

// RoundTrips reports whether what a codec reads is what was written in every respect: not so of times, whose
// zone is left out, and of types that encode themselves.
func RoundTrips(t reflect.Type) bool {
	return !holds(t, func(t reflect.Type) bool { return t == timeType || marshalsItself(t) }, nil)
}

// holds reports whether something is true of a type or of one that it is made of.
func holds(t reflect.Type, is func(reflect.Type) bool, within []reflect.Type) bool {
	if is(t) {
		return true
	}
	if slices.Contains(within, t) {
		return false
	}
	within = append(slices.Clip(within), t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return holds(t.Elem(), is, within)
	case reflect.Map:
		return holds(t.Key(), is, within) || holds(t.Elem(), is, within)
	case reflect.Struct:
		for i := range t.NumField() {
			if holds(t.Field(i).Type, is, within) {
				return true
			}
		}
	}
	return false
}

// Refers reports whether values of a type hold pointers to other memory.
func Refers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if Refers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Array:
		return Refers(t.Elem())
	}
	return t.Kind() != reflect.Bool && !isNumber(t.Kind())
}
