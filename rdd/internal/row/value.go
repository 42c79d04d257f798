package row

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
)

// Values that cross the wire (parameters, accumulators, results of actions, the state of
// loops) are encoded as rows are, but for numbers and lists of them, text and bytes, which
// are written as they are, without a frame, and for types that have MarshalBinary and
// UnmarshalBinary of their own, which are written by these.

// Encode returns the encoding of a value; the same value has the same bytes.
func Encode(v any) (raw []byte, err error) {
	switch x := v.(type) {
	case []float64:
		if x != nil && len(x) == 0 {
			return []byte{emptyMark}, nil
		}
		return AppendFloats(nil, x), nil
	case float64:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)), nil
	case []byte:
		if x == nil {
			return nil, nil
		}
		return append(slices.Clip(x), emptyMark), nil
	case string:
		return []byte(x), nil
	case nil:
		return nil, errors.New("nil has no type to be encoded by")
	}
	t := reflect.TypeOf(v)
	p := reflect.New(t)
	p.Elem().Set(reflect.ValueOf(v))
	if t != timeType && marshalsItself(t) {
		return p.Interface().(encoding.BinaryMarshaler).MarshalBinary()
	}
	c, err := knownCodec(t)
	if err != nil {
		return nil, err
	}
	defer recoverEncoding(&err)
	return c.Put(nil, p.UnsafePointer()), nil
}

// emptyMark is what tells a list without elements from one that is not there.
const emptyMark = 1

// recoverEncoding turns the failure of a codec into an error.
func recoverEncoding(err *error) {
	switch r := recover().(type) {
	case nil:
	case encodeFailure:
		*err = r.err
	default:
		panic(r)
	}
}

// knownCodecs are the codecs of types that have been asked for.
var knownCodecs sync.Map

// knownCodec returns the codec of a type, derived once.
func knownCodec(t reflect.Type) (rawCodec, error) {
	if c, ok := knownCodecs.Load(t); ok {
		return c.(rawCodec), nil
	}
	c, err := rawCodecOf(t)
	if err == nil {
		knownCodecs.Store(t, c)
	}
	return c, err
}

// Encodable returns an error if values of a type cannot be encoded.
func Encodable(t reflect.Type) error {
	if t != timeType && marshalsItself(t) {
		return nil
	}
	_, err := knownCodec(t)
	return err
}

// Decode reads an encoded value into *v.
func Decode(raw []byte, v any) error {
	switch x := v.(type) {
	case *[]float64:
		var err error
		if len(raw) == 1 && raw[0] == emptyMark {
			*x = []float64{}
			return nil
		}
		*x, err = ParseFloats(raw)
		return err
	case *float64:
		if len(raw) != 8 {
			return fmt.Errorf("%d bytes are not a number", len(raw))
		}
		*x = math.Float64frombits(binary.LittleEndian.Uint64(raw))
		return nil
	case *[]byte:
		*x = nil
		if n := len(raw); n > 0 {
			*x = raw[: n-1 : n-1]
		}
		return nil
	case *string:
		*x = string(raw)
		return nil
	}
	t := reflect.TypeOf(v).Elem()
	if u, ok := v.(encoding.BinaryUnmarshaler); ok && t != timeType && marshalsItself(t) {
		return u.UnmarshalBinary(raw)
	}
	c, err := knownCodec(t)
	if err != nil {
		return err
	}
	rest, ok := c.get(raw, reflect.ValueOf(v).UnsafePointer(), &Arena{})
	if !ok || len(rest) > 0 {
		return fmt.Errorf("%d bytes are not a %v", len(raw), t)
	}
	return nil
}
