package exec

import (
	"fmt"

	"github.com/volley-engine/volley/rdd/internal/row"
)

// HotKey is the key that most rows of a map task have, if that is a great part
// of them.
type HotKey struct {
	Key  string `cbor:",omitempty"`
	Rows int64  `cbor:",omitempty"` // that have it, about
	All  int64  `cbor:",omitempty"`
}

// hotSample is how many rows go by for one that is looked at, on average; a key is hot from
// hotShare of the rows on, if there are hotLeast of them.
const (
	hotSample = 16
	hotShare  = 0.2
	hotLeast  = 10_000
	hotSeats  = 16
)

// HotKeys finds the most frequent keys of a stream in little memory: each of a
// few seats counts one key, and a key without a seat makes all of them count
// down (Misra and Gries).
type HotKeys[K comparable] struct {
	seats map[uint64]*hotCandidate[K] // by the key's hash
	seen  int64
	rows  int64
	skip  int
}

type hotCandidate[K comparable] struct {
	key K
	n   int64
}

func (h *HotKeys[K]) look(key K, hash uint64) {
	h.seen++
	if h.seats == nil {
		h.seats = map[uint64]*hotCandidate[K]{}
	}
	if s := h.seats[hash]; s != nil {
		s.n++
		return
	}
	if len(h.seats) < hotSeats {
		h.seats[hash] = &hotCandidate[K]{key, 1}
		return
	}
	for k, s := range h.seats {
		if s.n--; s.n == 0 {
			delete(h.seats, k)
		}
	}
}

// Watch samples the keys of a batch, whose hashes are given.
func Watch[K comparable, V any](h *HotKeys[K], rows []row.Pair[K, V], hashes []uint64) {
	h.rows += int64(len(rows))
	for ; h.skip < len(rows); h.skip += 1 + int(row.Mix(uint64(h.seen))%(2*hotSample-1)) { // no rhythm of the rows' own
		h.look(rows[h.skip].Key, hashes[h.skip])
	}
	h.skip -= len(rows)
}

// Hottest returns the most frequent key.
func (h *HotKeys[K]) Hottest() HotKey {
	out := HotKey{All: h.rows}
	var most int64
	for _, s := range h.seats {
		if text := fmt.Sprint(s.key); s.n > most || s.n == most && text < out.Key {
			most, out.Key = s.n, text
		}
	}
	if h.seen > 0 {
		out.Rows = most * h.rows / h.seen
	}
	return out
}

// HotOf returns the key that a great part of all rows of a shuffle have, and that part; "" where there is
// none.
func HotOf(outputs []HotKey) (key string, share float64) {
	rows := map[string]int64{}
	var all int64
	for _, o := range outputs {
		rows[o.Key] += o.Rows
		all += o.All
	}
	var most int64
	for k, n := range rows {
		if n > most {
			key, most = k, n
		}
	}
	if all < hotLeast || float64(most) < hotShare*float64(all) {
		return "", 0
	}
	return key, float64(most) / float64(all)
}
