package rdd

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// cborMode is how the session and its tasks write what they tell each other of shuffles.
// No value of the user's is in it but as bytes.
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
	m, err := cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid, MaxArrayElements: math.MaxInt32,
		MaxMapPairs: math.MaxInt32}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return m
}()

// Values that cross the wire (parameters, accumulators, results of actions, the state of
// loops) are encoded as rows are, but for numbers and lists of them, text and bytes, which
// are written as they are, without a frame, and for types that have MarshalBinary and
// UnmarshalBinary of their own, which are written by these.

// Encode is the encoding of a value; the same value has the same bytes.
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
	return c.put(nil, p.UnsafePointer()), nil
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

// knownCodec is rowCodecOf, derived once.
func knownCodec(t reflect.Type) (rowCodec, error) {
	if c, ok := knownCodecs.Load(t); ok {
		return c.(rowCodec), nil
	}
	c, err := rowCodecOf(t)
	if err == nil {
		knownCodecs.Store(t, c)
	}
	return c, err
}

// encodable says why values of a type cannot be encoded, if that is so.
func encodable(t reflect.Type) error {
	if t != timeType && marshalsItself(t) {
		return nil
	}
	_, err := knownCodec(t)
	return err
}

// crosses notes as a mistake of the plan that values of T cannot be encoded; what says
// which values those are.
func crosses[T any](g *Graph, op, what string) {
	if err := encodable(reflect.TypeFor[T]()); err != nil {
		g.fail("%s: the %s cannot be encoded: %v", op, what, err)
	}
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
	rest, ok := c.get(raw, reflect.ValueOf(v).UnsafePointer(), &arena{})
	if !ok || len(rest) > 0 {
		return fmt.Errorf("%d bytes are not a %v", len(raw), t)
	}
	return nil
}

// rowList is rows on their way to the driver's side: their number, and the rows.
type rowList[T any] struct {
	row codec[T]
	n   int
	raw []byte
}

// add takes a row in.
func (l *rowList[T]) add(row *T) (err error) {
	defer recoverEncoding(&err)
	l.raw = l.row.append(l.raw, row)
	l.n++
	return nil
}

// encoded is the list for the wire.
func (l *rowList[T]) encoded() []byte {
	return append(binary.AppendUvarint(make([]byte, 0, len(l.raw)+binary.MaxVarintLen64), uint64(l.n)), l.raw...)
}

// noRows is an encoded list of no rows.
var noRows = []byte{0}

// appendRows appends the rows of an encoded list.
func appendRows[T any](rows []T, raw []byte) ([]T, error) {
	c, err := codecOf[T]()
	if err != nil {
		return nil, err
	}
	n, k := binary.Uvarint(raw)
	if k <= 0 || n > uint64(len(raw)) {
		return nil, corruptRow(fmt.Errorf("%d bytes are no list of rows", len(raw)))
	}
	var text arena
	raw, rows = raw[k:], slices.Grow(rows, int(n))
	for range n {
		var row T
		if raw, err = c.parse(raw, &row, &text); err != nil {
			return nil, corruptRow(err)
		}
		rows = append(rows, row)
	}
	if len(raw) > 0 {
		return nil, corruptRow(fmt.Errorf("%d bytes are left after the last row", len(raw)))
	}
	return rows, nil
}
