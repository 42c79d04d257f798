package exec

import "sync"

// TablePool holds tables for one task after the other, so that each begins with the memory that the one
// before it needed.
type TablePool[K comparable, C any] struct {
	Keyed Keyed[K, C]
	pool  sync.Pool
}

// Get returns an empty table.
func (p *TablePool[K, C]) Get() *Table[K, C] {
	if t, ok := p.pool.Get().(*Table[K, C]); ok {
		return t
	}
	return newTable[K, C](p.Keyed.Key, p.Keyed.Hash, 0)
}

// Put takes a table back.
func (p *TablePool[K, C]) Put(t *Table[K, C]) {
	if t.pooled() {
		t.Clear()
		p.pool.Put(t)
	}
}
