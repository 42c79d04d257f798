package consistency

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// releaseHeld has updates be seen that were held back.
func (s *Shard[V]) releaseHeld() {
	for _, k := range slices.Sorted(maps.Keys(s.holding)) {
		r := s.rows[k]
		for len(r.held) > 0 && s.mayRelease(r, r.held[0].delta) {
			p := r.held[plantedNext(len(r.held))]
			r.held = slices.DeleteFunc(r.held, func(o *pending[V]) bool { return o == p })
			s.heldOf[p.clock]--
			s.release(k, r, p)
			s.stirred = true
		}
		if len(r.held) == 0 {
			delete(s.holding, k)
		}
	}
}

// forget drops what a worker has added in an earlier life, once everyone has seen it.
func (s *Shard[V]) forget(w Worker, t *stream) {
	maps.DeleteFunc(t.before, func(row Row, version int) bool {
		r := s.rows[row]
		if slices.ContainsFunc(r.held, func(p *pending[V]) bool { return p.worker == w && p.life < t.Life }) {
			t.before[row] = r.version + 1 // it is still to be seen
			return false
		}
		return r.seenByAll(min(version, r.version))
	})
}

// sync finds which updates everyone has seen, and has their workers told.
func (s *Shard[V]) sync() (out []Command[V]) {
	if s.o.Bound == 0 || !s.stirred {
		return nil
	}
	s.stirred = false
	for w, t := range s.from {
		s.forget(Worker(w), t)
		n := 0
		for ; n < len(t.parts); n++ {
			if p := t.parts[n]; p.version == 0 || plantedUnseen(!s.rows[p.row].seenByAll(p.version)) {
				break
			}
		}
		t.parts = t.parts[n:]
		done := t.Number
		if len(t.parts) > 0 {
			done = t.parts[0].number - 1
		}
		if done > t.synced && s.open {
			t.synced = done
			out = append(out, s.synced(Worker(w))...)
		}
	}
	return out
}

// synced returns the message to a worker's client about which of its updates everyone has seen.
func (s *Shard[V]) synced(w Worker) []Command[V] {
	t := s.from[w]
	if s.o.Bound == 0 || len(t.before) > 0 || !s.open || t.synced == 0 && t.Life == 1 {
		return nil
	}
	m := Synced{Shard: s.id, Epoch: s.epoch, Worker: w, Applied: Applied{Life: t.Life, Number: t.synced}}
	return []Command[V]{{ToClient: &Outgoing{To: int(t.client), Message: m}}}
}

// before orders what is to be sent: what waits for long goes before what has changed most, so that nothing waits for
// ever.
func (w *watcher) before(o *watcher, now, long time.Duration) int {
	late := func(w *watcher) bool { return now-w.since >= long }
	switch {
	case late(w) && late(o):
		return cmp.Compare(w.at, o.at) // each in its turn
	case late(w):
		return -1
	case late(o):
		return 1
	}
	return cmp.Compare(o.change, w.change)
}

// spread sends what has changed of some rows to those that have them, the largest changes first, as bandwidth allows.
func (s *Shard[V]) spread(rows map[Row]bool, now time.Duration, out []Command[V]) []Command[V] {
	if !s.o.Eager || !s.open || len(rows) == 0 {
		return out
	}
	if s.push.refill(now); s.push.rate > 0 && s.push.left <= 0 {
		return out
	}
	all := s.due(rows, now)
	for i, d := range all {
		r := s.rows[d.row]
		if !s.push.take(s.alg.Bytes(r.visible.v)) {
			for _, late := range all[i:] {
				s.unsent[late.row] = true
			}
			break
		}
		d.w.sent, d.w.at = r.version, now
		cmd := s.value(d.to, d.row, d.w.watch, r)
		cmd.ToClient.Unasked = true
		out = append(out, cmd)
	}
	return out
}

// due is a change that a client is to be sent.
type due struct {
	row Row
	to  Client
	w   *watcher
}

// due returns what of some rows is to be sent, in its order. Rows of which all have the last version go out of sight.
func (s *Shard[V]) due(rows map[Row]bool, now time.Duration) (all []due) {
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		r := s.rows[k]
		delete(s.unsent, k)
		if r.seenByAll(r.version) {
			delete(s.dirty, k)
			continue
		}
		for _, c := range slices.Sorted(maps.Keys(r.watchers)) {
			w := r.watchers[c]
			if w.sent < r.version || w.seen < w.sent && now-w.at >= s.o.Again {
				if w.since == 0 {
					w.since = now
				}
				all = append(all, due{k, c, w})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b due) int { return a.w.before(b.w, now, s.o.Again) })
	return all
}
