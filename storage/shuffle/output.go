package shuffle

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/storage/objects"
)

// Span is a run of neighbouring partitions: From, and those up to Through, the
// latter left out.
type Span struct{ From, Through int }

// extent is a piece of a writer's output.
type extent struct{ from, to int64 }

// Writer writes the rows of a number of partitions, each in order of arrival.
// Rows are collected in blocks; a small output stays in memory, a larger one
// goes to a file.
type Writer struct {
	dir     string
	open    [][]byte // rows by partition that are no block yet
	extents [][]extent
	Rows    []int64 // by partition, counted by the caller
	Raw     []int64 // bytes by partition, as they were
	Block   int     // bytes beyond which a partition is to be flushed
	// Sums are, where the order of rows has no meaning, the sums of their hashes by
	// partition, which the caller computes; nil where the order matters.
	Sums   []uint64
	hashes []xxhash.Digest // of what each partition has, in order
	most   int             // bytes in memory
	packer blockPacker
	worth  float64 // of compression
	mem    []byte
	f      *os.File
	at     int64
}

// The size of a block, and how much a writer keeps in memory at the most.
const (
	blockBytesMost  = 64 << 10
	blockBytesLeast = 1 << 10
	writeBuffer     = 256 << 10
)

// NewWriter makes a writer whose file, if it needs one, is in dir. Rows not yet
// in blocks take at most about budget bytes, and up to most bytes stay in
// memory.
func NewWriter(dir string, partitions, budget, most int) *Writer {
	block := min(blockBytesMost, max(blockBytesLeast, budget/max(1, 2*partitions)))
	return &Writer{dir: dir, open: make([][]byte, partitions), extents: make([][]extent, partitions),
		Rows: make([]int64, partitions), Raw: make([]int64, partitions), Block: block, most: most,
		worth: worthSending}
}

// StaysHere notes that no other machine reads the rows.
func (w *Writer) StaysHere() { w.worth = worthKeeping }

// ToFile keeps nothing in memory, however small it is.
func (w *Writer) ToFile() { w.most = -1 }

// Room returns the buffer to which a partition's rows are appended. Once it has
// more than Block bytes, call Flush.
func (w *Writer) Room(part int) *[]byte { return &w.open[part] }

// Flush makes a block of a partition's buffered rows.
func (w *Writer) Flush(part int) error {
	raw := w.open[part]
	if len(raw) == 0 {
		return nil
	}
	if w.mem == nil {
		w.mem = spareMemory()
	}
	if w.Sums == nil {
		w.hash(part, raw)
	}
	before, worth := len(w.mem), w.worth
	if w.f == nil && len(w.mem)+len(raw) <= w.most {
		worth = 0 // it stays in memory
	}
	var err error
	if w.mem, err = w.packer.pack(w.mem, raw, worth); err != nil {
		return err
	}
	w.Raw[part] += int64(len(raw))
	if len(raw) > 4*w.Block {
		w.open[part] = nil // a row that was large need not be the rule
	} else {
		w.open[part] = raw[:0]
	}
	e := extent{w.at, w.at + int64(len(w.mem)-before)}
	w.at = e.to
	if have := w.extents[part]; len(have) > 0 && have[len(have)-1].to == e.from {
		have[len(have)-1].to = e.to
	} else {
		w.extents[part] = append(have, e)
	}
	if len(w.mem) > max(w.most, writeBuffer) || w.f != nil && len(w.mem) > writeBuffer {
		return w.write()
	}
	return nil
}

// hash adds rows to the digest of a partition, independent of their blocks.
func (w *Writer) hash(part int, raw []byte) {
	if w.hashes == nil {
		w.hashes = make([]xxhash.Digest, len(w.open))
		for i := range w.hashes {
			w.hashes[i].Reset()
		}
	}
	_, _ = w.hashes[part].Write(raw)
}

// digest returns a digest of the rows that were written, in their order if the
// order matters.
func (w *Writer) digest() uint64 {
	sums := w.Sums
	for i := range w.hashes {
		sums = append(sums, w.hashes[i].Sum64())
	}
	raw := make([]byte, 0, 8*(len(sums)+len(w.Rows)))
	for _, s := range sums {
		raw = binary.LittleEndian.AppendUint64(raw, s)
	}
	for _, n := range w.Rows {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(n))
	}
	return xxhash.Sum64(raw)
}

func (w *Writer) write() (err error) {
	if w.f == nil {
		if w.f, err = os.CreateTemp(w.dir, "rows-*"); err != nil {
			return disk.WriteError("write rows to", w.dir, err)
		}
	}
	_, err = w.f.Write(w.mem)
	w.mem = w.mem[:0]
	return disk.WriteError("write rows to", w.dir, err)
}

// Finish makes blocks of all buffered rows. The writer cannot be used afterwards.
func (w *Writer) Finish() (_ *Output, err error) {
	defer w.Close()
	for part := range w.open {
		if err := w.Flush(part); err != nil {
			return nil, err
		}
	}
	b := &Output{extents: w.extents, Rows: w.Rows, Raw: w.Raw, Digest: w.digest()}
	if w.f == nil && len(w.mem) > w.most {
		err = w.write()
	}
	if w.f == nil {
		b.mem = bytes.Clone(w.mem)
		return b, err
	}
	if err == nil && len(w.mem) > 0 {
		err = w.write()
	}
	if err == nil {
		err = disk.WriteError("write rows to", w.dir, w.f.Close())
	}
	if err != nil {
		return nil, err
	}
	b.path, b.size, w.f = w.f.Name(), w.at, nil
	return b, nil
}

