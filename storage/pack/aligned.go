package pack

import (
	"errors"
	"hash"
	"io"
)

// alignedWriter pads the file whenever the Arrow file writer asks for its
// position, before each message, so that the body of the next record batch,
// behind a header of known length, begins at a multiple of 64 bytes. Readers go
// by the footer's offsets, so gaps are allowed.
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

// Seek returns the position, its only use by the Arrow writer.
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
