package row

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/volley-engine/volley/storage/input/parquet"
)

type signed interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64
}

type unsigned interface {
	~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// wholeAt reads a whole number of any width.
func wholeAt(a arrow.Array, i int) (v int64, ok bool) {
	switch c := a.(type) {
	case *array.Int64:
		return c.Value(i), true
	case *array.Int32:
		return int64(c.Value(i)), true
	case *array.Int16:
		return int64(c.Value(i)), true
	case *array.Int8:
		return int64(c.Value(i)), true
	case *array.Uint64:
		return int64(c.Value(i)), c.Value(i) < 1<<63
	case *array.Uint32:
		return int64(c.Value(i)), true
	case *array.Uint16:
		return int64(c.Value(i)), true
	case *array.Uint8:
		return int64(c.Value(i)), true
	}
	return 0, false
}

// wholeOf reads a whole number of any width, or a decimal that is one.
func wholeOf(a arrow.Array, i int) (int64, error) {
	if v, ok := wholeAt(a, i); ok {
		return v, nil
	}
	if text, ok := decimalAt(a, i); ok {
		return wholeDecimal(text)
	}
	if u, ok := a.(*array.Uint64); ok {
		return 0, fmt.Errorf("%d does not fit into 64 bits with a sign: make the field a uint64", u.Value(i))
	}
	return 0, fmt.Errorf("%v is not a whole number", a.DataType())
}

// fits turns a number into a narrower one, if it can be.
func fits[N signed | unsigned](v int64) (N, error) {
	n := N(v)
	if int64(n) != v || (n < 0) != (v < 0) {
		return 0, fmt.Errorf("%d does not fit into %T", v, n)
	}
	return n, nil
}

// appendNumber appends to the builder of a number's type.
func appendNumber(b array.Builder, v int64, u uint64, f float64) {
	switch b := b.(type) {
	case *array.Int64Builder:
		b.Append(v)
	case *array.Int32Builder:
		b.Append(int32(v))
	case *array.Int16Builder:
		b.Append(int16(v))
	case *array.Int8Builder:
		b.Append(int8(v))
	case *array.Uint64Builder:
		b.Append(u)
	case *array.Uint32Builder:
		b.Append(uint32(u))
	case *array.Uint16Builder:
		b.Append(uint16(u))
	case *array.Uint8Builder:
		b.Append(uint8(u))
	case *array.Float64Builder:
		b.Append(f)
	case *array.Float32Builder:
		b.Append(float32(f))
	}
}

// numberFlat returns a whole number of a Parquet column that is no time.
func numberFlat(c *parquet.FlatColumn, k int) (int64, error) {
	if c.Unit != parquet.NoTime {
		return 0, errIsTime
	}
	return wholeFlat(c, k)
}

var errIsTime = errors.New("it is a time, not a number: make the field a time.Time")

// wholeFlat returns a whole number of a Parquet column, or one that stands for a time.
func wholeFlat(c *parquet.FlatColumn, k int) (int64, error) {
	switch {
	case c.Int64s != nil:
		return c.Int64s[k], nil
	case c.Int32s != nil:
		return int64(c.Int32s[k]), nil
	}
	return 0, otherKind(c, "numbers")
}

// isTime returns the error that a column is of times, if it is that one.
func isTime(err error) error {
	if err == errIsTime {
		return err
	}
	return nil
}

// otherKind returns an error that names what a Parquet column has, and what its field takes.
func otherKind(c *parquet.FlatColumn, want string) error {
	has := "nulls alone"
	switch {
	case c.Bools != nil:
		has = "bools"
	case c.Int32s != nil, c.Int64s != nil:
		has = "whole numbers"
	case c.Floats != nil, c.Doubles != nil:
		has = "floats"
	case c.Bytes != nil:
		has = "texts or bytes"
	}
	return fmt.Errorf("the file has %s, the field takes %s", has, want)
}

func intColumn[N signed](t arrow.DataType) columnType {
	var n N
	bits := int(unsafe.Sizeof(n)) * 8
	return columnType{arrow: t,
		write: func(b array.Builder, p unsafe.Pointer) { appendNumber(b, int64(*(*N)(p)), 0, 0) },
		read: func(a arrow.Array, i int, p unsafe.Pointer) error {
			v, err := wholeOf(a, i)
			if err != nil {
				return err
			}
			*(*N)(p), err = fits[N](v)
			return err
		},
		print: func(out []byte, p unsafe.Pointer) []byte { return strconv.AppendInt(out, int64(*(*N)(p)), 10) },
		parse: func(text []byte, p unsafe.Pointer, _ *Arena) error {
			v, err := strconv.ParseInt(trimmed(text), 10, bits)
			*(*N)(p) = N(v)
			return plainNumber(err)
		},
		flat: func(c *parquet.FlatColumn, k int, p unsafe.Pointer, _ *Arena) error {
			v, err := numberFlat(c, k)
			if err != nil {
				return cmp.Or(isTime(err), otherKind(c, "whole numbers"))
			}
			*(*N)(p), err = fits[N](v)
			return err
		},
		all: func(c *parquet.FlatColumn, p unsafe.Pointer, stride uintptr, _ *Arena) bool {
			switch {
			case c.Unit != parquet.NoTime:
				return false
			case c.Int64s != nil && bits == 64:
				for i, v := range c.Int64s {
					*(*int64)(unsafe.Add(p, uintptr(i)*stride)) = v
				}
			case c.Int32s != nil && bits == 32:
				for i, v := range c.Int32s {
					*(*int32)(unsafe.Add(p, uintptr(i)*stride)) = v
				}
			case c.Int32s != nil && bits == 64:
				for i, v := range c.Int32s {
					*(*int64)(unsafe.Add(p, uintptr(i)*stride)) = int64(v)
				}
			default:
				return false
			}
			return true
		},
	}
}

func uintColumn[N unsigned](t arrow.DataType) columnType {
	var n N
	bits := int(unsafe.Sizeof(n)) * 8
	return columnType{arrow: t,
		write: func(b array.Builder, p unsafe.Pointer) { appendNumber(b, 0, uint64(*(*N)(p)), 0) },
		read: func(a arrow.Array, i int, p unsafe.Pointer) (err error) {
			if c, ok := a.(*array.Uint64); ok && bits == 64 {
				*(*N)(p) = N(c.Value(i))
				return nil
			}
			if text, ok := decimalAt(a, i); ok && bits == 64 {
				v, err := unsignedDecimal(text)
				*(*N)(p) = N(v)
				return err
			}
			v, err := wholeOf(a, i)
			if err != nil {
				return err
			}
			*(*N)(p), err = fits[N](v)
			return err
		},
		print: func(out []byte, p unsafe.Pointer) []byte { return strconv.AppendUint(out, uint64(*(*N)(p)), 10) },
		parse: func(text []byte, p unsafe.Pointer, _ *Arena) error {
			v, err := strconv.ParseUint(trimmed(text), 10, bits)
			*(*N)(p) = N(v)
			return plainNumber(err)
		},
		flat: func(c *parquet.FlatColumn, k int, p unsafe.Pointer, _ *Arena) error {
			v, err := numberFlat(c, k)
			if err != nil {
				return cmp.Or(isTime(err), otherKind(c, "whole numbers"))
			}
			*(*N)(p), err = fits[N](v)
			return err
		},
	}
}

func floatColumn[N float32 | float64](t arrow.DataType) columnType {
	var n N
	bits := int(unsafe.Sizeof(n)) * 8
	return columnType{arrow: t,
		write: func(b array.Builder, p unsafe.Pointer) { appendNumber(b, 0, 0, float64(*(*N)(p))) },
		read: func(a arrow.Array, i int, p unsafe.Pointer) error {
			switch c := a.(type) {
			case *array.Float64:
				return narrowed((*N)(p), c.Value(i))
			case *array.Float32:
				*(*N)(p) = N(c.Value(i))
			case *array.Float16:
				*(*N)(p) = N(parquet.Half(c.Value(i).Uint16()))
			case *array.Decimal128, *array.Decimal256:
				text, _ := decimalAt(a, i)
				v, err := strconv.ParseFloat(text, bits) // the nearest
				*(*N)(p) = N(v)
				return plainNumber(err)
			case *array.Uint64:
				return exactlyUnsigned((*N)(p), c.Value(i))
			default:
				v, ok := wholeAt(a, i)
				if !ok {
					return fmt.Errorf("%v is not a number", a.DataType())
				}
				return exactly((*N)(p), v)
			}
			return nil
		},
		print: func(out []byte, p unsafe.Pointer) []byte {
			return strconv.AppendFloat(out, float64(*(*N)(p)), 'g', -1, bits)
		},
		parse: func(text []byte, p unsafe.Pointer, _ *Arena) error {
			v, err := strconv.ParseFloat(trimmed(text), bits)
			*(*N)(p) = N(v)
			return plainNumber(err)
		},
		flat: func(c *parquet.FlatColumn, k int, p unsafe.Pointer, _ *Arena) error {
			switch {
			case c.Doubles != nil:
				return narrowed((*N)(p), c.Doubles[k])
			case c.Floats != nil:
				*(*N)(p) = N(c.Floats[k])
				return nil
			}
			v, err := numberFlat(c, k)
			if err != nil {
				return err
			}
			return exactly((*N)(p), v)
		},
		all: func(c *parquet.FlatColumn, p unsafe.Pointer, stride uintptr, _ *Arena) bool {
			switch {
			case c.Doubles != nil && bits == 64:
				for i, v := range c.Doubles {
					*(*float64)(unsafe.Add(p, uintptr(i)*stride)) = v
				}
			case c.Floats != nil && bits == 32:
				for i, v := range c.Floats {
					*(*float32)(unsafe.Add(p, uintptr(i)*stride)) = v
				}
			default:
				return false
			}
			return true
		},
	}
}

// narrowed puts a number where one of less range may be; what is finite stays so.
func narrowed[N float32 | float64](p *N, v float64) error {
	if *p = N(v); math.IsInf(float64(*p), 0) && !math.IsInf(v, 0) {
		return fmt.Errorf("%v does not fit into %T", v, *p)
	}
	return nil
}

// exactly puts a whole number where a float is, which must have it.
func exactly[N float32 | float64](p *N, v int64) error {
	if *p = N(v); v > 1<<24 || v < -1<<24 {
		if back := float64(*p); back >= 1<<63 || int64(back) != v {
			return fmt.Errorf("%d is not exact in a %T", v, *p)
		}
	}
	return nil
}

// exactlyUnsigned does the same with a number of 64 bits without a sign.
func exactlyUnsigned[N float32 | float64](p *N, v uint64) error {
	if v < 1<<63 {
		return exactly(p, int64(v))
	}
	if *p = N(v); float64(*p) >= 1<<64 || uint64(*p) != v {
		return fmt.Errorf("%d is not exact in a %T", v, *p)
	}
	return nil
}

func boolColumn() columnType {
	return columnType{arrow: arrow.FixedWidthTypes.Boolean,
		write: func(b array.Builder, p unsafe.Pointer) { b.(*array.BooleanBuilder).Append(*(*bool)(p)) },
		read: func(a arrow.Array, i int, p unsafe.Pointer) error {
			c, ok := a.(*array.Boolean)
			if !ok {
				return fmt.Errorf("%v is not a boolean", a.DataType())
			}
			*(*bool)(p) = c.Value(i)
			return nil
		},
		print: func(out []byte, p unsafe.Pointer) []byte { return strconv.AppendBool(out, *(*bool)(p)) },
		parse: func(text []byte, p unsafe.Pointer, _ *Arena) (err error) {
			*(*bool)(p), err = strconv.ParseBool(trimmed(text))
			return plainNumber(err)
		},
		flat: func(c *parquet.FlatColumn, k int, p unsafe.Pointer, _ *Arena) error {
			if c.Bools == nil {
				return otherKind(c, "bools")
			}
			*(*bool)(p) = c.Bools[k]
			return nil
		},
	}
}

func textAt(a arrow.Array, i int) (string, error) {
	switch c := a.(type) {
	case *array.String:
		return c.Value(i), nil
	case *array.LargeString:
		return c.Value(i), nil
	case *array.Binary:
		return string(c.Value(i)), nil
	case *array.LargeBinary:
		return string(c.Value(i)), nil
	case *array.StringView:
		return c.Value(i), nil
	case *array.BinaryView:
		return string(c.Value(i)), nil
	case *array.FixedSizeBinary:
		return "", errFixed
	}
	if text, ok := decimalAt(a, i); ok {
		return text, nil
	}
	return "", fmt.Errorf("%v is not text", a.DataType())
}

func stringColumn() columnType {
	return columnType{arrow: arrow.BinaryTypes.String, text: true, fits: isUTF8,
		write: func(b array.Builder, p unsafe.Pointer) { b.(*array.StringBuilder).Append(*(*string)(p)) },
		read: func(a arrow.Array, i int, p unsafe.Pointer) error {
			text, err := textAt(a, i)
			*(*string)(p) = string(append([]byte(nil), text...)) // the record's memory goes
			return err
		},
		print: func(out []byte, p unsafe.Pointer) []byte { return append(out, *(*string)(p)...) },
		parse: func(text []byte, p unsafe.Pointer, a *Arena) error {
			*(*string)(p) = a.Text(text)
			return nil
		},
		flat: func(c *parquet.FlatColumn, k int, p unsafe.Pointer, a *Arena) error {
			if c.Bytes == nil {
				return otherKind(c, "texts")
			}
			*(*string)(p) = a.Text(c.Bytes[k])
			return nil
		},
	}
}

// isUTF8 refuses a text that readers of Arrow and Parquet would.
func isUTF8(p unsafe.Pointer) error {
	if text := *(*string)(p); !utf8.ValidString(text) {
		return fmt.Errorf("%.80q is not UTF-8: make the field a []byte", text)
	}
	return nil
}

func bytesColumn() columnType {
	s := stringColumn()
	return columnType{arrow: arrow.BinaryTypes.Binary, text: true,
		write: func(b array.Builder, p unsafe.Pointer) { b.(*array.BinaryBuilder).Append(*(*[]byte)(p)) },
		read: func(a arrow.Array, i int, p unsafe.Pointer) error {
			raw, ok := rawAt(a, i)
			if ok {
				*(*[]byte)(p) = append([]byte{}, raw...)
				return nil
			}
			text, err := textAt(a, i)
			*(*[]byte)(p) = []byte(text)
			return err
		},
		print: s.print,
		parse: func(text []byte, p unsafe.Pointer, _ *Arena) error {
			*(*[]byte)(p) = append([]byte{}, text...)
			return nil
		},
		flat: func(c *parquet.FlatColumn, k int, p unsafe.Pointer, _ *Arena) error {
			if c.Bytes == nil {
				return otherKind(c, "bytes")
			}
			*(*[]byte)(p) = append([]byte{}, c.Bytes[k]...)
			return nil
		},
	}
}

// timeLayouts are how times are written in text, the first one also by us.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999",
	"2006-01-02"}

