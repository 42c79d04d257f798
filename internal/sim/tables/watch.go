package tables

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/volley-engine/volley/tables/consistency"
)

// read holds what a worker reads against section 8 of the contract.
func (w *world) read(k *worker, row consistency.Row, v set) {
	if !k.counts() {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(v)) {
		if n := v[id]; n != 1 {
			w.violate("tables.once", "worker %d reads update %d of row %d %d times", k.id, id, row, n)
		}
	}
	for _, q := range w.workers {
		last := -1
		for _, c := range slices.Sorted(maps.Keys(q.done)) {
			for _, u := range q.done[c] {
				if u.row == row {
					last = w.sees(k, q, u, v[u.id] > 0, last)
				}
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v)) {
		q := w.workers[w.updates[id].worker]
		if u := w.updates[id]; !w.o.Eager && q != k && q.counts() && !u.back && u.clock >= q.clock {
			w.violate("tables.early", "worker %d sees update %d of worker %d, of clock %d, which is not finished", k.id,
				id, q.id, u.clock)
		}
	}
	if w.o.Exact() {
		for _, id := range slices.Sorted(maps.Keys(v)) {
			if u := w.updates[id]; u.back || u.worker != k.id && u.clock >= k.clock {
				w.violate("tables.exact", "worker %d at clock %d reads update %d of worker %d at clock %d", k.id,
					k.clock, id, u.worker, u.clock)
			}
		}
	}
}

// sees holds whether a worker sees an update against what it must see; last is the first that it did not see of the
// same worker and row, or -1.
func (w *world) sees(k, q *worker, u *update, seen bool, last int) int {
	switch {
	case !seen && q == k:
		w.violate("tables.own", "worker %d at clock %d does not see its own update %d of clock %d", k.id, k.clock,
			u.id, u.clock)
	case !seen && u.clock < k.clock-w.o.Slack:
		w.violate("tables.stale", "worker %d at clock %d does not see update %d of worker %d at clock %d", k.id,
			k.clock, u.id, q.id, u.clock)
	case seen && last >= 0:
		w.violate("tables.fifo", "worker %d sees update %d of worker %d, and not %d before it", k.id, u.id, q.id, last)
	case !seen && last < 0:
		return u.id
	}
	return last
}

// cache holds how many rows a process has against the memory that it may take; those that workers wait for come on top.
func (w *world) cache(p *process) {
	n := 0
	for row := range consistency.Row(w.rows) {
		if _, ok := p.machine.Cached(row); ok {
			n++
		}
	}
	if most := w.o.Cache / w.rowBytes(); most > 0 && n > most+w.o.Workers {
		w.violate("tables.cache", "client %d has %d rows, and may have %d", p.id, n, most)
	}
}

// budget holds what a client sends of its own accord against its bandwidth.
func (w *world) budget(p *process, b consistency.Batch[set]) {
	key := [3]int{int(b.Worker), int(b.Life), w.o.Shard(b.Updates[0].Row)}
	if w.o.Budget == 0 || b.Ends || b.Number <= p.pushed[key] {
		return // it is sent again
	}
	p.pushed[key] = b.Number
	size := float64(w.rowBytes() * len(b.Updates))
	p.sent += size
	const burst = 100 * time.Millisecond
	if most := w.o.Budget*(w.now-p.since+burst).Seconds() + float64(w.rowBytes()*w.o.Workers); p.sent > most {
		w.violate("tables.budget", "client %d has pushed %v bytes in %v, of %v a second", p.id, p.sent, w.now-p.since,
			w.o.Budget)
	}
}

// ahead holds how far a worker is ahead of the slowest.
func (w *world) ahead(k *worker) {
	for _, q := range w.workers {
		if k.counts() && q.counts() && k.clock-q.clock > w.o.Slack {
			w.violate("tables.ahead", "worker %d begins clock %d, worker %d is at %d", k.id, k.clock, q.id, q.clock)
		}
	}
}

// pure holds a snapshot against exactly the updates of the clocks before its age.
func (w *world) pure(s int, n *consistency.Snapshot[set]) {
	for _, k := range w.workers {
		for _, c := range slices.Sorted(maps.Keys(k.done)) {
			for _, u := range k.done[c] {
				if times := n.Values[u.row][u.id]; c < n.Age && w.o.Shard(u.row) == s && times != 1 {
					w.violate("tables.pure", "the snapshot of clock %d has update %d of worker %d at clock %d %d times",
						n.Age, u.id, k.id, c, times)
				}
			}
		}
	}
	for _, row := range rowsOf(n) {
		for _, id := range slices.Sorted(maps.Keys(n.Values[row])) {
			if u := w.updates[id]; u.back || u.clock >= n.Age {
				w.violate("tables.pure", "the snapshot of clock %d has update %d of worker %d at clock %d, back: %v",
					n.Age, id, u.worker, u.clock, u.back)
			}
		}
	}
}

// atEnd holds what all shards have against all updates: each is there once.
func (w *world) atEnd() {
	if !w.done() {
		return
	}
	for s, m := range w.shards {
		w.pure(s, m.Snapshot())
	}
}

// bounds holds the sums of updates that not everyone has seen against the value bound.
func (w *world) bounds() {
	if w.o.Bound == 0 {
		return
	}
	for row := range consistency.Row(w.rows) {
		var have []set
		for _, id := range w.living() {
			if p := w.clients[id]; p.up {
				if v, ok := p.machine.Cached(row); ok {
					have = append(have, v)
				}
			}
		}
		half := [2]float64{}
		largest := w.o.Bound
		for _, k := range w.workers {
			w.unseen(k, row, have, &half, &largest)
		}
		for c, x := range half {
			if w.o.Strong && x > largest {
				w.violate("tables.strong", "updates of row %d, column %d, that only some have seen are %v", row, c, x)
			}
		}
	}
}

// unseen adds up the updates of a worker to a row that not everyone has seen.
func (w *world) unseen(k *worker, row consistency.Row, have []set, half *[2]float64, largest *float64) {
	sums, count := [2]float64{}, [2]int{}
	for _, c := range slices.Sorted(maps.Keys(k.done)) {
		for _, u := range k.done[c] {
			if u.row != row {
				continue
			}
			*largest = max(*largest, math.Abs(u.delta))
			some, all := false, true
			for _, v := range have {
				some, all = some || v[u.id] > 0, all && v[u.id] > 0
			}
			if !all {
				sums[u.column] += u.delta
				count[u.column]++
			}
			if some && !all {
				half[u.column] += math.Abs(u.delta)
			}
		}
	}
	for c, x := range sums {
		if k.counts() && math.Abs(x) > w.o.Bound && count[c] > 1 {
			w.violate("tables.vap", "%d updates of worker %d of row %d, column %d, not seen by all, add up to %v",
				count[c], k.id, row, c, x)
		}
	}
}
