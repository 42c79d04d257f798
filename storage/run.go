package storage

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"

	"github.com/pierrec/lz4/v4"

	"github.com/volley-engine/volley/internal/fault"
)

// A file of sorted records is a sequence of blocks, those of a partition
// together. A block is its length as it was, its length as it lies, its CRC-32C
// (of what lies) and the bytes, compressed with LZ4 where that makes them
// shorter. Records in it are the lengths of key and value, as varints, and
// both. A block holds at least one record and at most about recordBlock.
const (
	recordBlock = 64 << 10
	recordHead  = 12
	recordMost  = 1 << 30 // before memory is allocated for it
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Buckets says where each partition of a file lies, and how many records it
// has.
type Buckets struct {
	Offsets []int64 // one more than partitions
	Records []int64
}

// runFile is an open file of sorted records.
type runFile struct {
	f       *os.File
	offsets []int64
	records []int64
}

func (r *runFile) reader(part int) *RecordReader {
	from, to := r.offsets[part], r.offsets[part+1]
	return NewRecordReader(io.NewSectionReader(r.f, from, to-from))
}

// runWriter writes records that come sorted by partition.
type runWriter struct {
	f       *os.File
	w       *bufio.Writer
	c       lz4.Compressor
	block   []byte
	packed  []byte
	at      int64
	offsets []int64
	records []int64
	parts   int
}

func newRunWriter(f *os.File, parts int) *runWriter {
	return &runWriter{f: f, w: bufio.NewWriterSize(f, 256<<10), parts: parts, offsets: []int64{0}, records: make([]int64, parts)}
}

// add writes a record; partitions do not descend.
func (w *runWriter) add(part int, key, value []byte) error {
	if len(key)+len(value) > recordMost/2 {
		return fault.Newf(fault.NoResources, "shuffle", "a row", "%d bytes are more than a row may have", len(key)+len(value))
	}
	for len(w.offsets) <= part { // the partitions before this one are complete
		if err := w.flush(); err != nil {
			return err
		}
		w.offsets = append(w.offsets, w.at)
	}
	w.block = binary.AppendUvarint(w.block, uint64(len(key)))
	w.block = binary.AppendUvarint(w.block, uint64(len(value)))
	w.block = append(append(w.block, key...), value...)
	w.records[part]++
	if len(w.block) >= recordBlock {
		return w.flush()
	}
	return nil
}

// flush writes the block in hand.
func (w *runWriter) flush() error {
	if len(w.block) == 0 {
		return nil
	}
	if most := lz4.CompressBlockBound(len(w.block)); cap(w.packed) < most {
		w.packed = make([]byte, most)
	}
	n, err := w.c.CompressBlock(w.block, w.packed[:cap(w.packed)])
	lies := w.packed[:n]
	if err != nil || n == 0 || n >= len(w.block) {
		lies = w.block
	}
	var head [recordHead]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(w.block)))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(lies)))
	binary.LittleEndian.PutUint32(head[8:], crc32.Checksum(lies, castagnoli))
	if _, err := w.w.Write(head[:]); err != nil {
		return err
	}
	if _, err := w.w.Write(lies); err != nil {
		return err
	}
	w.at += int64(recordHead + len(lies))
	w.block = w.block[:0]
	return nil
}

func (w *runWriter) finish() (*runFile, error) {
	for len(w.offsets) <= w.parts {
		if err := w.flush(); err != nil {
			return nil, err
		}
		w.offsets = append(w.offsets, w.at)
	}
	return &runFile{f: w.f, offsets: w.offsets, records: w.records}, w.w.Flush()
}

// RecordReader reads the records of one partition of a file.
type RecordReader struct {
	r          io.Reader
	packed     []byte
	block      []byte // what is left of it
	buf        []byte
	key, value []byte
	err        error
}

// NewRecordReader reads from where a partition begins to the reader's end.
func NewRecordReader(r io.Reader) *RecordReader { return &RecordReader{r: r} }

// Next moves to the next record; false at the end, or at an error. Key and
// Value are good until then.
func (r *RecordReader) Next() bool {
	if r.err != nil {
		return false
	}
	for len(r.block) == 0 {
		if r.err = r.fill(); r.err != nil {
			return false
		}
	}
	k, n := binary.Uvarint(r.block)
	v, m := binary.Uvarint(r.block[max(n, 0):])
	if n <= 0 || m <= 0 || k > uint64(len(r.block)) || v > uint64(len(r.block)) || int(k+v) > len(r.block)-n-m {
		r.err = damaged("a record is longer than its block")
		return false
	}
	rest := r.block[n+m:]
	r.key, r.value, r.block = rest[:k], rest[k:k+v], rest[k+v:]
	return true
}

func damaged(what string) error {
	return fault.Newf(fault.Corrupt, "read", "shuffled rows", "%s", what)
}

// fill reads the next block.
func (r *RecordReader) fill() error {
	var head [recordHead]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return damaged("they are cut off")
		}
		return err
	}
	was, lies := int(binary.LittleEndian.Uint32(head[:])), int(binary.LittleEndian.Uint32(head[4:]))
	if was == 0 || lies == 0 || lies > was || was > recordMost {
		return damaged("a block has impossible lengths")
	}
	r.packed = roomFor(r.packed, lies)
	if _, err := io.ReadFull(r.r, r.packed[:lies]); err != nil {
		return damaged("they are cut off")
	}
	if crc32.Checksum(r.packed[:lies], castagnoli) != binary.LittleEndian.Uint32(head[8:]) {
		return damaged("a block's checksum does not match")
	}
	if was == lies {
		r.block = r.packed[:lies]
		return nil
	}
	r.buf = roomFor(r.buf, was)
	n, err := lz4.UncompressBlock(r.packed[:lies], r.buf[:was])
	if err != nil || n != was {
		return damaged("a block cannot be decompressed")
	}
	r.block = r.buf[:was]
	return nil
}

func roomFor(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// Key is the present record's.
func (r *RecordReader) Key() []byte { return r.key }

// Value is the present record's.
func (r *RecordReader) Value() []byte { return r.value }

// Err is what ended the reading, if it was not the end.
func (r *RecordReader) Err() error {
	if r.err == io.EOF {
		return nil
	}
	return r.err
}
