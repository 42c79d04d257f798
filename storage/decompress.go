package storage

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"

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

// Compression is how a file's bytes are wrapped.
type Compression string

// The compressions that readers unwrap by themselves.
const (
	Plain Compression = ""
	Gzip  Compression = "gzip"
	Bzip2 Compression = "bzip2"
	Zstd  Compression = "zstd"
)

var magics = []struct {
	magic []byte
	kind  Compression
}{
	{[]byte{0x1f, 0x8b}, Gzip},
	{[]byte("BZh"), Bzip2},
	{[]byte{0x28, 0xb5, 0x2f, 0xfd}, Zstd},
}

func compressionOf(head []byte) Compression {
	for _, m := range magics {
		if bytes.HasPrefix(head, m.magic) {
			return m.kind
		}
	}
	return Plain
}

// sniffCompression reads a file's first bytes; names do not decide.
func sniffCompression(path string) (Compression, error) {
	f, err := os.Open(path)
	if err != nil {
		return Plain, disk.OpenError(path, err)
	}
	defer f.Close()
	head := make([]byte, 4)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return Plain, disk.OpenError(path, err)
	}
	return compressionOf(head[:n]), nil
}

// openPlain opens a file and unwraps its compression.
func openPlain(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, disk.OpenError(path, err)
	}
	counted := &countingReader{r: f}
	br := bufio.NewReaderSize(counted, 256<<10)
	head, _ := br.Peek(4)
	inner, stop, err := unwrap(compressionOf(head), br)
	if err != nil {
		f.Close()
		return nil, fault.New(fault.BadInput, "read", path, err)
	}
	return &plainReader{path: path, inner: inner, raw: counted, packed: compressionOf(head) != Plain,
		close: func() error { stop(); return f.Close() }}, nil
}

func unwrap(kind Compression, r io.Reader) (io.Reader, func(), error) {
	switch kind {
	case Gzip:
		z, err := gzip.NewReader(r)
		return z, func() {}, err
	case Bzip2:
		return bzip2.NewReader(r), func() {}, nil
	case Zstd:
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

// plainReader turns a decoder's complaints into errors that name the file,
// and stops a bomb.
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
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the compressed file is cut short")
	}
	return n, fault.New(fault.BadInput, "read", p.path, err)
}

// headBytes is how much of a file is looked at to find out what is in it.
const headBytes = 256 << 10

// headOf reads the beginning of a file, and whether that is all of it.
func headOf(path string, size int) (head []byte, all bool, err error) {
	r, err := openPlain(path)
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
