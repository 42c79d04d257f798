package row

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/volley-engine/volley/internal/fault"
)

// rawCodec writes rows of one type as bytes and reads them again. It is derived from the type once, when the
// plan is built; a row is then written field by field from its memory, exported or not, without reflection.
//
// Numbers have fixed width, least significant byte first. Strings, byte slices, slices and maps have their
// length first; the entries of a map are in the order of their bytes. A pointer is one byte that reports
// whether it is set (a null is a nil pointer), a time its seconds and nanoseconds since 1970 in UTC. Types
// that cannot be written so, and that have MarshalBinary and UnmarshalBinary, are written by these. Zeros and
// NaNs keep their bits, times their instant only.
type rawCodec struct {
	Put func(out []byte, p unsafe.Pointer) []byte
	get func(in []byte, p unsafe.Pointer, a *Arena) (rest []byte, ok bool)
	// Flat is the size of rows whose encoding is their memory; else 0.
	Flat uintptr
}

// Codec writes rows of type T as bytes and reads them again.
type Codec[T any] struct {
	rawCodec
	same func(a, b *T) bool // of keys: see keyCodecOf; nil where == tells
}

// CodecOf returns the codec of T; what cannot be encoded is an error that names the field.
func CodecOf[T any]() (Codec[T], error) {
	c, err := rawCodecOf(reflect.TypeFor[T]())
	return Codec[T]{rawCodec: c}, err
}

// rawCodecOf returns the codec of a type.
func rawCodecOf(t reflect.Type) (rawCodec, error) {
	c, err := codecBuilder{}.codec(t, nameOf(t))
	if err == nil && t.Size() == 0 {
		return nothingCodec, nil
	}
	return c, err
}

// Append appends the encoding of a row to out.
func (c Codec[T]) Append(out []byte, row *T) []byte {
	if c.Flat > 0 {
		return append(out, unsafe.Slice((*byte)(unsafe.Pointer(row)), c.Flat)...)
	}
	return c.Put(out, unsafe.Pointer(row))
}

// Parse reads a row from the beginning of in, which may be written over later, and returns what follows it.
func (c Codec[T]) Parse(in []byte, row *T, a *Arena) (rest []byte, err error) {
	rest, ok := c.get(in, unsafe.Pointer(row), a)
	if !ok {
		return nil, fmt.Errorf("%d bytes are no %s", len(in), TypeName[T]())
	}
	return rest, nil
}

// ParseAll appends all rows that are encoded in a block.
func (c Codec[T]) ParseAll(in []byte, rows []T, a *Arena) ([]T, error) {
	if c.Flat > 0 {
		n := len(in) / int(c.Flat)
		if n*int(c.Flat) != len(in) {
			return rows, fmt.Errorf("%d bytes are no rows of %s", len(in), TypeName[T]())
		}
		at := len(rows)
		rows = slices.Grow(rows, n)[:at+n]
		copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(rows[at:]))), len(in)), in)
		return rows, nil
	}
	for len(in) > 0 {
		var row T
		rest, err := c.Parse(in, &row, a)
		if err != nil {
			return rows, err
		}
		if len(rest) == len(in) {
			return rows, fmt.Errorf("a %s takes no bytes", TypeName[T]())
		}
		rows, in = append(rows, row), rest
	}
	return rows, nil
}

var timeType = reflect.TypeFor[time.Time]()

// codecBuilder derives codecs. That of a key has one encoding for all values that are one key. within are the
// types that enclose the present one.
type codecBuilder struct {
	key    bool
	within []reflect.Type
}

func (d codecBuilder) inside(t reflect.Type) codecBuilder {
	return codecBuilder{key: d.key, within: append(slices.Clip(d.within), t)}
}

