package storage

import (
	"bytes"
	"io"
	"iter"
	"os"

	"github.com/volley-engine/volley/internal/disk"
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
	Exact  bool  `json:"exact,omitempty"` // a record of a table begins at Offset, and another where the range ends
	Skip   int64 `json:"skip,omitempty"`  // where the file's first row begins, after a header
	Row    int64 `json:"row,omitempty"`   // number of the first row, where the file says how many its parts have
}

// Ranges cuts files into ranges of about size bytes, compressed files excepted.
func Ranges(files []File, size int64) ([]Range, error) {
	var out []Range
	for _, f := range files {
		packed, err := sniffCompression(f.Path)
		if err != nil {
			return nil, err
		}
		if packed != Plain || f.Size <= size {
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
	data    []byte
	rng     Range
	offset  int64
	line    int64 // of the block's first line within what this range read
	newline byte
}

// textBlocks reads a range in blocks of whole lines.
func textBlocks(rng Range) iter.Seq2[textBlock, error] { return blocksOf(rng, nil) }

// blocksOf reads a range in blocks of whole records: lines, where there is no
// dialect.
func blocksOf(rng Range, d *dialect) iter.Seq2[textBlock, error] {
	return func(yield func(textBlock, error) bool) {
		b, err := openBlocks(rng, d)
		if err != nil {
			yield(textBlock{}, err)
			return
		}
		defer b.r.Close()
		checked := yield
		if d != nil {
			checked = func(blk textBlock, err error) bool { return yield(blk, d.sure(rng, err)) }
		}
		if b.run(checked) {
			if err := b.endsWhereNextBegins(); err != nil {
				yield(textBlock{}, err)
			}
		}
	}
}

func openBlocks(rng Range, d *dialect) (*blocker, error) {
	b := &blocker{rng: rng, line: 1, d: d, newline: '\n'}
	if d != nil {
		b.newline = d.Newline
	}
	var err error
	if b.r, b.limit, b.offset, err = openRange(rng, b.newline); err == nil {
		err = b.skipTo(rng.Skip)
	}
	return b, err
}

// skipTo reads up to where the file's first row begins.
func (b *blocker) skipTo(row int64) error {
	skip := row - b.offset
	if b.limit >= 0 {
		skip = min(skip, b.limit)
	}
	if skip <= 0 {
		return nil
	}
	head := make([]byte, skip)
	n, err := io.ReadFull(b.r, head)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	b.line += int64(bytes.Count(head[:n], []byte{b.newline}))
	if b.offset += int64(n); b.limit > 0 {
		b.limit -= int64(n)
	}
	return err
}

// openRange positions a reader at the first line that begins in the range.
// limit is how many bytes from there on belong to lines that begin in it; -1
// is all.
func openRange(rng Range, newline byte) (r io.ReadCloser, limit, offset int64, err error) {
	if rng.Offset == 0 && rng.Length >= rng.File.Size {
		r, err = openPlain(rng.File.Path)
		return r, -1, 0, err
	}
	f, err := os.Open(rng.File.Path)
	if err != nil {
		return nil, 0, 0, disk.OpenError(rng.File.Path, err)
	}
	start := rng.Offset
	if start > 0 && !rng.Exact {
		start, err = nextLine(f, rng.Offset-1, newline)
	}
	if err == nil {
		_, err = f.Seek(start, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, 0, 0, disk.OpenError(rng.File.Path, err)
	}
	return f, max(0, rng.Offset+rng.Length-start), start, nil
}

// nextLine is the offset just after the first newline at or after off.
func nextLine(f io.ReaderAt, off int64, newline byte) (int64, error) {
	buf := make([]byte, 64<<10)
	for {
		n, err := f.ReadAt(buf, off)
		if i := bytes.IndexByte(buf[:n], newline); i >= 0 {
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
	rng     Range
	r       io.ReadCloser
	d       *dialect // of records; nil where these are lines
	newline byte
	limit   int64 // bytes in which lines may still begin; -1 is no limit
	offset  int64
	line    int64
	buf     []byte
	have    int
	quotes  bool // some were seen
}

// run yields blocks until the range's last record has been read, and reports
// whether it came to that. The yielded data is reused for the next block.
func (b *blocker) run(yield func(textBlock, error) bool) bool {
	b.buf = make([]byte, blockBytes)
	for b.limit != 0 {
		n, err := b.fill()
		if err != nil {
			yield(textBlock{}, err)
			return false
		}
		if n == 0 {
			return true
		}
		blk := textBlock{data: b.buf[:n], rng: b.rng, offset: b.offset, line: b.line, newline: b.newline}
		b.line += int64(bytes.Count(blk.data, []byte{b.newline}))
		b.offset += int64(n)
		if b.limit > 0 {
			b.limit = max(0, b.limit-int64(n))
		}
		if !yield(blk, nil) {
			return false
		}
		b.have = copy(b.buf, b.buf[n:b.have])
	}
	return true
}

// fill gathers at least one whole line and returns how many bytes of buf are
// whole lines of this range; 0 at the end of the data.
func (b *blocker) fill() (int, error) {
	for eof := false; ; {
		if end := b.whole(eof); end > 0 || eof {
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

// whole returns how much of the buffer may be yielded: its whole records, and
// none that begins after the range's end. Where no quote is, records are lines.
func (b *blocker) whole(eof bool) int {
	if b.have < len(b.buf) && !eof {
		return 0
	}
	if b.d != nil && b.d.Quote != 0 && bytes.IndexByte(b.buf[:b.have], b.d.Quote) >= 0 {
		b.quotes = true
		return b.wholeRecords(eof)
	}
	return b.wholeLines(eof)
}

func (b *blocker) wholeLines(eof bool) int {
	if b.limit > 0 && int64(b.have) >= b.limit {
		if i := bytes.IndexByte(b.buf[b.limit-1:b.have], b.newline); i >= 0 {
			return int(b.limit) + i
		}
	}
	if eof {
		return b.have
	}
	return bytes.LastIndexByte(b.buf[:b.have], b.newline) + 1
}

func (b *blocker) wholeRecords(eof bool) (end int) {
	for end < b.have && (b.limit < 0 || int64(end) < b.limit) {
		next, whole := b.d.recordEnd(b.buf[:b.have], end)
		if !whole && !eof {
			return end
		}
		end = next
	}
	return end
}

func (b *blocker) tooLong() error {
	blk := textBlock{rng: b.rng, offset: b.offset, line: b.line, newline: b.newline}
	if b.quotes {
		return blk.hinted(0, "is a quote not closed?", "the record is longer than %d MiB", maxLine>>20)
	}
	return blk.bad(0, "the line is longer than %d MiB", maxLine>>20)
}