// The units of columns of times. Microseconds are what most readers of Parquet take,
// and hold all times of a calendar; nanoseconds hold those of 1678 to 2261.
const (
	microseconds = arrow.Microsecond
	nanoseconds  = arrow.Nanosecond
)

// mostYear is the last year, before and after, that 64 bits of microseconds hold whole.
const mostYear = 290_000

// inMicroseconds refuses a time that a column of microseconds would cut.
func inMicroseconds(p unsafe.Pointer) error {
	t := (*time.Time)(p)
	if t.Year() > mostYear || t.Year() < -mostYear {
		return fmt.Errorf("the year %d is not within what microseconds hold, %d before and after", t.Year(), mostYear)
	}
	if t.Nanosecond()%1000 != 0 {
		return fmt.Errorf("%v is not in whole microseconds: truncate it, or give the field the tag unit:\"ns\"",
			t.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

func inNanoseconds(p unsafe.Pointer) error {
	if t := (*time.Time)(p); t.Year() < 1678 || t.Year() > 2261 {
		return fmt.Errorf("%v is not within what nanoseconds hold, 1678 to 2261", t.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// inUnit makes a column of times one of a unit, as the tag unit has it.
func (c columnType) inUnit(unit string) (columnType, error) {
	at, ok := c.arrow.(*arrow.TimestampType)
	switch {
	case unit == "" || ok && unit == "us":
		return c, nil
	case !ok || unit != "ns" || c.fits == nil:
		return c, fmt.Errorf("the tag unit:%q is for times, and us or ns", unit)
	}
	c.arrow = &arrow.TimestampType{Unit: nanoseconds, TimeZone: at.TimeZone}
	c.fits = c.present(inNanoseconds)
	c.write = c.orNull(func(b array.Builder, p unsafe.Pointer) {
		b.(*array.TimestampBuilder).Append(arrow.Timestamp((*time.Time)(p).UnixNano()))
	})
	return c, nil
}

// orNull makes what writes values one that also writes the nulls of a column that may have some.
func (c columnType) orNull(write func(b array.Builder, p unsafe.Pointer)) func(b array.Builder, p unsafe.Pointer) {
	if c.at == nil {
		return write
	}
	return func(b array.Builder, p unsafe.Pointer) {
		if v := c.at(p); v != nil {
			write(b, v)
		} else {
			b.AppendNull()
		}
	}
}

// present makes a check of values one of values that may be null.
func (c columnType) present(fits func(p unsafe.Pointer) error) func(p unsafe.Pointer) error {
	if c.at == nil || fits == nil {
		return fits
	}
	return func(p unsafe.Pointer) error {
		if v := c.at(p); v != nil {
			return fits(v)
		}
		return nil
	}
}

func timeColumn() columnType {
	return columnType{arrow: &arrow.TimestampType{Unit: microseconds, TimeZone: "UTC"}, fits: inMicroseconds,
		write: func(b array.Builder, p unsafe.Pointer) {
			b.(*array.TimestampBuilder).Append(arrow.Timestamp((*time.Time)(p).UnixMicro()))
		},
		read: func(a arrow.Array, i int, p unsafe.Pointer) error {
			switch c := a.(type) {
			case *array.Timestamp:
				*(*time.Time)(p) = c.Value(i).ToTime(c.DataType().(*arrow.TimestampType).Unit).UTC()
			case *array.Date32:
				*(*time.Time)(p) = c.Value(i).ToTime().UTC()
			case *array.Date64:
				*(*time.Time)(p) = time.UnixMilli(int64(c.Value(i))).UTC()
			default:
				return fmt.Errorf("%v is not a time", a.DataType())
			}
			return nil
		},
		print: func(out []byte, p unsafe.Pointer) []byte {
			return (*time.Time)(p).UTC().AppendFormat(out, time.RFC3339Nano)
		},
		parse: func(text []byte, p unsafe.Pointer, _ *Arena) error {
			for _, layout := range timeLayouts {
				if t, err := time.Parse(layout, trimmed(text)); err == nil {
					*(*time.Time)(p) = t.UTC()
					return nil
				}
			}
			return fmt.Errorf("it is not a time, such as 2006-01-02T15:04:05Z")
		},
		flat: flatTime,
	}
}

func flatTime(c *parquet.FlatColumn, k int, p unsafe.Pointer, _ *Arena) error {
	v, err := wholeFlat(c, k)
	if err != nil {
		return err
	}
	var t time.Time
	switch c.Unit {
	case parquet.Days:
		t = time.Unix(v*86400, 0)
	case parquet.Millis:
		t = time.UnixMilli(v)
	case parquet.Micros:
		t = time.UnixMicro(v)
	case parquet.Nanos:
		t = time.Unix(0, v)
	default:
		return fmt.Errorf("it is not a time")
	}
	*(*time.Time)(p) = t.UTC()
	return nil
}

// trimmed returns a field of text without blanks around it.
func trimmed(text []byte) string {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	for len(text) > 0 && (text[len(text)-1] == ' ' || text[len(text)-1] == '\t') {
		text = text[:len(text)-1]
	}
	if len(text) == 0 {
		return ""
	}
	return unsafe.String(&text[0], len(text)) // read before the text changes
}

// plainNumber returns the reason in an error of strconv.
func plainNumber(err error) error {
	if e, ok := err.(*strconv.NumError); ok {
		return e.Err
	}
	return err
}
