package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"os"
	"slices"
)

// Sorter takes records in any order and gives them back by partition and key,
// those of one key in the order in which they came. It keeps up to a budget of
// bytes in memory; beyond that it writes sorted runs to files, which are
// merged at the end (external merge sort).
type Sorter struct {
	dir    string
	budget int
	arena  []byte
	list   []sortEntry
	runs   []*runFile
	parts  int
	Spills int // runs written
}

// sortEntry is a record of the arena: its partition, the first bytes of its
// key, which decide most comparisons, and where it lies.
type sortEntry struct {
	prefix     uint64
	at         int
	part       uint32
	key, value uint32 // lengths
}

const entryBytes = 32

// NewSorter makes a sorter of records for a number of partitions, with files
// under dir.
func NewSorter(dir string, partitions, budget int) *Sorter {
	return &Sorter{dir: dir, parts: partitions, budget: max(budget, 1<<16)}
}

// Add takes a record, which it copies.
func (s *Sorter) Add(part int, key, value []byte) error {
	if len(s.arena)+len(key)+len(value)+entryBytes*(len(s.list)+1) > s.budget && len(s.list) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.list = append(s.list, sortEntry{prefix: prefixOf(key), at: len(s.arena), part: uint32(part), key: uint32(len(key)), value: uint32(len(value))})
	s.arena = append(append(s.arena, key...), value...)
	return nil
}

func prefixOf(key []byte) uint64 {
	var p [8]byte
	copy(p[:], key)
	return binary.BigEndian.Uint64(p[:])
}

func (s *Sorter) keyOf(e *sortEntry) []byte { return s.arena[e.at : e.at+int(e.key)] }

func (s *Sorter) sort() {
	slices.SortFunc(s.list, func(a, b sortEntry) int {
		if c := cmp.Compare(a.part, b.part); c != 0 {
			return c
		}
		if c := cmp.Compare(a.prefix, b.prefix); c != 0 {
			return c
		}
		if c := bytes.Compare(s.keyOf(&a), s.keyOf(&b)); c != 0 {
			return c
		}
		return cmp.Compare(a.at, b.at)
	})
}

// spill writes what is in memory to a run.
func (s *Sorter) spill() error {
	f, err := os.CreateTemp(s.dir, "run-*")
	if err != nil {
		return diskError("spill to", s.dir, err)
	}
	w := newRunWriter(f, s.parts)
	if err = s.writeTo(w); err == nil {
		var run *runFile
		if run, err = w.finish(); err == nil {
			s.runs = append(s.runs, run)
			s.Spills++
			return nil
		}
	}
	f.Close()
	os.Remove(f.Name())
	return diskError("spill to", s.dir, err)
}

func (s *Sorter) writeTo(w *runWriter) error {
	s.sort()
	for i := range s.list {
		e := &s.list[i]
		from := e.at + int(e.key)
		if err := w.add(int(e.part), s.keyOf(e), s.arena[from:from+int(e.value)]); err != nil {
			return err
		}
	}
	s.list, s.arena = s.list[:0], s.arena[:0]
	return nil
}

// Finish writes all records, merged, to a file, and says where each partition
// lies in it. The sorter is of no use any more.
func (s *Sorter) Finish(path string) (_ *Buckets, err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, diskError("write", path, err)
	}
	defer func() {
		s.Close()
		if err != nil {
			f.Close()
			os.Remove(path)
		}
	}()
	w := newRunWriter(f, s.parts)
	if len(s.runs) == 0 {
		err = s.writeTo(w)
	} else {
		err = s.merge(w)
	}
	if err != nil {
		return nil, diskError("write", path, err)
	}
	run, err := w.finish()
	if err != nil {
		return nil, diskError("write", path, err)
	}
	return &Buckets{Offsets: run.offsets, Records: run.records}, run.f.Close()
}

// merge spills what is left and merges the runs, partition by partition.
func (s *Sorter) merge(w *runWriter) error {
	if len(s.list) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.arena, s.list = nil, nil
	for part := range s.parts {
		var streams []*RecordReader
		for _, r := range s.runs {
			streams = append(streams, r.reader(part))
		}
		m, err := Merge(streams)
		if err != nil {
			return err
		}
		for m.Next() {
			if err := w.add(part, m.Key(), m.Value()); err != nil {
				return err
			}
		}
		if err := m.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Close gives up the sorter and removes its files.
func (s *Sorter) Close() error {
	var errs []error
	for _, r := range s.runs {
		errs = append(errs, r.f.Close(), os.Remove(r.f.Name()))
	}
	s.runs, s.arena, s.list = nil, nil, nil
	return errors.Join(errs...)
}
