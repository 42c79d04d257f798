package text

import (
	"bytes"
	"io"
	"iter"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/storage/input/files"
)

// blockBytes is how much text is parsed at a time.
const blockBytes = 1 << 20

// MaxLine is how long a line may be, or a record: a longer one is refused before it is
// gathered.
const MaxLine = 64 << 20

// ByteOrderMark begins files that some programs write as UTF-8.
const ByteOrderMark = "\ufeff"

// Block is a run of whole records of a range; the first begins at offset.
type Block struct {
	Data    []byte
	Range   files.Range
	Offset  int64
	Line    int64 // of the block's first line within what this range read
	Newline byte
}

// Records determines where records end: at newlines, except within quotes.
type Records struct {
	Newline byte // what lines end with, after a \r or without
	Quote   byte // 0 is none
	// End returns the position after the record that begins at b[i], where quotes
	// decide; whole is false where b ends before it does, or might.
	End func(b []byte, i int) (end int, whole bool)
}

// Lines reads a range in blocks of whole lines.
func Lines(rng files.Range) iter.Seq2[Block, error] {
	return func(yield func(Block, error) bool) {
		b, err := Open(rng, Records{Newline: '\n'})
		if err != nil {
			yield(Block{}, err)
			return
		}
		defer b.Close()
		b.Run(yield)
	}
}

// Open begins to read a range.
func Open(rng files.Range, law Records) (*Reader, error) {
	b := &Reader{rng: rng, line: 1, law: law}
	err := rng.File.Unchanged()
	if err != nil {
		return nil, err
	}
	if b.r, b.limit, b.offset, err = openRange(rng, law.Newline); err != nil {
		return nil, err
	}
	if err = b.skipTo(rng.Skip); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// skipTo reads up to where the file's first row begins.
func (b *Reader) skipTo(row int64) error {
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
	b.line += int64(bytes.Count(head[:n], []byte{b.law.Newline}))
	if b.offset += int64(n); b.limit > 0 {
		b.limit -= int64(n)
	}
	return err
}

// openRange positions a reader at the first line that begins in the range.
// limit is how many bytes from there on belong to lines that begin in it; -1
// is all.
func openRange(rng files.Range, newline byte) (r io.ReadCloser, limit, offset int64, err error) {
	if rng.Offset == 0 && rng.Length >= rng.File.Size {
		r, err = rng.File.Unpacked()
		return r, -1, 0, err
	}
	f, err := rng.Open()
	if err != nil {
		return nil, 0, 0, err
	}
	start := rng.Offset
	if start > 0 && !rng.Exact {
		start, err = NextLine(f, rng.Offset-1, newline)
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

// NextLine returns the offset just after the first newline at or after off.
func NextLine(f io.ReaderAt, off int64, newline byte) (int64, error) {
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

// Reader reads a range in blocks of whole records.
type Reader struct {
	rng    files.Range
	r      io.ReadCloser
	law    Records
	limit  int64 // bytes in which records may still begin; -1 is no limit
	offset int64
	line   int64
	buf    []byte
	have   int
	quotes bool // some were seen
}

// Close ends reading.
func (b *Reader) Close() error { return b.r.Close() }

// Next returns where the record after those that were read begins.
func (b *Reader) Next() int64 { return b.offset }

// Quoted reports whether quotes were seen.
func (b *Reader) Quoted() bool { return b.quotes }

// Run yields blocks until the range's last record has been read, and reports
// whether it got that far. The yielded data is reused for the next block.
func (b *Reader) Run(yield func(Block, error) bool) bool {
	b.buf = make([]byte, blockBytes)
	for b.limit != 0 {
		n, err := b.fill()
		if err != nil {
			yield(Block{}, err)
			return false
		}
		if n == 0 {
			break
		}
		blk := Block{Data: b.buf[:n], Range: b.rng, Offset: b.offset, Line: b.line, Newline: b.law.Newline}
		b.line += int64(bytes.Count(blk.Data, []byte{b.law.Newline}))
		b.offset += int64(n)
		if b.limit > 0 {
			b.limit = max(0, b.limit-int64(n))
		}
		if !yield(blk, nil) {
			return false
		}
		b.have = copy(b.buf, b.buf[n:b.have])
	}
	if err := b.rng.File.Unchanged(); err != nil { // while it was read
		yield(Block{}, err)
		return false
	}
	return true
}

// fill gathers at least one whole line and returns how many bytes of buf are
// whole lines of this range; 0 at the end of the data.
func (b *Reader) fill() (int, error) {
	for eof := false; ; {
		if end := b.whole(eof); end > 0 || eof {
			return end, nil
		}
		if b.have == len(b.buf) {
			if len(b.buf) >= MaxLine {
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
func (b *Reader) whole(eof bool) int {
	if b.have < len(b.buf) && !eof {
		return 0
	}
	if b.law.Quote != 0 && bytes.IndexByte(b.buf[:b.have], b.law.Quote) >= 0 {
		b.quotes = true
		return b.wholeRecords(eof)
	}
	return b.wholeLines(eof)
}

func (b *Reader) wholeLines(eof bool) int {
	if b.limit > 0 && int64(b.have) >= b.limit {
		if i := bytes.IndexByte(b.buf[b.limit-1:b.have], b.law.Newline); i >= 0 {
			return int(b.limit) + i
		}
	}
	if eof {
		return b.have
	}
	return bytes.LastIndexByte(b.buf[:b.have], b.law.Newline) + 1
}

func (b *Reader) wholeRecords(eof bool) (end int) {
	for end < b.have && (b.limit < 0 || int64(end) < b.limit) {
		next, whole := b.law.End(b.buf[:b.have], end)
		if !whole && !eof {
			return end
		}
		end = next
	}
	return end
}

func (b *Reader) tooLong() error {
	blk := Block{Range: b.rng, Offset: b.offset, Line: b.line, Newline: b.law.Newline}
	if b.quotes {
		return blk.hinted(0, "is a quote not closed?", "the record is longer than %d MiB", MaxLine>>20)
	}
	return blk.Bad(0, "the line is longer than %d MiB", MaxLine>>20)
}
