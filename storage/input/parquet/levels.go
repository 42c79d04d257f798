package parquet

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/apache/arrow/go/v15/parquet"
)

// listLevels are the levels of a page, which say where lists begin and what is null.
type listLevels struct {
	raw   []byte
	width int  // of a level, in bits
	bare  bool // packed bits without runs, the most significant first: the encoding of old writers
}

// levelsOf takes the levels of a page of version 1 off its bytes: n, each at most the greatest.
func levelsOf(encoding parquet.Encoding, greatest, n int, page []byte) (l listLevels, rest []byte, err error) {
	l.width = bits.Len(uint(greatest))
	switch encoding {
	case parquet.Encodings.RLE:
		l.raw, rest, err = withLength(page)
		return l, rest, err
	case parquet.Encodings.BitPacked:
		size := (n*l.width + 7) / 8
		if n < 0 || size > len(page) {
			return l, nil, errCutPage
		}
		return listLevels{page[:size], l.width, true}, page[size:], nil
	}
	return l, nil, fmt.Errorf("it has levels that are encoded %v", encoding)
}

// withLength takes bytes behind their number.
func withLength(raw []byte) (first, rest []byte, err error) {
	if len(raw) < 4 {
		return nil, nil, errCutPage
	}
	n := int(binary.LittleEndian.Uint32(raw))
	if raw = raw[4:]; n > len(raw) {
		return nil, nil, errCutPage
	}
	return raw[:n], raw[n:], nil
}

// each goes over n levels, equal ones together.
func (l listLevels) each(n int, do func(level, times int) error) error {
	if !l.bare {
		return eachLevel(l.raw, l.width, n, do)
	}
	return eachPacked(n, func(i int) (level int) {
		for k := i * l.width; k < (i+1)*l.width; k++ {
			level = level<<1 | int(l.raw[k/8]>>(7-k%8)&1)
		}
		return level
	}, do)
}

// eachLevel goes over n levels of a number of bits, run by run (Parquet's hybrid of runs
// and packed bits).
func eachLevel(raw []byte, width, n int, do func(level, times int) error) error {
	for n > 0 {
		head, used := binary.Uvarint(raw)
		if used <= 0 {
			return errCutPage
		}
		raw = raw[used:]
		if head&1 == 1 { // groups of eight
			bytes := head >> 1 * uint64(width)
			if bytes > uint64(len(raw)) {
				bytes = uint64(len(raw)) // the last group may lack unused bytes
			}
			k := int(min(head>>1*8, uint64(n)))
			if uint64(k)*uint64(width) > 8*bytes {
				return errCutPage
			}
			if err := eachPacked(k, packedAt(raw[:bytes], width), do); err != nil {
				return err
			}
			raw, n = raw[bytes:], n-k
			continue
		}
		k := int(min(head>>1, uint64(n)))
		size := (width + 7) / 8
		if len(raw) < size || k == 0 {
			return errCutPage
		}
		level := 0
		for i := range size {
			level |= int(raw[i]) << (8 * i)
		}
		if err := do(level, k); err != nil {
			return err
		}
		raw, n = raw[size:], n-k
	}
	return nil
}

// packedAt returns what finds a bit-packed level, the least significant bits first.
func packedAt(raw []byte, width int) func(i int) int {
	return func(i int) (level int) {
		for b := range width {
			k := i*width + b
			level |= int(raw[k/8]>>(k%8)&1) << b
		}
		return level
	}
}

// eachPacked visits n levels, equal ones together.
func eachPacked(n int, at func(i int) int, do func(level, times int) error) error {
	for from := 0; from < n; {
		level, to := at(from), from+1
		for to < n && at(to) == level {
			to++
		}
		if err := do(level, to-from); err != nil {
			return err
		}
		from = to
	}
	return nil
}
