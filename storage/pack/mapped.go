package pack

import (
	"encoding/binary"
	"math"
	"os"
	"sync"
	"unsafe"

	flatbuffers "github.com/google/flatbuffers/go"
	"golang.org/x/sys/unix"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// Split is one split's file, mapped: slices of its batches are views of the
// file and must not be written to or kept after Close.
type Split struct {
	Meta    *Meta
	Number  int
	Rows    int64
	Batches []Batch
	raw     []byte
}

// Batch is one record batch of a split.
type Batch struct {
	First   int64 // position of the batch's first row within the split
	Rows    int
	Labels  []float64
	Weights []float64 // nil where rows have none
	X64     []float64 // dense values row-major, or sparse values by nonzero
	X32     []float32 // the same in single precision
	Offsets []int32   // sparse rows or blobs; Rows+1
	Indices []int32
	Blob    []byte
	Notes   *Notes
}

// Notes cache what folds of a batch have computed about its rows, for later folds.
// They are dropped with the batch, and no result may depend on them.
type Notes struct {
	mu  sync.Mutex
	who any
	has any
}

// Of returns the notes of an owner, new ones where another owner's are here.
func (n *Notes) Of(who any, make func() any) any {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.who != who {
		n.who, n.has = who, make()
	}
	return n.has
}

// RowAt returns the row at a position of the batch's visiting order: four
// distant quarters walked together, position p being row p/4 of quarter p mod
// 4; the rows left over come last.
func (b *Batch) RowAt(p int) int32 {
	quarter := b.Rows / 4
	if p >= 4*quarter {
		return int32(p)
	}
	return int32(p&3*quarter + p>>2)
}

// Visit fills rows with the rows at the positions from `from` on.
func (b *Batch) Visit(rows []int32, from int) {
	quarter := int32(b.Rows / 4)
	i := 0
	for ; i < len(rows) && (from+i)&3 != 0; i++ {
		rows[i] = b.RowAt(from + i)
	}
	for r := int32((from + i) >> 2); r < quarter && i+4 <= len(rows); r, i = r+1, i+4 {
		four := rows[i : i+4 : i+4]
		four[0], four[1], four[2], four[3] = r, r+quarter, r+2*quarter, r+3*quarter
	}
	for ; i < len(rows); i++ {
		rows[i] = b.RowAt(from + i)
	}
}

// OpenSplit maps a split's file and checks its framing against the file's
// size before any part of it is used.
func OpenSplit(path string, m *Meta, split int) (*Split, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, disk.OpenError(path, err)
	}
	defer f.Close()
	want := m.Splits[split]
	info, err := f.Stat()
	if err != nil || info.Size() != want.Bytes || want.Bytes < 32 {
		return nil, fault.Newf(fault.Corrupt, "map", path, "the file should have %d bytes", want.Bytes)
	}
	raw, err := unix.Mmap(int(f.Fd()), 0, int(want.Bytes), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fault.New(fault.NoResources, "map", path, err)
	}
	s := &Split{Meta: m, Number: split, Rows: want.Rows, raw: raw}
	if err := s.parse(); err != nil {
		s.Close()
		return nil, fault.New(fault.Corrupt, "map", path, err)
	}
	return s, nil
}

// Close unmaps the file.
func (s *Split) Close() error { return unix.Munmap(s.raw) }

// Bytes returns the mapped file's content, to be sent.
func (s *Split) Bytes() []byte { return s.raw }

// parse finds the record batches through the footer.
func (s *Split) parse() (err error) {
	defer func() {
		if r := recover(); r != nil { // the flatbuffer accessors panic on offsets out of range
			err = fault.Newf(fault.Corrupt, "parse", "footer", "%v", r)
		}
	}()
	n := len(s.raw)
	footerLen := int(binary.LittleEndian.Uint32(s.raw[n-10:]))
	if footerLen <= 0 || footerLen > n-18 {
		return fault.Newf(fault.Corrupt, "parse", "footer", "its length %d is not within the file", footerLen)
	}
	footer := rootTable(s.raw[n-10-footerLen : n-10])
	blocks := footer.Offset(10)
	if blocks == 0 {
		return nil
	}
	at, count := footer.Vector(flatbuffers.UOffsetT(blocks)), footer.VectorLen(flatbuffers.UOffsetT(blocks))
	for i := range count {
		pos := at + flatbuffers.UOffsetT(i*24)
		offset, meta := footer.GetInt64(pos), int64(footer.GetInt32(pos+8))
		body := footer.GetInt64(pos + 16)
		if err := s.addBatch(offset, meta, body); err != nil {
			return err
		}
	}
	if got := s.positions(); got != s.Rows {
		return fault.Newf(fault.Corrupt, "parse", "footer", "the file has %d rows, want %d", got, s.Rows)
	}
	return nil
}