// codec returns the codec of a type; at is its path in the row, for errors.
func (d codecBuilder) codec(t reflect.Type, at string) (rawCodec, error) {
	if slices.Contains(d.within, t) {
		return rawCodec{}, fmt.Errorf("%s: a %v that contains itself cannot be a row", at, t)
	}
	if t == timeType {
		return timeCodec, nil
	}
	c, err := d.byMemory(t, at)
	if err != nil && marshalsItself(t) && (!d.key || comparedAsEncoded(t)) {
		return marshalCodec(t), nil
	}
	return c, err
}

// byMemory returns the codec of a type that is written as it is in memory.
func (d codecBuilder) byMemory(t reflect.Type, at string) (rawCodec, error) {
	if notSerializable(t) {
		return rawCodec{}, fmt.Errorf("%s: a %v is of this process alone, and cannot be part of a row", at, t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return rawCodec{Put: fixed1.Put, get: getBool}, nil
	case reflect.Int8, reflect.Uint8:
		return fixed1, nil
	case reflect.Int16, reflect.Uint16:
		return fixed2, nil
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return d.float(t.Kind()), nil
	case reflect.Int32, reflect.Uint32:
		return fixed4, nil
	case reflect.Int64, reflect.Uint64, reflect.Int, reflect.Uint:
		return fixed8, nil
	case reflect.String:
		return stringCodec, nil
	case reflect.Slice:
		return d.inside(t).slice(t, at)
	case reflect.Array:
		return d.inside(t).array(t, at)
	case reflect.Pointer:
		return d.inside(t).pointer(t, at)
	case reflect.Map:
		return d.inside(t).mapped(t, at)
	case reflect.Struct:
		return d.inside(t).structure(t, at)
	}
	return rawCodec{}, fmt.Errorf("%s: a %v cannot be part of a row", at, t)
}

// flatIf returns size if a condition holds, else 0.
func flatIf(holds bool, size uintptr) uintptr {
	if holds {
		return size
	}
	return 0
}

// The codecs of fixed width copy the memory of a number, which lies in the
// order of the encoding on every machine that the engine runs on.
var (
	fixed1 = fixedCodec[uint8](func(out []byte, v uint8) []byte { return append(out, v) },
		func(in []byte) uint8 { return in[0] })
	fixed2 = fixedCodec[uint16](binary.LittleEndian.AppendUint16, binary.LittleEndian.Uint16)
	fixed4 = fixedCodec[uint32](binary.LittleEndian.AppendUint32, binary.LittleEndian.Uint32)
	fixed8 = fixedCodec[uint64](binary.LittleEndian.AppendUint64, binary.LittleEndian.Uint64)
)

func fixedCodec[N uint8 | uint16 | uint32 | uint64](put func([]byte, N) []byte, get func([]byte) N) rawCodec {
	size := int(unsafe.Sizeof(N(0)))
	return rawCodec{Flat: flatIf(littleEndian, uintptr(size)),
		Put: func(out []byte, p unsafe.Pointer) []byte { return put(out, *(*N)(p)) },
		get: func(in []byte, p unsafe.Pointer, _ *Arena) ([]byte, bool) {
			if len(in) < size {
				return nil, false
			}
			*(*N)(p) = get(in)
			return in[size:], true
		},
	}
}

// getBool reads a byte that is 0 or 1.
func getBool(in []byte, p unsafe.Pointer, a *Arena) ([]byte, bool) {
	if len(in) == 0 || in[0] > 1 {
		return nil, false
	}
	return fixed1.get(in, p, a)
}

var timeCodec = rawCodec{
	Put: func(out []byte, p unsafe.Pointer) []byte {
		t := (*time.Time)(p)
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(out, uint64(t.Unix())),
			uint32(t.Nanosecond()))
	},
	get: func(in []byte, p unsafe.Pointer, _ *Arena) ([]byte, bool) {
		if len(in) < 12 {
			return nil, false
		}
		*(*time.Time)(p) = time.Unix(int64(binary.LittleEndian.Uint64(in)),
			int64(binary.LittleEndian.Uint32(in[8:]))).UTC()
		return in[12:], true
	},
}

