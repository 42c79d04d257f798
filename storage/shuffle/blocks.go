package shuffle

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"

	"github.com/pierrec/lz4/v4"

	"github.com/volley-engine/volley/internal/fault"
)

// Shuffled rows are stored in blocks: the length of a block before compression,
// its stored length, its CRC-32C (of the stored bytes) and the bytes,
// compressed with LZ4 where that makes them shorter. A row is in one block
// only.
const (
	blockHead = 12
	blockMost = 1 << 30 // before memory is allocated for it
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockPacker makes blocks of bytes.
type blockPacker struct {
	c    lz4.Compressor
	skip int // blocks that are not tried, since one before them did not get shorter
}

// skipped is how many blocks go uncompressed after one that did not get shorter.
const skipped = 15

// worth is the share of their bytes that compressed blocks may have: of those that a network may carry, and of those
// that stay on this machine, where a copy is faster than compressing and decompressing them.
const (
	worthSending = 7. / 8
	worthKeeping = 1. / 4
)

// pack appends a block of the given bytes, header included, compressed where that makes it no more than a share of
// them; 0 does not try.
func (p *blockPacker) pack(out, raw []byte, worth float64) ([]byte, error) {
	if len(raw) > blockMost {
		return out, fault.Newf(fault.NoResources, "shuffle", "a row", "%d bytes are more than a row may have", len(raw))
	}
	at := len(out)
	out = append(out, make([]byte, blockHead)...)
	n := 0
	switch {
	case worth == 0 || p.skip > 0:
		p.skip = max(0, p.skip-1)
	default:
		out = slices.Grow(out, lz4.CompressBlockBound(len(raw)))
		var err error
		if n, err = p.c.CompressBlock(raw, out[len(out):cap(out)]); err != nil ||
			float64(n) >= worth*float64(len(raw)) {
			n = 0
		}
		if n == 0 {
			p.skip = skipped
		}
	}
	if out = out[:len(out)+n]; n == 0 {
		out = append(out, raw...)
	}
	head, lies := out[at:], out[at+blockHead:]
	binary.LittleEndian.PutUint32(head, uint32(len(raw)))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(lies)))
	binary.LittleEndian.PutUint32(head[8:], crc32.Checksum(lies, castagnoli))
	return out, nil
}

// BlockReader reads blocks one after the other.
type BlockReader struct {
	r      io.Reader
	packed []byte
	buf    []byte
}

// NewBlockReader reads blocks to the reader's end.
func NewBlockReader(r io.Reader) *BlockReader { return &BlockReader{r: r} }

// Next returns the bytes of the next block, which are valid until the following
// call; io.EOF at the end.
func (b *BlockReader) Next() ([]byte, error) {
	var head [blockHead]byte
	if _, err := io.ReadFull(b.r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, damaged("they are cut off")
		}
		return nil, err
	}
	was, lies := int(binary.LittleEndian.Uint32(head[:])), int(binary.LittleEndian.Uint32(head[4:]))
	if was == 0 || lies == 0 || lies > was || was > blockMost {
		return nil, damaged("a block has impossible lengths")
	}
	var packed []byte
	if m, ok := b.r.(*partitionInMemory); ok {
		packed = m.take(lies) // in place
	}
	if packed == nil {
		var err error
		if cap(b.packed) < lies {
			b.packed = make([]byte, min(lies, blockRead))
		}
		if b.packed, err = readWhole(b.r, b.packed[:cap(b.packed)], lies); err != nil {
			return nil, damaged("they are cut off")
		}
		packed = b.packed
	}
	if crc32.Checksum(packed, castagnoli) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, damaged("a block's checksum does not match")
	}
	if was == lies {
		return packed, nil
	}
	if cap(b.buf) < was {
		b.buf = make([]byte, was)
	}
	n, err := lz4.UncompressBlock(packed, b.buf[:was])
	if err != nil || n != was {
		return nil, damaged("a block cannot be decompressed")
	}
	return b.buf[:was], nil
}

// blockRead is how much memory is allocated for bytes that have not arrived yet.
const blockRead = 1 << 20

// readWhole reads n bytes into buf, which grows as they arrive.
func readWhole(r io.Reader, buf []byte, n int) ([]byte, error) {
	have := 0
	for have < n {
		if have == len(buf) {
			buf = append(buf, make([]byte, min(n-have, max(len(buf), blockRead)))...)
		}
		k, err := io.ReadFull(r, buf[have:min(n, len(buf))])
		if have += k; err != nil {
			return buf[:have], err
		}
	}
	return buf[:n], nil
}

func damaged(what string) error {
	return fault.Newf(fault.Corrupt, "read", "shuffled rows", "%s", what)
}
