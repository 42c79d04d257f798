package pack

import (
	"sync"

	"github.com/volley-engine/volley/internal/fault"
)

// allowance is what the building of a pack may take on disk: no more than the cache's
// budget, however little the input was from which its rows were unpacked. Others' packs
// make room for it as it grows, and not when it is too late.
type allowance struct {
	cache *Cache
	mu    struct {
		sync.Mutex
		taken   int64
		cleared int64 // for which there is room
	}
}

// allowanceLeast is what any pack may take.
const allowanceLeast = 1 << 20

// clearAhead is for how much more than is asked for room is made.
const clearAhead = 64 << 20

// take asks for more bytes, before they are written.
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
