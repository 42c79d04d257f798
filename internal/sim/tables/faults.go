package tables

import (
	"slices"
	"time"

	"github.com/volley-engine/volley/tables/consistency"
)

// faults plans what goes wrong.
func (w *world) faults() {
	for range w.rng.IntN(4) * w.lossy() {
		w.after(w.span(0, w.quiet), w.loseClient)
	}
	for range w.rng.IntN(4) * w.lossy() {
		w.after(w.span(0, w.quiet), w.loseShard)
	}
	for range w.rng.IntN(6) {
		w.after(w.span(0, w.quiet), w.pause)
	}
	var again func()
	again = func() {
		w.send(w.book.Save(w.book.Complete() + 1 + consistency.Clock(w.rng.IntN(2))))
		if w.now < w.quiet {
			w.after(w.span(20*time.Millisecond, 200*time.Millisecond), again)
		}
	}
	if w.rng.IntN(4) > 0 {
		w.after(w.span(0, 100*time.Millisecond), again)
	}
}

// lossy returns 1 where processes may be lost.
func (w *world) lossy() int {
	if w.net.calm {
		return 0
	}
	return 1
}

// loseClient ends a process, or has it taken for lost while it goes on.
func (w *world) loseClient() {
	all := w.living()
	p := w.clients[all[w.rng.IntN(len(all))]]
	if w.rng.IntN(3) > 0 {
		w.fired("client lost")
		p.up = false
	} else {
		w.fired("client taken for lost")
	}
	w.after(w.span(0, 100*time.Millisecond), func() {
		if !p.known {
			return
		}
		w.tell("client %d is lost", p.id)
		if len(w.living()) == 1 || w.rng.IntN(2) == 0 {
			w.fired("client joins")
			w.book.Join(w.join().id)
		}
		p.known = false
		w.send(w.book.ClientLost(p.id, w.place))
	})
}

// loseShard ends a shard's process.
func (w *world) loseShard() {
	s := w.rng.IntN(len(w.shards))
	if w.shards[s] == nil {
		return
	}
	w.fired("shard lost")
	w.tell("shard %d is lost", s)
	w.shards[s] = nil
	epoch := w.epochs[s]
	w.after(w.span(0, 100*time.Millisecond), func() {
		if w.epochs[s] == epoch {
			w.send(w.book.ShardLost(s, w.place))
		}
	})
}

// pause has a worker be slow for a while.
func (w *world) pause() {
	k := w.workers[w.rng.IntN(len(w.workers))]
	w.fired("worker slow for a while")
	before := k.slow
	k.slow = 100
	w.after(w.span(50*time.Millisecond, 400*time.Millisecond), func() { k.slow = before })
}

// rowsOf returns the rows of a snapshot, in their order.
func rowsOf(n *consistency.Snapshot[set]) (all []consistency.Row) {
	for r := range n.Values {
		all = append(all, r)
	}
	slices.Sort(all)
	return all
}
