package row

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/volley-engine/volley/internal/plan"
)

// littleEndian reports whether numbers lie in memory as they are encoded.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// AppendFloats appends numbers by their bits, eight bytes each, the least
// significant first: how Encode lays out numbers, for types that have a
// MarshalBinary of their own.
func AppendFloats(out []byte, x []float64) []byte {
	if littleEndian {
		return append(out, bytesOf(x)...)
	}
	for _, v := range x {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	return out
}

// ParseFloats reads what AppendFloats has written, into memory of its own.
func ParseFloats(raw []byte) ([]float64, error) {
	if len(raw)%8 != 0 {
		return nil, fmt.Errorf("%d bytes are not a list of numbers", len(raw))
	}
	if len(raw) == 0 {
		return nil, nil
	}
	x := make([]float64, len(raw)/8)
	if littleEndian {
		copy(bytesOf(x), raw)
		return x, nil
	}
	for i := range x {
		x[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	return x, nil
}

// ViewFloats reads what AppendFloats has written, in place where that is possible: raw
// must stay as it is for as long as the numbers are in use, and they as they are.
func ViewFloats(raw []byte) ([]float64, error) {
	first := unsafe.Pointer(unsafe.SliceData(raw))
	if !littleEndian || len(raw)%8 != 0 || uintptr(first)%8 != 0 {
		return ParseFloats(raw)
	}
	return unsafe.Slice((*float64)(first), len(raw)/8), nil
}

// DigestFloats returns the digest of lists of numbers as AppendFloats writes them.
func DigestFloats(lists [][]float64) (sum plan.Digest) {
	h := sha256.New()
	for _, x := range lists {
		if littleEndian {
			_, _ = h.Write(bytesOf(x))
		} else {
			_, _ = h.Write(AppendFloats(nil, x))
		}
	}
	h.Sum(sum[:0])
	return sum
}

func bytesOf(x []float64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 8*len(x))
}
