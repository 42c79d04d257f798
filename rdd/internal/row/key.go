package row

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"unsafe"
)

// The law of keys: two are one key where Go's == says so; NaN is one key, too, and times are
// one key where they are the same instant, in whatever zone. A key's codec writes
// all that are one key as the same bytes: zeros as the positive one, every NaN as one,
// times in UTC, fields named _ not at all. Hashes are of these bytes, or agree
// with them, and what is read back is the value that they stand for.

// KeyCodecOf returns the codec of K as a key: all values that are one key have the same bytes.
func KeyCodecOf[K comparable]() (Codec[K], error) {
	t := reflect.TypeFor[K]()
	c, err := codecBuilder{key: true}.codec(t, nameOf(t))
	if err == nil {
		err = comparedByValue(t, nameOf(t))
	}
	if err == nil && t.Size() == 0 {
		c = nothingCodec
	}
	out := Codec[K]{rawCodec: c}
	if !comparesPlainly(t) {
		out.same = func(a, b *K) bool { return bytes.Equal(out.Append(nil, a), out.Append(nil, b)) }
	}
	return out, err
}

// Equal reports whether two keys that are not equal by == are one key all the same, such as two NaNs.
func (c *Codec[T]) Equal(a, b *T) bool { return c.same != nil && c.same(a, b) }

// comparesPlainly reports whether == is the law for a type, and all its equal values
// have equal memory or are told apart by no codec.
func comparesPlainly(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Name == "_" || t == timeType || !comparesPlainly(f.Type) {
				return false
			}
		}
	case reflect.Array:
		return comparesPlainly(t.Elem())
	}
	return true
}

// comparedAsEncoded reports whether values of a type that encodes itself are equal where
// their bytes are.
func comparedAsEncoded(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[netip.Addr](), reflect.TypeFor[netip.AddrPort](), reflect.TypeFor[netip.Prefix]():
		return true
	}
	return false
}

// comparedByValue returns an error where keys of a type would be compared by address.
func comparedByValue(t reflect.Type, at string) error {
	if comparedAsEncoded(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return fmt.Errorf("%s: pointers are compared by where they point; use an sql.Null", at)
	case reflect.Struct:
		for i := 0; t != timeType && i < t.NumField(); i++ {
			if err := comparedByValue(t.Field(i).Type, at+"."+t.Field(i).Name); err != nil {
				return err
			}
		}
	case reflect.Array:
		return comparedByValue(t.Elem(), at+"[]")
	}
	return nil
}

// float returns the codec of floating-point numbers, real or complex.
func (d codecBuilder) float(kind reflect.Kind) rawCodec {
	one := map[reflect.Kind]rawCodec{reflect.Float32: fixed4, reflect.Complex64: fixed4}
	half, ok := one[kind]
	if !ok {
		half = fixed8
	}
	if d.key {
		half.Flat, half.Put = 0, putKey64
		if kind == reflect.Float32 || kind == reflect.Complex64 {
			half.Put = putKey32
		}
	}
	switch kind {
	case reflect.Complex64:
		return fieldsCodec([]field{{half, 0}, {half, 4}}, 8)
	case reflect.Complex128:
		return fieldsCodec([]field{{half, 0}, {half, 8}}, 16)
	}
	return half
}

// oneNaN is the NaN that stands for all of them in keys.
var oneNaN = math.NaN()

// canonical returns the number that stands for all that are one key with x.
func canonical(x float64) float64 {
	if x != x {
		return oneNaN
	}
	return x + 0 // −0 is 0
}

func putKey64(out []byte, p unsafe.Pointer) []byte {
	return binary.LittleEndian.AppendUint64(out, math.Float64bits(canonical(*(*float64)(p))))
}

func putKey32(out []byte, p unsafe.Pointer) []byte {
	return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(canonical(float64(*(*float32)(p))))))
}

// PairCodecOf returns the codec of pairs whose keys are written as keys.
func PairCodecOf[K comparable, V any](key Codec[K]) (Codec[Pair[K, V]], error) {
	var p Pair[K, V]
	t := reflect.TypeFor[V]()
	value, err := codecBuilder{}.codec(t, nameOf(t))
	fields := []field{{key.rawCodec, unsafe.Offsetof(p.Key)}, {value, unsafe.Offsetof(p.Value)}}
	return Codec[Pair[K, V]]{rawCodec: fieldsCodec(fields, unsafe.Sizeof(p))}, err
}
