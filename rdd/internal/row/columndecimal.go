package row

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"
)

// decimalAt returns a decimal number as text, with as many places after the point as its column has;
// false of what is none.
func decimalAt(a arrow.Array, i int) (string, bool) {
	switch c := a.(type) {
	case *array.Decimal128:
		return pointed(c.Value(i).BigInt(), c.DataType().(*arrow.Decimal128Type).Scale), true
	case *array.Decimal256:
		return pointed(c.Value(i).BigInt(), c.DataType().(*arrow.Decimal256Type).Scale), true
	}
	return "", false
}

// pointed returns v / 10^scale in digits.
func pointed(v *big.Int, scale int32) string {
	text, sign := new(big.Int).Abs(v).String(), ""
	if v.Sign() < 0 {
		sign = "-"
	}
	switch n := int(scale); {
	case n < 0 && v.Sign() != 0:
		return sign + text + strings.Repeat("0", -n)
	case n <= 0:
		return sign + text
	case len(text) <= n:
		return sign + "0." + strings.Repeat("0", n-len(text)) + text
	default:
		return sign + text[:len(text)-n] + "." + text[len(text)-n:]
	}
}

// wholeDecimal returns a decimal number that has nothing but zeros after its point.
func wholeDecimal(text string) (int64, error) {
	whole, err := wholeDigits(text)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s does not fit into 64 bits with a sign", text)
	}
	return v, nil
}

// unsignedDecimal does the same without a sign.
func unsignedDecimal(text string) (uint64, error) {
	whole, err := wholeDigits(text)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(whole, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s does not fit into a uint64", text)
	}
	return v, nil
}

// wholeDigits returns the digits before the point, where there are only zeros after it.
func wholeDigits(text string) (string, error) {
	whole, rest, _ := strings.Cut(text, ".")
	if strings.Trim(rest, "0") != "" {
		return "", fmt.Errorf("%s is not a whole number: make the field a string or a float64", text)
	}
	return whole, nil
}

// inDecimal makes a column of texts or numbers one of decimals, as the tag decimal:"PRECISION,SCALE" has it.
func (c columnType) inDecimal(t reflect.Type, tag string) (columnType, error) {
	if tag == "" {
		return c, nil
	}
	left, right, _ := strings.Cut(tag, ",")
	p, err := strconv.Atoi(left)
	s, serr := strconv.Atoi(right)
	if err != nil || serr != nil || p < 1 || p > 38 || s < 0 || s > p {
		return c, fmt.Errorf("the tag decimal:%q is not PRECISION,SCALE, as decimal:\"10,2\", of up to 38 digits", tag)
	}
	switch {
	case isNull(t):
		v, _ := t.FieldByName("V")
		t = v.Type
	case t.Kind() == reflect.Pointer:
		t = t.Elem()
	}
	text := decimalText(t)
	if text == nil {
		return c, fmt.Errorf("the tag decimal:%q is for strings, floats and whole numbers, not for a %v", tag, t)
	}
	precision, scale := int32(p), int32(s)
	number := func(p unsafe.Pointer) (decimal128.Num, error) { return parseDecimal(text(p), precision, scale) }
	c.arrow = &arrow.Decimal128Type{Precision: precision, Scale: scale}
	c.flat, c.all = nil, nil
	c.fits = c.present(func(p unsafe.Pointer) error { _, err := number(p); return err })
	c.write = c.orNull(func(b array.Builder, p unsafe.Pointer) {
		n, _ := number(p) // it fits
		b.(*array.Decimal128Builder).Append(n)
	})
	return c, nil
}

// decimalText returns how a value of a type is written in digits; nil where it cannot be.
func decimalText(t reflect.Type) func(p unsafe.Pointer) string {
	switch t.Kind() {
	case reflect.String:
		return func(p unsafe.Pointer) string { return *(*string)(p) }
	case reflect.Float64:
		return func(p unsafe.Pointer) string {
			if v := *(*float64)(p); math.Abs(v) >= 1<<53 { // a whole number, which has more digits than tell it apart
				return strconv.FormatFloat(v, 'f', 0, 64)
			}
			return strconv.FormatFloat(*(*float64)(p), 'f', -1, 64)
		}
	case reflect.Float32:
		return func(p unsafe.Pointer) string { return strconv.FormatFloat(float64(*(*float32)(p)), 'f', -1, 32) }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(p unsafe.Pointer) string { return strconv.FormatInt(reflect.NewAt(t, p).Elem().Int(), 10) }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(p unsafe.Pointer) string { return strconv.FormatUint(reflect.NewAt(t, p).Elem().Uint(), 10) }
	}
	return nil
}

