package pack

import (
	"sync"

	"github.com/volley-engine/volley/internal/fault"
)

// allowance bounds the disk space for building a pack: no more than the cache's budget,
// however small its compressed input. Other packs are evicted as it grows, before the
// disk is full.
type allowance struct {
	cache *Cache
	mu    struct {
		sync.Mutex
		taken   int64
		cleared int64 // for which space was made
	}
}

// allowanceLeast is how many bytes any pack may take.
const allowanceLeast = 1 << 20

// clearAhead is how much more space is made than requested.
const clearAhead = 64 << 20

// take requests more bytes, before they are written.
func (a *allowance) take(bytes int64) error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.taken+bytes > max(a.cache.budget, allowanceLeast) {
		return fault.Newf(fault.NoResources, "pack", "the input",
			"its rows take more than the %d MiB of disk that packs may have", a.cache.budget>>20).
			WithHint("raise --disk, if that many are wanted")
	}
	if a.mu.taken += bytes; a.mu.taken > a.mu.cleared {
		a.mu.cleared = min(a.mu.taken+clearAhead, max(a.cache.budget, a.mu.taken))
		a.cache.evict(a.mu.cleared)
	}
	return nil
}

// giveBack returns bytes to the allowance.
func (a *allowance) giveBack(bytes int64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.taken -= bytes
}