// Close drops an unfinished output.
func (w *Writer) Close() {
	if w.f != nil {
		w.f.Close()
		os.Remove(w.f.Name())
	}
	if mem := w.mem; cap(mem) > 0 && cap(mem) <= spareMost {
		spares.Put(&mem)
	}
	w.f, w.mem, w.open = nil, nil, nil
}

// spares are the buffers of finished writers, for reuse.
var spares sync.Pool

const spareMost = 16 << 20

func spareMemory() []byte {
	if b, ok := spares.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, blockBytesMost)
}

// Output is the rows of a number of partitions, in memory or in a file.
type Output struct {
	Digest  uint64 // of the rows, whatever memory there was and however they are compressed
	path    string
	mem     []byte
	size    int64
	extents [][]extent
	Rows    []int64 // by partition
	Raw     []int64 // bytes by partition, as they were
}

// Size returns how many bytes it takes.
func (b *Output) Size() int64 { return b.size }

// Counted returns a reader of partitions of which it is counted how many bytes are read. Of what is in memory, and is
// read in place, all is counted at once.
func Counted(r io.ReadCloser, count func(bytes int64)) io.ReadCloser {
	m, here := r.(*partitionInMemory)
	if !here {
		return counted{r, count}
	}
	for _, e := range m.left {
		count(e.to - e.from)
	}
	return r
}

type counted struct {
	io.ReadCloser
	count func(int64)
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.count(int64(n))
	return n, err
}

// Len returns the number of partitions.
func (b *Output) Len() int { return len(b.extents) }

// Open reads the blocks of some partitions, one partition after the other.
func (b *Output) Open(span Span) (io.ReadCloser, error) {
	if b.path == "" {
		return &partitionInMemory{mem: b.mem, left: slices.Concat(b.extents[span.From:span.Through]...)}, nil
	}
	f, size, err := openRows(b.path)
	if err != nil {
		return nil, err
	}
	if size < b.size {
		f.Close()
		return nil, damaged("their file is cut off")
	}
	var pieces []io.Reader
	for _, part := range b.extents[span.From:span.Through] {
		for _, e := range part {
			pieces = append(pieces, io.NewSectionReader(f, e.from, e.to-e.from))
		}
	}
	return openedOutput{io.MultiReader(pieces...), f}, nil
}

// partitionInMemory reads pieces of memory without a copy.
type partitionInMemory struct {
	mem  []byte
	left []extent
}

// take returns the next n bytes, which must not be changed; nil where they are not contiguous.
func (m *partitionInMemory) take(n int) []byte {
	if len(m.left) == 0 || m.left[0].to-m.left[0].from < int64(n) {
		return nil
	}
	e := &m.left[0]
	b := m.mem[e.from : e.from+int64(n) : e.from+int64(n)]
	if e.from += int64(n); e.from == e.to {
		m.left = m.left[1:]
	}
	return b
}

func (m *partitionInMemory) Read(p []byte) (int, error) {
	if len(m.left) == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), m.left[0].to-m.left[0].from)
	return copy(p, m.take(int(n))), nil
}

func (*partitionInMemory) Close() error { return nil }

// Path returns the file that the rows are in; empty where they are in memory.
func (b *Output) Path() string { return b.path }

// OpenRows reads all blocks of a file of rows, or of an object.
func OpenRows(path string) (io.ReadCloser, error) {
	f, _, err := openRows(path)
	return f, err
}

// rowsFile is an open file of rows.
type rowsFile interface {
	io.ReadCloser
	io.ReaderAt
}

// openRows opens a file of rows, and returns how many bytes it has.
func openRows(path string) (rowsFile, int64, error) {
	if objects.Is(path) {
		r, err := objects.Open(path)
		if err != nil {
			return nil, 0, err
		}
		return r, r.Size, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, disk.OpenError(path, err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, disk.OpenError(path, err)
	}
	return f, info.Size(), nil
}

// MoveTo moves rows from their file to an object.
func (b *Output) MoveTo(ctx context.Context, name string) error {
	f, err := os.Open(b.path)
	if err != nil {
		return disk.OpenError(b.path, err)
	}
	defer f.Close()
	w, err := objects.Create(ctx, name)
	if err != nil {
		return err
	}
	if _, err = io.Copy(w, f); err == nil {
		err = w.Close()
	}
	os.Remove(b.path)
	if err != nil {
		w.Abort()
		return err
	}
	b.path = name
	return nil
}

// Remove deletes the rows.
func (b *Output) Remove() {
	switch {
	case objects.Is(b.path):
		_ = objects.Remove(context.Background(), b.path) // it belongs to a job that has what it needs
	case b.path != "":
		os.Remove(b.path)
	}
	b.mem = nil
}

type openedOutput struct {
	io.Reader
	io.Closer
}
