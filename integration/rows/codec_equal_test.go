package rows

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"time"
	"unsafe"
)

// sameValue reports whether two values are the same one, all the way down: floats by
// their bits, but for NaN; times by the instant; a nil slice or map is no empty one;
// fields that are not exported count like others.
func sameValue[T any](a, b T) bool {
	return sameAt(reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem(), bitForBit)
}

// sameKey reports whether two keys are equal: as Go's == has it, but a NaN equals a NaN
// and a time the same instant in any zone.
func sameKey[K comparable](a, b K) bool {
	return sameAt(reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem(), asKeysAre)
}

// How floats are compared.
const (
	bitForBit = false
	asKeysAre = true
)

func sameAt(a, b reflect.Value, keys bool) bool {
	if a.Type() != b.Type() {
		return false
	}
	a, b = reached(a), reached(b)
	if same, known := sameSpecial(a.Interface(), b.Interface()); known {
		return same
	}
	switch a.Kind() {
	case reflect.Float32, reflect.Float64:
		return sameFloat(a.Float(), b.Float(), keys)
	case reflect.Complex64, reflect.Complex128:
		x, y := a.Complex(), b.Complex()
		return sameFloat(real(x), real(y), keys) && sameFloat(imag(x), imag(y), keys)
	case reflect.Array, reflect.Slice:
		return sameNil(a, b) && sameElements(a, b, keys)
	case reflect.Struct:
		return sameFields(a, b, keys)
	case reflect.Map:
		return sameNil(a, b) && sameEntries(a, b)
	case reflect.Pointer, reflect.Interface:
		return samePointed(a, b, keys)
	}
	return a.Equal(b)
}

// sameSpecial are types whose memory does not report whether they are the same.
func sameSpecial(a, b any) (same, known bool) {
	switch x := a.(type) {
	case time.Time:
		y, ok := b.(time.Time)
		return ok && x.Equal(y), true
	case big.Int:
		y, ok := b.(big.Int)
		return ok && x.Cmp(&y) == 0, true
	case big.Rat:
		y, ok := b.(big.Rat)
		return ok && x.Cmp(&y) == 0, true
	}
	return false, false
}

func sameFloat(x, y float64, keys bool) bool {
	return math.Float64bits(x) == math.Float64bits(y) || x != x && y != y || keys && x == y
}

// sameNil reports whether both are nil or neither is, of what can be.
func sameNil(a, b reflect.Value) bool {
	return a.Kind() == reflect.Array || a.IsNil() == b.IsNil()
}

func sameElements(a, b reflect.Value, keys bool) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !sameAt(a.Index(i), b.Index(i), keys) {
			return false
		}
	}
	return true
}

func sameFields(a, b reflect.Value, keys bool) bool {
	for i := range a.NumField() {
		if a.Type().Field(i).Name != "_" && !sameAt(a.Field(i), b.Field(i), keys) {
			return false
		}
	}
	return true
}

// sameEntries finds each entry of one map a partner in the other.
func sameEntries(a, b reflect.Value) bool {
	left := b.MapKeys()
	for _, k := range a.MapKeys() {
		at := -1
		for i, other := range left {
			if sameAt(k, other, asKeysAre) {
				at = i
			}
		}
		if at < 0 || k.Equal(k) && !sameAt(a.MapIndex(k), b.MapIndex(left[at]), bitForBit) {
			return false
		}
		left = append(left[:at], left[at+1:]...)
	}
	return len(left) == 0
}

func samePointed(a, b reflect.Value, keys bool) bool {
	if a.IsNil() || b.IsNil() {
		return a.IsNil() && b.IsNil()
	}
	if keys && a.Kind() == reflect.Pointer {
		return a.Pointer() == b.Pointer()
	}
	return sameAt(a.Elem(), b.Elem(), keys)
}

// reached is a value that can be looked at, though it be in a field that is not exported.
func reached(v reflect.Value) reflect.Value {
	if !v.CanAddr() {
		at := reflect.New(v.Type()).Elem()
		at.Set(v)
		return at
	}
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// shown is a value as a message has it.
func shown(v any) string {
	s := fmt.Sprintf("%+v", v)
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return s
}