// lengthOf reads a length that the rest can hold; every element takes at least
// the given number of bytes.
func lengthOf(in []byte, least int) (n int, rest []byte, ok bool) {
	v, k := binary.Uvarint(in)
	if k <= 0 || v > math.MaxInt32 {
		return 0, nil, false
	}
	rest = in[k:]
	return int(v), rest, int(v)*max(least, 0) <= len(rest)
}

var stringCodec = rawCodec{
	Put: func(out []byte, p unsafe.Pointer) []byte {
		s := *(*string)(p)
		return append(binary.AppendUvarint(out, uint64(len(s))), s...)
	},
	get: func(in []byte, p unsafe.Pointer, a *Arena) ([]byte, bool) {
		n, rest, ok := lengthOf(in, 1)
		if !ok {
			return nil, false
		}
		*(*string)(p) = a.Text(rest[:n])
		return rest[n:], true
	},
}

// TextSize returns how many bytes the encoding of a text of n bytes has.
func TextSize(n int) int { return (bits.Len(uint(n|1))+6)/7 + n }

// sliceHeader is how a slice lies in memory.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// slice writes the length plus one, 0 being nil, and the elements.
func (d codecBuilder) slice(t reflect.Type, at string) (rawCodec, error) {
	elem, err := d.codec(t.Elem(), at+"[]")
	if err != nil {
		return rawCodec{}, err
	}
	size := t.Elem().Size()
	least, all := 1, eachElement(elem, size)
	room := func(n int, _ *Arena) unsafe.Pointer { return reflect.MakeSlice(t, n, n).UnsafePointer() }
	if littleEndian && isNumber(t.Elem().Kind()) {
		least, all = int(size), elementsAtOnce(size)
		room = func(n int, a *Arena) unsafe.Pointer { return a.numbers(n * int(size)) }
	}
	return rawCodec{
		Put: func(out []byte, p unsafe.Pointer) []byte {
			h := (*sliceHeader)(p)
			if h.data == nil {
				return append(out, 0)
			}
			return all.put(binary.AppendUvarint(out, uint64(h.len)+1), h.data, h.len)
		},
		get: func(in []byte, p unsafe.Pointer, a *Arena) ([]byte, bool) {
			v, k := binary.Uvarint(in)
			if k <= 0 || v > math.MaxInt32 || size > 0 && v > uint64(len(in)-k)/uint64(least)+1 {
				return nil, false
			}
			if v == 0 {
				*(*sliceHeader)(p) = sliceHeader{}
				return in[k:], true
			}
			n := int(v - 1)
			first := room(n, a)
			rest, ok := all.get(in[k:], first, n, a)
			*(*sliceHeader)(p) = sliceHeader{first, n, n}
			return rest, ok
		},
	}, nil
}

// elements writes and reads the elements of a slice.
type elements struct {
	put func(out []byte, first unsafe.Pointer, n int) []byte
	get func(in []byte, first unsafe.Pointer, n int, a *Arena) (rest []byte, ok bool)
}

func eachElement(elem rawCodec, size uintptr) elements {
	return elements{
		put: func(out []byte, first unsafe.Pointer, n int) []byte {
			for i := range n {
				out = elem.Put(out, unsafe.Add(first, uintptr(i)*size))
			}
			return out
		},
		get: func(in []byte, first unsafe.Pointer, n int, a *Arena) (rest []byte, ok bool) {
			ok = true
			for i := 0; i < n && ok; i++ {
				in, ok = elem.get(in, unsafe.Add(first, uintptr(i)*size), a)
			}
			return in, ok
		},
	}
}

