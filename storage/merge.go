package storage

import (
	"bytes"
	"container/heap"
)

// Merged gives the records of several sorted streams in the order of their
// keys; those of one key in the order of the streams.
type Merged struct {
	heads  mergeHeap
	begun  bool
	err    error
	failed int // stream of the error
}

type mergeHead struct {
	*RecordReader
	prefix uint64
	index  int
}

type mergeHeap []mergeHead

func (h mergeHeap) Len() int { return len(h) }

func (h mergeHeap) Less(i, j int) bool {
	if h[i].prefix != h[j].prefix {
		return h[i].prefix < h[j].prefix
	}
	if c := bytes.Compare(h[i].Key(), h[j].Key()); c != 0 {
		return c < 0
	}
	return h[i].index < h[j].index
}

func (h mergeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *mergeHeap) Push(x any)   { *h = append(*h, x.(mergeHead)) }

func (h *mergeHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// Merge begins a merge.
func Merge(streams []*RecordReader) (*Merged, error) {
	m := &Merged{}
	for i, s := range streams {
		if s.Next() {
			m.heads = append(m.heads, mergeHead{s, prefixOf(s.Key()), i})
		} else if s.Err() != nil {
			m.failed = i
			return m, s.Err()
		}
	}
	heap.Init(&m.heads)
	return m, nil
}

// Next moves to the next record; false at the end, or at an error. Key and
// Value are good until then.
func (m *Merged) Next() bool {
	if m.err != nil || len(m.heads) == 0 {
		return false
	}
	if !m.begun {
		m.begun = true
		return true
	}
	h := &m.heads[0]
	switch {
	case h.Next():
		h.prefix = prefixOf(h.Key())
		heap.Fix(&m.heads, 0)
	case h.Err() != nil:
		m.err, m.failed = h.Err(), h.index
		return false
	default:
		heap.Pop(&m.heads)
	}
	return len(m.heads) > 0
}

// Key is the present record's.
func (m *Merged) Key() []byte { return m.heads[0].Key() }

// Value is the present record's.
func (m *Merged) Value() []byte { return m.heads[0].Value() }

// Failed is the number of the stream that an error is of.
func (m *Merged) Failed() int { return m.failed }

// Err is what ended the merge, if it was not the end.
func (m *Merged) Err() error { return m.err }
