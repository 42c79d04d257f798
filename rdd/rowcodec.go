package rdd

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"
)

// rowCodec writes rows of one type as bytes and reads them again. It is
// derived from the type once, when the plan is built; a row is then written
// field by field from its memory, without reflection.
//
// Numbers have fixed width, the least significant byte first; strings, byte
// slices and slices their length before them, a pointer one byte that says
// whether there is something (a null is a nil pointer), a time its seconds and
// nanoseconds since 1970 in UTC. Equal rows have equal bytes, except that all
// NaNs differ by their bits only.
type rowCodec struct {
	put func(out []byte, p unsafe.Pointer) []byte
	get func(in []byte, p unsafe.Pointer) (rest []byte, ok bool)
}

// codec is a rowCodec for T.
type codec[T any] struct{ rowCodec }

// codecOf derives a codec; what cannot be encoded is an error that names the
// field.
func codecOf[T any]() (codec[T], error) {
	c, err := deriveCodec(reflect.TypeFor[T](), reflect.TypeFor[T]().String(), nil)
	return codec[T]{c}, err
}

// append writes a row.
func (c codec[T]) append(out []byte, row *T) []byte { return c.put(out, unsafe.Pointer(row)) }

// parse reads a row from the beginning of in.
func (c codec[T]) parse(in []byte, row *T) (rest []byte, err error) {
	rest, ok := c.get(in, unsafe.Pointer(row))
	if !ok {
		return nil, fmt.Errorf("%d bytes are no %s", len(in), typeName[T]())
	}
	return rest, nil
}

var timeType = reflect.TypeFor[time.Time]()

// deriveCodec makes the codec of a type; at says where it stands in the row,
// and within are the types around it.
func deriveCodec(t reflect.Type, at string, within []reflect.Type) (rowCodec, error) {
	for _, w := range within {
		if w == t {
			return rowCodec{}, fmt.Errorf("%s: a %v that contains itself cannot be a row", at, t)
		}
	}
	if t == timeType {
		return timeCodec, nil
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Uint8:
		return fixed1, nil
	case reflect.Int16, reflect.Uint16:
		return fixed2, nil
	case reflect.Int32, reflect.Uint32, reflect.Float32:
		return fixed4, nil
	case reflect.Int64, reflect.Uint64, reflect.Float64, reflect.Int, reflect.Uint:
		return fixed8, nil
	case reflect.String:
		return stringCodec, nil
	case reflect.Slice:
		return sliceCodec(t, at, append(within, t))
	case reflect.Array:
		return arrayCodec(t, at, append(within, t))
	case reflect.Pointer:
		return pointerCodec(t, at, append(within, t))
	case reflect.Struct:
		return structCodec(t, at, append(within, t))
	}
	return rowCodec{}, fmt.Errorf("%s: a %v cannot be part of a row", at, t)
}

// The codecs of fixed width copy the memory of a number, which lies in the
// order of the encoding on every machine that the engine runs on.
var (
	fixed1 = fixedCodec[uint8](func(out []byte, v uint8) []byte { return append(out, v) }, func(in []byte) uint8 { return in[0] })
	fixed2 = fixedCodec[uint16](binary.LittleEndian.AppendUint16, binary.LittleEndian.Uint16)
	fixed4 = fixedCodec[uint32](binary.LittleEndian.AppendUint32, binary.LittleEndian.Uint32)
	fixed8 = fixedCodec[uint64](binary.LittleEndian.AppendUint64, binary.LittleEndian.Uint64)
)

func fixedCodec[N uint8 | uint16 | uint32 | uint64](put func([]byte, N) []byte, get func([]byte) N) rowCodec {
	size := int(unsafe.Sizeof(N(0)))
	return rowCodec{
		put: func(out []byte, p unsafe.Pointer) []byte { return put(out, *(*N)(p)) },
		get: func(in []byte, p unsafe.Pointer) ([]byte, bool) {
			if len(in) < size {
				return nil, false
			}
			*(*N)(p) = get(in)
			return in[size:], true
		},
	}
}

var timeCodec = rowCodec{
	put: func(out []byte, p unsafe.Pointer) []byte {
		t := (*time.Time)(p)
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(out, uint64(t.Unix())), uint32(t.Nanosecond()))
	},
	get: func(in []byte, p unsafe.Pointer) ([]byte, bool) {
		if len(in) < 12 {
			return nil, false
		}
		*(*time.Time)(p) = time.Unix(int64(binary.LittleEndian.Uint64(in)), int64(binary.LittleEndian.Uint32(in[8:]))).UTC()
		return in[12:], true
	},
}

// lengthOf reads a length that the rest can hold; every element takes at least
// so many bytes.
func lengthOf(in []byte, least int) (n int, rest []byte, ok bool) {
	v, k := binary.Uvarint(in)
	if k <= 0 || v > math.MaxInt32 {
		return 0, nil, false
	}
	rest = in[k:]
	return int(v), rest, int(v)*max(least, 0) <= len(rest)
}

var stringCodec = rowCodec{
	put: func(out []byte, p unsafe.Pointer) []byte {
		s := *(*string)(p)
		return append(binary.AppendUvarint(out, uint64(len(s))), s...)
	},
	get: func(in []byte, p unsafe.Pointer) ([]byte, bool) {
		n, rest, ok := lengthOf(in, 1)
		if !ok {
			return nil, false
		}
		*(*string)(p) = string(rest[:n])
		return rest[n:], true
	},
}

