package storage

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/pierrec/lz4/v4"

	"github.com/volley-engine/volley/internal/fault"
)

// Rows that move lie in blocks: the length of a block as it was, its length as
// it lies, its CRC-32C (of what lies) and the bytes, compressed with LZ4 where
// that makes them shorter. A row is in one block only.
const (
	blockHead = 12
	blockMost = 1 << 30 // before memory is allocated for it
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockPacker makes blocks of bytes.
type blockPacker struct {
	c    lz4.Compressor
	out  []byte
	skip int // blocks that are not tried, since one before them did not get shorter
}

// skipped is how many blocks go uncompressed after one that did not get shorter.
const skipped = 15

// pack is a block of the given bytes, head included, compressed where that is
// asked for and makes them shorter; it is good until the next.
func (p *blockPacker) pack(raw []byte, compress bool) ([]byte, error) {
	if len(raw) > blockMost {
		return nil, fault.Newf(fault.NoResources, "shuffle", "a row", "%d bytes are more than a row may have", len(raw))
	}
	if most := blockHead + lz4.CompressBlockBound(len(raw)); cap(p.out) < most {
		p.out = make([]byte, most)
	}
	lies := 0
	if compress && p.skip == 0 {
		n, err := p.c.CompressBlock(raw, p.out[blockHead:cap(p.out)])
		if err == nil && n > 0 && n < len(raw)-len(raw)/8 {
			lies = n
		} else {
			p.skip = skipped
		}
	} else {
		p.skip = max(0, p.skip-1)
	}
	if lies == 0 {
		lies = copy(p.out[blockHead:cap(p.out)], raw)
	}
	p.out = p.out[:blockHead+lies]
	binary.LittleEndian.PutUint32(p.out, uint32(len(raw)))
	binary.LittleEndian.PutUint32(p.out[4:], uint32(lies))
	binary.LittleEndian.PutUint32(p.out[8:], crc32.Checksum(p.out[blockHead:], castagnoli))
	return p.out, nil
}

// BlockReader reads blocks one after the other.
type BlockReader struct {
	r      io.Reader
	packed []byte
	buf    []byte
}

// NewBlockReader reads from where a block begins to the reader's end.
func NewBlockReader(r io.Reader) *BlockReader { return &BlockReader{r: r} }

// Next is the bytes of the next block, which are good until the one after it;
// io.EOF at the end.
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
	if cap(b.packed) < lies {
		b.packed = make([]byte, min(lies, blockRead))
	}
	var err error
	if b.packed, err = readWhole(b.r, b.packed[:cap(b.packed)], lies); err != nil {
		return nil, damaged("they are cut off")
	}
	if crc32.Checksum(b.packed, castagnoli) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, damaged("a block's checksum does not match")
	}
	if was == lies {
		return b.packed, nil
	}
	if cap(b.buf) < was {
		b.buf = make([]byte, was)
	}
	n, err := lz4.UncompressBlock(b.packed, b.buf[:was])
	if err != nil || n != was {
		return nil, damaged("a block cannot be decompressed")
	}
	return b.buf[:was], nil
}

// blockRead is how much memory is taken for what has not arrived yet.
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
