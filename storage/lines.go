package storage

import (
	"bytes"
	"io"
	"iter"
	"os"

	"github.com/volley-engine/volley/internal/fault"
)

const (
	blockBytes = 1 << 20  // how much text is parsed at a time
	maxLine    = 64 << 20 // a longer line is refused before it is gathered
)

// Range is a part of a file: the lines that begin in [Offset, Offset+Length).
// A compressed file has one range, whose length is the compressed size.
type Range struct {
	File   File  `json:"file"`
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
}

// Ranges cuts files into ranges of about size bytes, compressed files and
// files for which whole says so excepted.
func Ranges(files []File, size int64, whole func(File) bool) ([]Range, error) {
	var out []Range
	for _, f := range files {
		packed, err := sniffCompression(f.Path)
		if err != nil {
			return nil, err
		}
		if packed != Plain || f.Size <= size || (whole != nil && whole(f)) {
			out = append(out, Range{File: f, Length: f.Size})
			continue
		}
		for off := int64(0); off < f.Size; off += size {
			out = append(out, Range{File: f, Offset: off, Length: min(size, f.Size-off)})
		}
	}
	return out, nil
}

// textBlock is a run of whole lines; its first line begins at Offset, or is
// line number Line (from 1) where the reader counted.
type textBlock struct {
	data   []byte
	rng    Range
	offset int64
	line   int64 // of the block's first line within what this range read
}

// textBlocks reads a range in blocks of whole lines.
func textBlocks(rng Range) iter.Seq2[textBlock, error] {
	return func(yield func(textBlock, error) bool) {
		r, limit, offset, err := openRange(rng)
		if err != nil {
			yield(textBlock{}, err)
			return
		}
		defer r.Close()
		b := blocker{rng: rng, r: r, limit: limit, offset: offset, line: 1}
		b.run(yield)
	}
}

// openRange positions a reader at the first line that begins in the range.
// limit is how many bytes from there on belong to lines that begin in it; -1
// is all.
func openRange(rng Range) (r io.ReadCloser, limit, offset int64, err error) {
	if rng.Offset == 0 && rng.Length >= rng.File.Size {
		r, err = openPlain(rng.File.Path)
		return r, -1, 0, err
	}
	f, err := os.Open(rng.File.Path)
	if err != nil {
		return nil, 0, 0, openError(rng.File.Path, err)
	}
	start := rng.Offset
	if start > 0 {
		start, err = nextLine(f, rng.Offset-1)
	}
	if err == nil {
		_, err = f.Seek(start, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, 0, 0, openError(rng.File.Path, err)
	}
	return f, max(0, rng.Offset+rng.Length-start), start, nil
}

// nextLine is the offset just after the first newline at or after off.
func nextLine(f io.ReaderAt, off int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for {
		n, err := f.ReadAt(buf, off)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return off + int64(i) + 1, nil
		}
		off += int64(n)
		if err == io.EOF {
			return off, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

type blocker struct {
	rng    Range
	r      io.Reader
	limit  int64 // bytes in which lines may still begin; -1 is no limit
	offset int64
	line   int64
	buf    []byte
	have   int
}

// run yields blocks until the range's last line has been read. The yielded
// data is reused for the next block.
func (b *blocker) run(yield func(textBlock, error) bool) {
	b.buf = make([]byte, blockBytes)
	for b.limit != 0 {
		n, err := b.fill()
		if err != nil {
			yield(textBlock{}, err)
			return
		}
		if n == 0 {
			return
		}
		blk := textBlock{data: b.buf[:n], rng: b.rng, offset: b.offset, line: b.line}
		b.line += int64(bytes.Count(blk.data, []byte{'\n'}))
		b.offset += int64(n)
		if b.limit > 0 {
			b.limit = max(0, b.limit-int64(n))
		}
		if !yield(blk, nil) {
			return
		}
		b.have = copy(b.buf, b.buf[n:b.have])
	}
}

// fill gathers at least one whole line and returns how many bytes of buf are
// whole lines of this range; 0 at the end of the data.
func (b *blocker) fill() (int, error) {
	for eof := false; ; {
		if end := b.wholeLines(eof); end > 0 || eof {
			return end, nil
		}
		if b.have == len(b.buf) {
			if len(b.buf) >= maxLine {
				return 0, b.tooLong()
			}
			b.buf = append(b.buf, make([]byte, len(b.buf))...)
		}
		n, err := io.ReadFull(b.r, b.buf[b.have:])
		b.have += n
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			eof = true
		default:
			return 0, err
		}
	}
}

// wholeLines is how much of the buffer may be yielded: up to its last
// newline, and not past the line that crosses the range's end.
func (b *blocker) wholeLines(eof bool) int {
	if b.have < len(b.buf) && !eof {
		return 0
	}
	if b.limit > 0 && int64(b.have) >= b.limit {
		if i := bytes.IndexByte(b.buf[b.limit-1:b.have], '\n'); i >= 0 {
			return int(b.limit) + i
		}
	}
	if eof {
		return b.have
	}
	return bytes.LastIndexByte(b.buf[:b.have], '\n') + 1
}

func (b *blocker) tooLong() error {
	blk := textBlock{rng: b.rng, offset: b.offset, line: b.line}
	return fault.Newf(fault.BadInput, "read", blk.where(0), "the line is longer than %d MiB", maxLine>>20)
}
