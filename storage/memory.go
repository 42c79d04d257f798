package storage

import (
	"runtime/debug"
	"sync"
)

// Decoders count as memory of the process that has started them: each is told to keep to
// a share of its limit, which the process then does without for as long as there is one.

// The least and the most that a decoder is told to keep to: below that there is garbage to
// collect all the time, and above it nothing is gained.
const (
	decoderLeast = 20 << 20
	decoderMost  = 64 << 20
	decoderShare = 8 // a limit's part
)

// memoryBudget is what this process and its decoders may take, and how many there are.
type memoryBudget struct {
	mu    sync.Mutex
	limit int64 // of this process and all it starts; 0 is none
	alive int64
}

var memoryLimit memoryBudget

// LimitMemory sets a soft limit on the memory of this process and of the decoders that it
// starts, all together; least is below which it does not go for itself.
func LimitMemory(limit, least int64) {
	b := &memoryLimit
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = max(limit, least)
	b.set()
}

// of is the limit; 0 is none.
func (b *memoryBudget) of() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit
}

// share is what a decoder is told to keep to; 0 is no limit.
func (b *memoryBudget) share() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return shareOfDecoder(b.limit)
}

func shareOfDecoder(limit int64) int64 {
	if limit == 0 {
		return 0
	}
	return min(decoderMost, max(decoderLeast, limit/decoderShare))
}

// count notes that a decoder was started, or has ended (-1).
func (b *memoryBudget) count(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.alive += n
	b.set()
}

// set has the process do without what its decoders may take, but keep the half.
func (b *memoryBudget) set() {
	if b.limit > 0 {
		debug.SetMemoryLimit(max(b.limit/2, b.limit-b.alive*shareOfDecoder(b.limit)))
	}
}
