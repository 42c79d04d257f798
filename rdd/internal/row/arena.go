package row

import (
	"unsafe"

	"github.com/volley-engine/volley/internal/huge"
)

// Arena keeps the text and the numbers of many rows in few pieces of memory: so small
// that a row that is kept keeps little else.
type Arena struct {
	room  []byte
	words []uint64 // what is left of a piece for numbers
	Large bool     // all rows are kept, and read in no order
}

// Bytes of a piece of memory, and of one where all rows are kept.
const (
	arenaPiece = 4 << 10
	LargePiece = 8 << 20
)

// Text returns a copy of b, in memory that it shares with the texts before it.
func (a *Arena) Text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > cap(a.room)-len(a.room) {
		if len(b) > arenaPiece/4 {
			return string(b)
		}
		if a.Large {
			a.room = huge.Make[byte](0, LargePiece)
		} else {
			a.room = make([]byte, 0, arenaPiece)
		}
	}
	at := len(a.room)
	a.room = append(a.room, b...)
	return unsafe.String(&a.room[at], len(b))
}

// numbers returns memory for n bytes of numbers, aligned for any of them.
func (a *Arena) numbers(bytes int) unsafe.Pointer {
	n := max(1, (bytes+7)/8)
	if n > len(a.words) {
		switch {
		case n > arenaPiece/8/4:
			return unsafe.Pointer(unsafe.SliceData(make([]uint64, n)))
		case a.Large:
			a.words = huge.Make[uint64](LargePiece/8, LargePiece/8)
		default:
			a.words = make([]uint64, arenaPiece/8)
		}
	}
	p := unsafe.Pointer(&a.words[0])
	a.words = a.words[n:]
	return p
}
