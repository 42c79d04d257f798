package pack

import (
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/memory"
	"github.com/volley-engine/volley/internal/raw"
	"github.com/volley-engine/volley/storage/input/rows"
)

// spoolMemory is how many bytes of chunks a load keeps in memory, at the most, before the
// rest goes to a temporary file; where memory has a limit, they are at the most a quarter.
const (
	spoolMemory = 48 << 20
	spoolShare  = 4
)

// spoolPage is what chunks in the file begin at multiples of: pages of file systems.
const spoolPage = 4096

// spool keeps chunks between the pass that reads the input and the pass that writes
// splits: the first ones in memory, the rest in an unlinked file. The space of chunks
// read for the last time is freed, so that spool and splits together are never much
// larger than either.
type spool struct {
	dir  string
	disk *allowance
	most int64 // bytes in memory
	mu   struct {
		sync.Mutex
		file *os.File
		end  int64
		mem  int64
		// onDisk is how much of the file has not been given up.
		onDisk int64
	}
}

// spooled is one chunk in a spool.
type spooled struct {
	chunk *rows.Chunk // slices are nil where the data is in the file
	rows  int
	off   int64
	lens  [6]int // labels, values, offsets, indices, blob bytes, weights
	blobs []int32
	left  atomic.Int32 // how often it is still to be read, where that is known
}

func newSpool(dir string, disk *allowance) *spool {
	s := &spool{dir: dir, disk: disk, most: spoolMemory}
	if limit := memory.Limit(); limit > 0 {
		s.most = min(spoolMemory, limit/spoolShare)
	}
	return s
}

func (s *spool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.file != nil {
		s.mu.file.Close()
		s.mu.file = nil
		s.disk.giveBack(s.mu.onDisk)
	}
}

// done frees a chunk that was read for the last time.
func (s *spool) done(h *spooled) {
	if h.left.Add(-1) != 0 {
		return
	}
	var size int64
	for _, n := range h.lens {
		size += int64(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if size == 0 {
		s.mu.mem -= h.chunk.Bytes()
		h.chunk = nil
		return
	}
	size = (size + spoolPage - 1) / spoolPage * spoolPage
	if unix.Fallocate(int(s.mu.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, h.off, size) == nil {
		s.disk.giveBack(size)
		s.mu.onDisk -= size
	}
}

// add takes ownership of a chunk.
func (s *spool) add(c *rows.Chunk) (*spooled, error) {
	h := &spooled{chunk: c, rows: c.Rows()}
	s.mu.Lock()
	fits := s.mu.mem+c.Bytes() <= s.most
	if fits {
		s.mu.mem += c.Bytes()
	}
	s.mu.Unlock()
	if fits {
		c.Trim()
		return h, nil
	}
	return h, s.spill(h)
}

// spill writes a chunk's slices one after the other.
func (s *spool) spill(h *spooled) error {
	parts := h.slices()
	var size int64
	for i, p := range parts {
		h.lens[i] = len(p)
		size += int64(len(p))
	}
	f, off, err := s.reserve(size)
	if err != nil {
		return err
	}
	h.off = off
	for _, p := range parts {
		if _, err := f.WriteAt(p, off); err != nil {
			return disk.WriteError("spool input to", s.dir, err)
		}
		off += int64(len(p))
	}
	h.chunk = &rows.Chunk{Texts: h.chunk.Texts, Width: h.chunk.Width, Same: h.chunk.Same, Where: h.chunk.Where}
	return nil
}

func (s *spool) reserve(size int64) (*os.File, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.file == nil {
		f, err := os.CreateTemp(s.dir, "spool-*")
		if err != nil {
			return nil, 0, disk.WriteError("spool input to", s.dir, err)
		}
		os.Remove(f.Name()) // the file lives as long as it is open, a killed run included
		s.mu.file = f
	}
	size = (size + spoolPage - 1) / spoolPage * spoolPage
	if err := s.disk.take(size); err != nil {
		return nil, 0, err
	}
	off := s.mu.end
	s.mu.end += size
	s.mu.onDisk += size
	return s.mu.file, off, nil
}

// slices views the chunk's data as bytes, in the order that load expects.
func (h *spooled) slices() [6][]byte {
	c := h.chunk
	var blob []byte
	if c.Blobs != nil {
		for _, b := range c.Blobs {
			h.blobs = append(h.blobs, int32(len(b)))
			blob = append(blob, b...)
		}
	}
	return [6][]byte{raw.Bytes(c.Labels), raw.Bytes(c.Values), raw.Bytes(c.Offsets), raw.Bytes(c.Indices), blob,
		raw.Bytes(c.Weights)}
}

// load reads a chunk back into memory.
func (s *spool) load(h *spooled) (*rows.Chunk, error) {
	if h.lens == [6]int{} {
		return h.chunk, nil
	}
	s.mu.Lock()
	f := s.mu.file
	s.mu.Unlock()
	c := &rows.Chunk{Texts: h.chunk.Texts, Width: h.chunk.Width, Same: h.chunk.Same, Where: h.chunk.Where}
	c.Labels = make([]float64, h.lens[0]/8)
	c.Values = make([]float64, h.lens[1]/8)
	c.Offsets = make([]int64, h.lens[2]/8)
	c.Indices = make([]int32, h.lens[3]/4)
	blob := make([]byte, h.lens[4])
	if h.lens[5] > 0 {
		c.Weights = make([]float64, h.lens[5]/8)
	}
	off := h.off
	for _, p := range [][]byte{raw.Bytes(c.Labels), raw.Bytes(c.Values), raw.Bytes(c.Offsets), raw.Bytes(c.Indices),
		blob, raw.Bytes(c.Weights)} {
		if _, err := f.ReadAt(p, off); err != nil {
			return nil, disk.WriteError("read the spool in", s.dir, err)
		}
		off += int64(len(p))
	}
	for _, n := range h.blobs {
		c.Blobs = append(c.Blobs, blob[:n:n])
		blob = blob[n:]
	}
	return c, nil
}