// parseDecimal returns a number in digits as a decimal of a precision and scale. It is not rounded.
func parseDecimal(text string, precision, scale int32) (n decimal128.Num, err error) {
	plain := strings.TrimPrefix(text, "-")
	whole, rest, _ := strings.Cut(plain, ".")
	rest = strings.TrimRight(rest, "0")
	if len(rest) > int(scale) {
		return n, fmt.Errorf("%q has more than %d places after the point: round it", text, scale)
	}
	digits := whole + rest + strings.Repeat("0", int(scale)-len(rest))
	v, ok := new(big.Int).SetString(digits, 10)
	if !ok || whole == "" || strings.ContainsAny(digits, "+-_") {
		return n, fmt.Errorf("%q is not a decimal number", text)
	}
	if len(v.String()) > int(precision) {
		return n, fmt.Errorf("%q has more than the %d digits that a decimal of %d with %d after the point takes", text,
			precision-scale, precision, scale)
	}
	if plain != text {
		v.Neg(v)
	}
	return decimal128.FromBigInt(v), nil
}

// fixedColumn has arrays of bytes, all of one length; those of 16 are written as a UUID in text.
func fixedColumn(n int) columnType {
	bytesAt := func(p unsafe.Pointer) []byte { return unsafe.Slice((*byte)(p), n) }
	return columnType{arrow: &arrow.FixedSizeBinaryType{ByteWidth: n},
		write: func(b array.Builder, p unsafe.Pointer) { b.(*array.FixedSizeBinaryBuilder).Append(bytesAt(p)) },
		read: func(a arrow.Array, i int, p unsafe.Pointer) error {
			raw, ok := rawAt(a, i)
			switch {
			case !ok:
				return fmt.Errorf("%v is not bytes", a.DataType())
			case len(raw) != n:
				return fmt.Errorf("it has %d bytes, the field takes %d", len(raw), n)
			}
			copy(bytesAt(p), raw)
			return nil
		},
		print: func(out []byte, p unsafe.Pointer) []byte { return printFixed(out, bytesAt(p)) },
		parse: func(text []byte, p unsafe.Pointer, _ *Arena) error {
			raw, err := hex.DecodeString(strings.ReplaceAll(trimmed(text), "-", ""))
			if err == nil && len(raw) != n {
				err = fmt.Errorf("it has %d bytes, the field takes %d", len(raw), n)
			}
			if err != nil {
				return err
			}
			copy(bytesAt(p), raw)
			return nil
		},
	}
}

// printFixed appends bytes in hexadecimal digits, 16 of them as a UUID.
func printFixed(out, raw []byte) []byte {
	for i, b := range raw {
		if len(raw) == 16 && (i == 4 || i == 6 || i == 8 || i == 10) {
			out = append(out, '-')
		}
		out = append(out, hex.EncodeToString([]byte{b})...)
	}
	return out
}

// rawAt returns the bytes of a column of texts or bytes, in place.
func rawAt(a arrow.Array, i int) ([]byte, bool) {
	switch c := a.(type) {
	case *array.FixedSizeBinary:
		return c.Value(i), true
	case *array.Binary:
		return c.Value(i), true
	case *array.LargeBinary:
		return c.Value(i), true
	}
	return nil, false
}

// errFixed tells what a column of bytes of one length is read into.
var errFixed = errors.New("it has bytes of one length, as a UUID: make the field an array of that length ([16]byte) " +
	"or a []byte")

// durationAt returns a time of day or a span of time in nanoseconds.
func durationAt(a arrow.Array, i int) (ns int64, ok bool, err error) {
	var v int64
	var unit arrow.TimeUnit
	switch c := a.(type) {
	case *array.Time32:
		v, unit = int64(c.Value(i)), c.DataType().(*arrow.Time32Type).Unit
	case *array.Time64:
		v, unit = int64(c.Value(i)), c.DataType().(*arrow.Time64Type).Unit
	case *array.Duration:
		v, unit = int64(c.Value(i)), c.DataType().(*arrow.DurationType).Unit
	default:
		return 0, false, nil
	}
	per := int64(unit.Multiplier())
	if v > math.MaxInt64/per || v < math.MinInt64/per {
		return 0, true, fmt.Errorf("%d %v are more than a time.Duration holds", v, unit)
	}
	return v * per, true, nil
}

// durationColumn has spans of time, in whole nanoseconds. Times of day are read as the time since midnight.
func durationColumn() columnType {
	c := intColumn[int64](arrow.PrimitiveTypes.Int64)
	c.flat, c.all = nil, nil // which do not know the unit
	whole := c.read
	c.read = func(a arrow.Array, i int, p unsafe.Pointer) error {
		ns, ok, err := durationAt(a, i)
		if !ok {
			return whole(a, i, p)
		}
		*(*int64)(p) = ns
		return err
	}
	return c
}