// sliceHeader is how a slice lies in memory.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// sliceCodec writes the length plus one, 0 being nil, and the elements.
func sliceCodec(t reflect.Type, at string, within []reflect.Type) (rowCodec, error) {
	elem, err := deriveCodec(t.Elem(), at+"[]", within)
	if err != nil {
		return rowCodec{}, err
	}
	size := t.Elem().Size()
	if size == 0 {
		return rowCodec{}, fmt.Errorf("%s: a slice of %v, which takes no memory, cannot be part of a row", at, t.Elem())
	}
	least, all := 1, eachElement(elem, size)
	if littleEndian && isNumber(t.Elem().Kind()) {
		least, all = int(size), elementsAtOnce(size)
	}
	return rowCodec{
		put: func(out []byte, p unsafe.Pointer) []byte {
			h := (*sliceHeader)(p)
			if h.data == nil {
				return append(out, 0)
			}
			return all.put(binary.AppendUvarint(out, uint64(h.len)+1), h.data, h.len)
		},
		get: func(in []byte, p unsafe.Pointer) ([]byte, bool) {
			v, k := binary.Uvarint(in)
			if k <= 0 || v > uint64(len(in)-k)/uint64(least)+1 {
				return nil, false
			}
			if v == 0 {
				reflect.NewAt(t, p).Elem().SetZero()
				return in[k:], true
			}
			s := reflect.MakeSlice(t, int(v-1), int(v-1))
			rest, ok := all.get(in[k:], s.UnsafePointer(), int(v-1))
			reflect.NewAt(t, p).Elem().Set(s)
			return rest, ok
		},
	}, nil
}

// elements writes and reads the elements of a slice.
type elements struct {
	put func(out []byte, first unsafe.Pointer, n int) []byte
	get func(in []byte, first unsafe.Pointer, n int) (rest []byte, ok bool)
}

func eachElement(elem rowCodec, size uintptr) elements {
	return elements{
		put: func(out []byte, first unsafe.Pointer, n int) []byte {
			for i := range n {
				out = elem.put(out, unsafe.Add(first, uintptr(i)*size))
			}
			return out
		},
		get: func(in []byte, first unsafe.Pointer, n int) (rest []byte, ok bool) {
			ok = true
			for i := 0; i < n && ok; i++ {
				in, ok = elem.get(in, unsafe.Add(first, uintptr(i)*size))
			}
			return in, ok
		},
	}
}

// elementsAtOnce copies numbers as they lie.
func elementsAtOnce(size uintptr) elements {
	return elements{
		put: func(out []byte, first unsafe.Pointer, n int) []byte {
			return append(out, unsafe.Slice((*byte)(first), uintptr(n)*size)...)
		},
		get: func(in []byte, first unsafe.Pointer, n int) ([]byte, bool) {
			total := n * int(size)
			if len(in) < total {
				return nil, false
			}
			copy(unsafe.Slice((*byte)(first), total), in)
			return in[total:], true
		},
	}
}

func isNumber(k reflect.Kind) bool {
	return k >= reflect.Int && k <= reflect.Float64 && k != reflect.Uintptr
}

func arrayCodec(t reflect.Type, at string, within []reflect.Type) (rowCodec, error) {
	elem, err := deriveCodec(t.Elem(), at+"[]", within)
	size, n := t.Elem().Size(), t.Len()
	return rowCodec{
		put: func(out []byte, p unsafe.Pointer) []byte {
			for i := range n {
				out = elem.put(out, unsafe.Add(p, uintptr(i)*size))
			}
			return out
		},
		get: func(in []byte, p unsafe.Pointer) (rest []byte, ok bool) {
			for i := range n {
				if in, ok = elem.get(in, unsafe.Add(p, uintptr(i)*size)); !ok {
					return nil, false
				}
			}
			return in, true
		},
	}, err
}

func pointerCodec(t reflect.Type, at string, within []reflect.Type) (rowCodec, error) {
	elem, err := deriveCodec(t.Elem(), at, within)
	return rowCodec{
		put: func(out []byte, p unsafe.Pointer) []byte {
			to := *(*unsafe.Pointer)(p)
			if to == nil {
				return append(out, 0)
			}
			return elem.put(append(out, 1), to)
		},
		get: func(in []byte, p unsafe.Pointer) ([]byte, bool) {
			if len(in) == 0 || in[0] > 1 {
				return nil, false
			}
			if in[0] == 0 {
				*(*unsafe.Pointer)(p) = nil
				return in[1:], true
			}
			to := reflect.New(t.Elem()).UnsafePointer()
			*(*unsafe.Pointer)(p) = to
			return elem.get(in[1:], to)
		},
	}, err
}

// field is a field of a struct, by its place in memory.
type field struct {
	rowCodec
	offset uintptr
}

func structCodec(t reflect.Type, at string, within []reflect.Type) (rowCodec, error) {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name := at + "." + f.Name
		if !f.IsExported() && f.Name != "_" {
			return rowCodec{}, fmt.Errorf("%s: a field that is not exported would be lost", name)
		}
		c, err := deriveCodec(f.Type, name, within)
		if err != nil {
			return rowCodec{}, err
		}
		fields = append(fields, field{c, f.Offset})
	}
	return rowCodec{
		put: func(out []byte, p unsafe.Pointer) []byte {
			for i := range fields {
				out = fields[i].put(out, unsafe.Add(p, fields[i].offset))
			}
			return out
		},
		get: func(in []byte, p unsafe.Pointer) (rest []byte, ok bool) {
			for i := range fields {
				if in, ok = fields[i].get(in, unsafe.Add(p, fields[i].offset)); !ok {
					return nil, false
				}
			}
			return in, true
		},
	}, nil
}