// elementsAtOnce copies numbers as they are.
func elementsAtOnce(size uintptr) elements {
	return elements{
		put: func(out []byte, first unsafe.Pointer, n int) []byte {
			return append(out, unsafe.Slice((*byte)(first), uintptr(n)*size)...)
		},
		get: func(in []byte, first unsafe.Pointer, n int, _ *Arena) ([]byte, bool) {
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

func (d codecBuilder) array(t reflect.Type, at string) (rawCodec, error) {
	elem, err := d.codec(t.Elem(), at+"[]")
	size, n := t.Elem().Size(), t.Len()
	return rawCodec{Flat: flatIf(elem.Flat > 0, t.Size()),
		Put: func(out []byte, p unsafe.Pointer) []byte {
			for i := range n {
				out = elem.Put(out, unsafe.Add(p, uintptr(i)*size))
			}
			return out
		},
		get: func(in []byte, p unsafe.Pointer, a *Arena) (rest []byte, ok bool) {
			for i := range n {
				if in, ok = elem.get(in, unsafe.Add(p, uintptr(i)*size), a); !ok {
					return nil, false
				}
			}
			return in, true
		},
	}, err
}

func (d codecBuilder) pointer(t reflect.Type, at string) (rawCodec, error) {
	elem, err := d.codec(t.Elem(), at)
	return rawCodec{
		Put: func(out []byte, p unsafe.Pointer) []byte {
			to := *(*unsafe.Pointer)(p)
			if to == nil {
				return append(out, 0)
			}
			return elem.Put(append(out, 1), to)
		},
		get: func(in []byte, p unsafe.Pointer, a *Arena) ([]byte, bool) {
			if len(in) == 0 || in[0] > 1 {
				return nil, false
			}
			if in[0] == 0 {
				*(*unsafe.Pointer)(p) = nil
				return in[1:], true
			}
			to := reflect.New(t.Elem()).UnsafePointer()
			*(*unsafe.Pointer)(p) = to
			return elem.get(in[1:], to, a)
		},
	}, err
}

// field is a field of a struct, by its place in memory.
type field struct {
	rawCodec
	offset uintptr
}

// joinFlat joins neighbouring fields that are encoded as they are.
func joinFlat(fields []field) (out []field) {
	for _, f := range fields {
		if n := len(out); n > 0 && f.Flat > 0 && out[n-1].Flat > 0 && out[n-1].offset+out[n-1].Flat == f.offset {
			out[n-1].Flat += f.Flat
			continue
		}
		out = append(out, f)
	}
	return out
}

func (d codecBuilder) structure(t reflect.Type, at string) (rawCodec, error) {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if d.key && f.Name == "_" {
			continue // == does not look at it
		}
		c, err := d.codec(f.Type, at+"."+f.Name)
		if err != nil {
			return rawCodec{}, err
		}
		fields = append(fields, field{c, f.Offset})
	}
	return fieldsCodec(fields, t.Size()), nil
}

// fieldsCodec writes the fields of a struct of some size.
func fieldsCodec(fields []field, size uintptr) rawCodec {
	sum := uintptr(0)
	packed := len(fields) > 0 // without a gap between fields
	for _, f := range fields {
		packed = packed && f.Flat > 0
		sum += f.Flat
	}
	fields = joinFlat(fields)
	return rawCodec{Flat: flatIf(packed && sum == size, sum),
		Put: func(out []byte, p unsafe.Pointer) []byte {
			for i := range fields {
				if f := &fields[i]; f.Flat > 0 {
					out = append(out, unsafe.Slice((*byte)(unsafe.Add(p, f.offset)), f.Flat)...)
				} else {
					out = f.Put(out, unsafe.Add(p, f.offset))
				}
			}
			return out
		},
		get: func(in []byte, p unsafe.Pointer, a *Arena) (rest []byte, ok bool) {
			for i := range fields {
				f := &fields[i]
				if f.Flat > 0 && len(in) >= int(f.Flat) {
					copy(unsafe.Slice((*byte)(unsafe.Add(p, f.offset)), f.Flat), in)
					in = in[f.Flat:]
				} else if f.Flat > 0 {
					return nil, false
				} else if in, ok = f.get(in, unsafe.Add(p, f.offset), a); !ok {
					return nil, false
				}
			}
			return in, true
		},
	}
}

// Corrupt returns err, if there is one, as a failure to read a shuffled row.
func Corrupt(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Corrupt, "read", "a shuffled row", err)
}
