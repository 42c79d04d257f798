package pack

import (
	"errors"
	"hash"
	"io"
)

// alignedWriter is where an Arrow file writer asks for its position before
// each message: there it pads the file so that the body of the record batch
// that comes next, behind a head of known length, begins at a multiple of 64
// bytes. Readers go by the footer's offsets, so gaps are allowed.
type alignedWriter struct {
	w    io.Writer
	sum  hash.Hash
	pos  int64
	head int64 // length of the next message before its body; 0 pads nothing
}

var zeros [64]byte

func (a *alignedWriter) Write(p []byte) (int, error) {
	n, err := a.w.Write(p)
	a.sum.Write(p[:n])
	a.pos += int64(n)
	return n, err
}

// Seek answers the one question that the Arrow writer asks: where am I?
func (a *alignedWriter) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, errors.New("a split is written front to back")
	}
	if a.head > 0 && a.pos > 8 { // past the magic
		if gap := -(a.pos + a.head) & 63; gap > 0 {
			if _, err := a.Write(zeros[:gap]); err != nil {
				return 0, err
			}
		}
	}
	return a.pos, nil
}
