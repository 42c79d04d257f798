package num

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/volley-engine/volley/rdd"
)

// ErrCutShort is what numbers are refused with that end too early.
var ErrCutShort = errors.New("the numbers of a model are cut short")

// PutFloats appends the numbers of some vectors.
func PutFloats(out []byte, parts ...[]float64) []byte {
	for _, x := range parts {
		out = rdd.AppendFloats(out, x)
	}
	return out
}

// GetFloats reads floats, at least `least` of them.
func GetFloats(raw []byte, least int) ([]float64, error) {
	return atLeast(least, raw, rdd.ParseFloats)
}

// ViewFloats does what GetFloats does without a copy, for what is large and only read.
func ViewFloats(raw []byte, least int) ([]float64, error) {
	return atLeast(least, raw, rdd.ViewFloats)
}

func atLeast(least int, raw []byte, parse func([]byte) ([]float64, error)) ([]float64, error) {
	v, err := parse(raw)
	if err != nil || len(v) < least {
		return nil, fmt.Errorf("%d bytes are not the numbers of a model", len(raw))
	}
	return v, nil
}

// PutVectors appends vectors, each with its length before it.
func PutVectors(out []byte, vectors ...[]float64) []byte {
	for _, v := range vectors {
		out = PutFloats(out, []float64{float64(len(v))}, v)
	}
	return out
}

// GetVectors reads what PutVectors wrote, at least `least` vectors. One without entries is
// nil: of a gradient that is one that is not known.
func GetVectors(raw []byte, least int) (vectors [][]float64, err error) {
	v, err := GetFloats(raw, least)
	for err == nil && len(v) > 0 {
		if !(v[0] >= 0) || v[0] > float64(len(v)-1) {
			return nil, ErrCutShort
		}
		var one []float64
		n := int(v[0])
		if n > 0 {
			one = v[1 : 1+n : 1+n]
		}
		vectors, v = append(vectors, one), v[1+n:]
	}
	if err == nil && len(vectors) < least {
		err = ErrCutShort
	}
	return vectors, err
}

// PutPair appends two parts, the first one's length before it.
func PutPair(a, b func() ([]byte, error)) ([]byte, error) {
	x, err := a()
	if err != nil {
		return nil, err
	}
	y, err := b()
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(x))), x...), y...), err
}

// GetPair reads what PutPair wrote.
func GetPair(raw []byte, a, b func([]byte) error) error {
	if len(raw) < 8 || binary.LittleEndian.Uint64(raw) > uint64(len(raw)-8) {
		return ErrCutShort
	}
	n := 8 + binary.LittleEndian.Uint64(raw)
	if err := a(raw[8:n]); err != nil {
		return err
	}
	return b(raw[n:])
}
