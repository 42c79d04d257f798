package exec

import (
	"unsafe"

	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// BuildSide gathers the right side of a co-partitioned join: in memory while there is room, and else in a
// file.
type BuildSide[K comparable, W any] struct {
	t     *JoinTable[K, W]
	row   row.Codec[row.Pair[K, W]]
	packs runner.TaskContext
	room  int // bytes; 0 where there is no bound
	bytes int
	raw   []byte
	out   *Writer[row.Pair[K, W]]
}

// NewBuildSide returns one with room for about the given number of rows.
func NewBuildSide[K comparable, W any](c Keyed[K, W], rows int) *BuildSide[K, W] {
	return &BuildSide[K, W]{t: NewJoinTable[K, W](c, rows), row: c.Row}
}

// Limit bounds the memory of the rows by that of a task.
func (s *BuildSide[K, W]) Limit(packs runner.TaskContext) { s.packs, s.room = packs, packs.Memory()/2 }

// InMemory returns how many rows are in memory.
func (s *BuildSide[K, W]) InMemory() int { return len(s.t.keys.Entries) }

// Add takes in rows.
func (s *BuildSide[K, W]) Add(rows []row.Pair[K, W]) error {
	if s.out != nil {
		return s.out.AddAll(0, rows)
	}
	if s.bytes += s.size(rows); s.room == 0 || s.bytes <= s.room {
		return s.t.AddAll(rows)
	}
	s.out = NewWriter(s.packs, s.row, 1)
	s.out.ToFile()
	if err := s.out.AddAll(0, s.t.keys.Entries); err != nil {
		return err
	}
	s.t.keys.Entries = nil
	return s.out.AddAll(0, rows)
}

// measured: of rows without a fixed size, one in measured is encoded to estimate their size.
const measured = 8

// size estimates how many bytes rows take in the table.
func (s *BuildSide[K, W]) size(rows []row.Pair[K, W]) int {
	var p row.Pair[K, W]
	size := len(rows) * (int(unsafe.Sizeof(p)) + tableRow)
	if s.room == 0 || s.row.Flat > 0 {
		return size
	}
	for i := 0; i < len(rows); i += measured {
		s.raw = s.row.Append(s.raw[:0], &rows[i])
		size += min(measured, len(rows)-i) * len(s.raw)
	}
	return size
}

// Close removes the file, if there is one.
func (s *BuildSide[K, W]) Close() {
	if s.out != nil {
		s.out.Close()
	}
}

// With joins the rows of the left with those of a build side.
func (p *HashJoin[K, V, W, U]) With(s *BuildSide[K, W], left Rows[row.Pair[K, V]], yield func([]U) error) error {
	if s.out == nil {
		s.t.Prepare()
		return p.Probe(s.t, left, yield)
	}
	again, done, err := s.out.Reread()
	if err != nil {
		return err
	}
	defer done()
	return p.JoinOnce(s.packs, again, left, yield)
}
