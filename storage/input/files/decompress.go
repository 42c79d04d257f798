package files

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// Limits against decompression bombs: data that has grown past bombFloor
// bytes may not be more than bombRatio times its compressed size.
const (
	bombFloor = 256 << 20
	bombRatio = 500
)

// compression is how a file's bytes are compressed.
type compression string

// The compressions that readers detect.
const (
	plain     compression = ""
	gzipKind  compression = "gzip"
	bzip2Kind compression = "bzip2"
	zstdKind  compression = "zstd"
)

var magics = []struct {
	magic []byte
	kind  compression
}{
	{[]byte{0x1f, 0x8b}, gzipKind},
	{[]byte("BZh"), bzip2Kind},
	{[]byte{0x28, 0xb5, 0x2f, 0xfd}, zstdKind},
}

func compressionOf(head []byte) compression {
	for _, m := range magics {
		if bytes.HasPrefix(head, m.magic) {
			return m.kind
		}
	}
	return plain
}

// sniffCompression reads a file's first bytes; names do not decide.
func sniffCompression(path string) (compression, error) {
	f, err := OpenPath(path)
	if err != nil {
		return plain, err
	}
	defer f.Close()
	head := make([]byte, 4)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return plain, disk.OpenError(path, err)
	}
	return compressionOf(head[:n]), nil
}

// Open opens a file and decompresses it.
func Open(path string) (io.ReadCloser, error) {
	f, err := OpenPath(path)
	if err != nil {
		return nil, err
	}
	return unpacked(path, f)
}

// Unpacked does what Open does, with the file as it was resolved.
func (f File) Unpacked() (io.ReadCloser, error) {
	h, err := f.Open()
	if err != nil {
		return nil, err
	}
	return unpacked(f.Path, h)
}

func unpacked(path string, f Handle) (io.ReadCloser, error) {
	counted := &countingReader{r: f}
	br := bufio.NewReaderSize(counted, 256<<10)
	head, _ := br.Peek(4)
	inner, stop, err := unwrap(compressionOf(head), br)
	if err != nil {
		f.Close()
		return nil, fault.New(fault.BadInput, "read", path, err)
	}
	return &plainReader{path: path, inner: inner, raw: counted, packed: compressionOf(head) != plain,
		close: func() error { stop(); return f.Close() }}, nil
}

func unwrap(kind compression, r io.Reader) (io.Reader, func(), error) {
	switch kind {
	case gzipKind:
		z, err := gzip.NewReader(r)
		return z, func() {}, err
	case bzip2Kind:
		return bzip2.NewReader(r), func() {}, nil
	case zstdKind:
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(256<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return r, func() {}, nil
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// plainReader turns a decoder's errors into errors that name the file, and
// stops decompression bombs.
type plainReader struct {
	path   string
	inner  io.Reader
	raw    *countingReader
	n      int64
	packed bool
	close  func() error
}

func (p *plainReader) Close() error { return p.close() }

func (p *plainReader) Read(b []byte) (int, error) {
	n, err := p.inner.Read(b)
	p.n += int64(n)
	if p.packed && p.n > bombFloor && p.n/bombRatio > p.raw.n {
		return 0, fault.Newf(fault.BadInput, "read", p.path,
			"%d compressed bytes grew past %d bytes: a decompression bomb", p.raw.n, p.n).
			WithHint("decompress the file first if it is meant to be so")
	}
	if err == nil || err == io.EOF {
		return n, err
	}
	var known *fault.Error
	switch {
	case errors.As(err, &known): // of a store, whose kind is whether it may be tried again
		return n, known
	case errors.Is(err, io.ErrUnexpectedEOF) && p.packed:
		err = fmt.Errorf("the compressed file is cut short")
	}
	return n, fault.New(fault.BadInput, "read", p.path, err)
}

// HeadBytes is how much of a file is read to detect its format.
const HeadBytes = 256 << 10

// Head reads the beginning of a file, and whether that is all of it.
func Head(path string, size int) (head []byte, all bool, err error) {
	r, err := Open(path)
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	head = make([]byte, size)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false, err
	}
	return head[:n], n < len(head), nil
}