func (s *Split) positions() int64 {
	if len(s.Batches) == 0 {
		return 0
	}
	last := s.Batches[len(s.Batches)-1]
	return last.First + int64(last.Rows)
}

func rootTable(buf []byte) *flatbuffers.Table {
	t := &flatbuffers.Table{Bytes: buf}
	t.Pos = flatbuffers.GetUOffsetT(buf)
	return t
}

// addBatch reads one record batch's message and takes views of its buffers.
func (s *Split) addBatch(offset, meta, body int64) error {
	size := int64(len(s.raw))
	if offset < 8 || meta < 16 || body < 0 || offset > size || meta > size-offset || body > size-offset-meta {
		return fault.Newf(fault.Corrupt, "parse", "record batch", "it lies outside the file")
	}
	msg := rootTable(s.raw[offset+8 : offset+meta])
	var rec flatbuffers.Table
	msg.Union(&rec, flatbuffers.UOffsetT(msg.Offset(8)))
	rows := rec.GetInt64Slot(4, 0)
	if rows < 0 || rows > batchRows {
		return fault.Newf(fault.Corrupt, "parse", "record batch", "it claims %d rows", rows)
	}
	bufs := bufferViews(&rec, s.raw[offset+meta:offset+meta+body])
	b := Batch{First: s.positions(), Rows: int(rows), Notes: &Notes{}}
	if err := b.take(s.Meta, bufs); err != nil {
		return err
	}
	s.Batches = append(s.Batches, b)
	return nil
}

// bufferViews returns the batch's buffers as slices of its body; slicing checks
// each against the body's length.
func bufferViews(rec *flatbuffers.Table, body []byte) [][]byte {
	o := flatbuffers.UOffsetT(rec.Offset(8))
	at, n := rec.Vector(o), rec.VectorLen(o)
	views := make([][]byte, n)
	for i := range views {
		pos := at + flatbuffers.UOffsetT(i*16)
		from, length := rec.GetInt64(pos), rec.GetInt64(pos+8)
		views[i] = body[from : from+length : from+length]
	}
	return views
}

// take distributes the buffers over the layout's columns: each array has a
// validity buffer, absent here, before its own.
func (b *Batch) take(m *Meta, bufs [][]byte) error {
	n := b.Rows
	switch m.Layout {
	case DenseLayout:
		b.Labels = view[float64](bufs[1], n)
		b.takeValues(m, bufs[4], n*m.Features)
		return b.takeWeights(m, bufs[5:])
	case SparseLayout:
		b.Labels = view[float64](bufs[1], n)
		b.Offsets = view[int32](bufs[3], n+1)
		nnz := int(b.Offsets[n])
		b.Indices = view[int32](bufs[5], nnz)
		b.takeValues(m, bufs[9], nnz)
		if err := b.takeWeights(m, bufs[10:]); err != nil {
			return err
		}
		return b.checkSparse(m.Features)
	}
	b.Offsets = view[int32](bufs[1], n+1)
	b.Blob = bufs[2]
	return checkOffsets(b.Offsets, len(b.Blob))
}

// takeWeights reads the buffers of the last column, where rows have weights: none is
// less than zero.
func (b *Batch) takeWeights(m *Meta, bufs [][]byte) error {
	if !m.Weighted {
		return nil
	}
	b.Weights = view[float64](bufs[1], b.Rows)
	for _, w := range b.Weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return fault.Newf(fault.Corrupt, "parse", "record batch", "it has the weight %v", w)
		}
	}
	return nil
}

func (b *Batch) takeValues(m *Meta, buf []byte, n int) {
	if m.Float32 {
		b.X32 = view[float32](buf, n)
	} else {
		b.X64 = view[float64](buf, n)
	}
}

// view reinterprets the first n numbers of a buffer; slicing checks length.
func view[T any](buf []byte, n int) []T {
	var zero T
	buf = buf[:n*int(unsafe.Sizeof(zero))]
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(buf))), n)
}

// checkSparse makes sure that kernels may index without checks.
func (b *Batch) checkSparse(features int) error {
	if err := checkOffsets(b.Offsets, len(b.Indices)); err != nil {
		return err
	}
	for _, j := range b.Indices {
		if uint32(j) >= uint32(features) {
			return fault.Newf(fault.Corrupt, "parse", "record batch", "column %d is not below %d", j, features)
		}
	}
	return nil
}

func checkOffsets(off []int32, n int) error {
	last := int32(0)
	for _, o := range off {
		if o < last || int(o) > n {
			return fault.Newf(fault.Corrupt, "parse", "record batch", "offset %d after %d, of %d", o, last, n)
		}
		last = o
	}
	return nil
}
