package rdd

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

// Values that cross the wire (parameters, accumulators, action results, rows
// of packs) are encoded here: numbers and slices of them by their bits,
// types with MarshalBinary by that, everything else as deterministic CBOR.
var cborMode = func() cbor.EncMode {
	o := cbor.CoreDetEncOptions()
	o.ShortestFloat, o.NaNConvert, o.InfConvert = cbor.ShortestFloatNone, cbor.NaNConvertNone, cbor.InfConvertNone
	o.Time = cbor.TimeRFC3339NanoUTC
	m, err := o.EncMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return m
}()

// cborReading takes whatever cborMode writes: strings that are not UTF-8, and
// as many rows as fit into memory.
var cborReading = func() cbor.DecMode {
	m, err := cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid, MaxArrayElements: math.MaxInt32, MaxMapPairs: math.MaxInt32}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return m
}()

// Encode is the encoding of a value; the same value has the same bytes.
func Encode(v any) ([]byte, error) {
	switch x := v.(type) {
	case []float64:
		return AppendFloats(nil, x), nil
	case float64:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)), nil
	case []byte:
		return x, nil
	case string:
		return []byte(x), nil
	case encoding.BinaryMarshaler:
		return x.MarshalBinary()
	}
	if t := reflect.TypeOf(v); t != nil && reflect.PointerTo(t).Implements(marshalerType) {
		p := reflect.New(t)
		p.Elem().Set(reflect.ValueOf(v))
		return p.Interface().(encoding.BinaryMarshaler).MarshalBinary()
	}
	return cborMode.Marshal(v)
}

var marshalerType = reflect.TypeFor[encoding.BinaryMarshaler]()

// Decode reads an encoded value into *v.
func Decode(raw []byte, v any) error {
	switch x := v.(type) {
	case *[]float64:
		var err error
		*x, err = ParseFloats(raw)
		return err
	case *float64:
		if len(raw) != 8 {
			return fmt.Errorf("%d bytes are not a number", len(raw))
		}
		*x = math.Float64frombits(binary.LittleEndian.Uint64(raw))
		return nil
	case *[]byte:
		*x = raw
		return nil
	case *string:
		*x = string(raw)
		return nil
	case encoding.BinaryUnmarshaler:
		return x.UnmarshalBinary(raw)
	}
	return cborReading.Unmarshal(raw, v)
}
