package consistency

import (
	"slices"
	"time"
)

// Bookkeeper knows how far each worker is, as the shards have it, and which snapshots are kept: a clock is complete
// when every shard has all updates of all workers, so that no read can see a clock of which something is lost with a
// process that dies.
type Bookkeeper struct {
	o        Options
	era      int
	complete Clock
	kept     Clock
	saveAt   Clock // the snapshot that is being made; 0 is none
	workers  []member
	shards   []*holder
	clients  []Client // that live
	gone     []Client
	told     time.Duration
}

// member is a worker's present life.
type member struct{ Restart }

// holder is a shard, and what it has of each worker.
type holder struct {
	epoch  int
	open   bool
	have   []Clock
	knows  []Life
	saved  Clock
	leaves map[Client]bool // who has let go of what an earlier epoch had
}

// NewBookkeeper returns one of a table whose workers run on clients.
func NewBookkeeper(o Options, clients []Client, place func(Worker) Client) *Bookkeeper {
	k := &Bookkeeper{o: o, clients: slices.Clone(clients)}
	for w := range Worker(o.Workers) {
		k.workers = append(k.workers, member{Restart{Worker: w, Life: 1, On: place(w)}})
	}
	for range o.Shards {
		k.shards = append(k.shards, &holder{epoch: 1, open: true, leaves: map[Client]bool{},
			have: make([]Clock, o.Workers), knows: slices.Repeat([]Life{1}, o.Workers)})
	}
	return k
}

// Complete returns how many clocks all workers have finished.
func (k *Bookkeeper) Complete() Clock { return k.complete }

// Kept returns the age of the last snapshot that all shards have kept.
func (k *Bookkeeper) Kept() Clock { return k.kept }

// finished returns how many clocks of a worker all shards have; those of a snapshot that is kept they have had.
func (k *Bookkeeper) finished(w Worker) Clock {
	n := k.shards[0].have[w]
	for _, s := range k.shards[1:] {
		n = min(n, s.have[w])
	}
	return max(n, k.kept)
}

// Save has all shards keep a snapshot of exactly the clocks before an age that none has passed; one at a time. It
// returns nothing while there is another, or where shards make them of their own accord.
func (k *Bookkeeper) Save(age Clock) []Send {
	if pending := k.saveAt > k.kept && k.complete < k.saveAt+abandoned; pending || k.o.Every > 0 || k.o.Last > 0 ||
		age < k.complete || age <= k.kept {
		return nil
	}
	k.saveAt = age
	return k.askSave()
}

// abandoned is after how many clocks a snapshot is given up that has not come together.
const abandoned = 3

// Send is a message of the bookkeeper's, or what the shell has to do.
type Send struct {
	Shard  *int
	Client *Client
	Begin  *Beginning
	What   any
}

func toShard(s int, what any) Send { return Send{Shard: &s, What: what} }

func (k *Bookkeeper) askSave() (out []Send) {
	for s, h := range k.shards {
		if k.saveAt > k.kept && h.saved < k.saveAt {
			out = append(out, toShard(s, SaveAt{Epoch: h.epoch, Age: k.saveAt}))
		}
	}
	return out
}

// Step takes a message.
func (k *Bookkeeper) Step(message any, now time.Duration) []Send {
	switch m := message.(type) {
	case Have:
		h := k.shards[m.Shard]
		if m.Epoch == h.epoch && m.Life == k.workers[m.Worker].Life {
			news := m.Clock > h.have[m.Worker]
			h.knows[m.Worker], h.have[m.Worker] = m.Life, max(h.have[m.Worker], m.Clock)
			if !h.open {
				return append(k.advance(), k.opens(m.Shard)...)
			}
			if news && m.Clock > k.complete && k.finished(m.Worker) > k.complete {
				return k.advance()
			}
		}
	case Passed:
		if m.Epoch == k.shards[m.Shard].epoch && m.Age == k.saveAt {
			k.saveAt = k.kept // it is too late for this one
		}
	case Saved:
		h := k.shards[m.Shard]
		if m.Epoch == h.epoch {
			h.saved = max(h.saved, m.Age)
			return k.keep()
		}
	case Left:
		h := k.shards[m.Shard]
		if m.Epoch == h.epoch {
			h.leaves[m.Client] = true
			return k.opens(m.Shard)
		}
	}
	return nil
}

// advance notes clocks that have become complete.
func (k *Bookkeeper) advance() []Send {
	n := k.finished(0)
	for w := range k.workers {
		n = min(n, k.finished(Worker(w)))
	}
	if n <= k.complete {
		return nil
	}
	k.complete = n
	return k.tell()
}

// keep notes a snapshot that all shards have.
func (k *Bookkeeper) keep() []Send {
	if k.o.Every > 0 || k.o.Last > 0 {
		k.saveAt = slices.MinFunc(k.shards, func(a, b *holder) int { return int(a.saved - b.saved) }).saved
	}
	if k.saveAt <= k.kept || slices.ContainsFunc(k.shards, func(h *holder) bool { return h.saved < k.saveAt }) {
		return nil
	}
	k.kept = k.saveAt
	return k.tell()
}

// opens lets a shard answer that was begun anew, once all clients have let go of what it had before, and it has all
// that is complete: if a worker were begun again before that, what other shards have of it would count twice.
func (k *Bookkeeper) opens(shard int) []Send {
	h := k.shards[shard]
	if h.open || slices.ContainsFunc(k.clients, func(c Client) bool { return !h.leaves[c] }) {
		return nil
	}
	for w, m := range k.workers {
		if h.have[w] < k.complete || h.knows[w] != m.Life {
			return nil
		}
	}
	h.open = true
	return []Send{toShard(shard, Open{h.epoch})}
}

func (k *Bookkeeper) standing() Complete {
	if k.o.Together {
		return Complete{Era: k.era, Age: k.complete, Kept: k.complete}
	}
	return Complete{Era: k.era, Age: k.complete, Kept: k.kept}
}

// tell returns the messages about how far all are.
func (k *Bookkeeper) tell() (out []Send) {
	m := k.standing()
	for s := range k.shards {
		out = append(out, toShard(s, m))
	}
	for _, c := range k.clients {
		out = append(out, Send{Client: &c, What: m})
	}
	return out
}

// Tick repeats what may have been lost.
func (k *Bookkeeper) Tick(now time.Duration) (out []Send) {
	if now-k.told < k.o.Again {
		return nil
	}
	k.told = now
	out = append(k.tell(), k.askSave()...)
	for s, h := range k.shards {
		for _, c := range k.gone {
			out = append(out, toShard(s, Gone{c}))
		}
		for w, m := range k.workers {
			if h.knows[w] < m.Life {
				out = append(out, toShard(s, m.Restart))
			}
		}
		if h.epoch > 1 {
			out = append(out, k.moved(s)...)
		}
		if h.epoch > 1 && h.open {
			out = append(out, toShard(s, Open{h.epoch}))
		}
	}
	for _, m := range k.workers {
		out = append(out, k.assign(m)...)
	}
	return out
}

// assign returns the messages to all clients about which of them runs a worker.
func (k *Bookkeeper) assign(m member) (out []Send) {
	for _, c := range k.clients {
		out = append(out, Send{Client: &c, What: Assignment{m.On, m.Restart, k.standing()}})
	}
	return out
}

func (k *Bookkeeper) moved(shard int) (out []Send) {
	h := k.shards[shard]
	for _, c := range k.clients {
		if !h.leaves[c] {
			out = append(out, Send{Client: &c, What: Moved{shard, h.epoch}})
		}
	}
	return out
}

// Join adds a client, which may be given workers from now on.
func (k *Bookkeeper) Join(c Client) { k.clients = append(k.clients, c) }

// ClientLost has other clients go on with the workers of one that has ended, each from the last clock of which all
// shards have everything. Where a shard still waits for what only the lost client had, all go back to the snapshot.
func (k *Bookkeeper) ClientLost(c Client, place func(Worker) Client) (out []Send) {
	k.clients = slices.DeleteFunc(k.clients, func(o Client) bool { return o == c })
	k.gone = append(k.gone, c)
	for s := range k.shards {
		out = append(out, toShard(s, Gone{c}))
	}
	lost := func(m member) bool { return m.On == c }
	if slices.ContainsFunc(k.shards, func(h *holder) bool { return !h.open }) ||
		slices.ContainsFunc(k.workers, func(m member) bool { return lost(m) && k.finished(m.Worker) < k.complete }) {
		return append(out, k.Reset(place)...)
	}
	for w := range k.workers {
		if m := &k.workers[w]; lost(*m) {
			m.On, m.Life, m.Clock = place(m.Worker), m.Life+1, k.finished(m.Worker)
			out = append(out, k.restart(*m)...)
		}
	}
	return out
}

// restart returns the messages about a worker's new life.
func (k *Bookkeeper) restart(m member) (out []Send) {
	for s, h := range k.shards {
		h.have[m.Worker], h.knows[m.Worker] = min(h.have[m.Worker], m.Clock), 0
		out = append(out, toShard(s, m.Restart))
	}
	return append(out, k.assign(m)...)
}

// ShardLost begins a shard anew from the snapshot that is kept: clients send it again what came after. Where a worker
// has begun another life since, what it had sent before is lost, and all go back to the snapshot.
func (k *Bookkeeper) ShardLost(shard int, place func(Worker) Client) []Send {
	if slices.ContainsFunc(k.workers, func(m member) bool { return plantedSince(m.Clock > k.kept) }) {
		k.shards[shard].open = false
		return k.Reset(place)
	}
	return k.begin(shard)
}

// begin has a shard begin anew.
func (k *Bookkeeper) begin(shard int) (out []Send) {
	h := k.shards[shard]
	*h = holder{epoch: h.epoch + 1, have: slices.Repeat([]Clock{k.kept}, k.o.Workers), saved: k.kept,
		knows: make([]Life, k.o.Workers), leaves: map[Client]bool{}}
	out = append(out, Send{Begin: &Beginning{Shard: shard, Epoch: h.epoch, Era: k.era, Age: k.kept,
		Lives: k.lives()}})
	for _, c := range k.gone {
		out = append(out, toShard(shard, Gone{c}))
	}
	return append(out, k.moved(shard)...)
}

func (k *Bookkeeper) lives() (all []Restart) {
	for _, m := range k.workers {
		all = append(all, m.Restart)
	}
	return all
}

// Reset has all begin anew from the snapshot that is kept.
func (k *Bookkeeper) Reset(place func(Worker) Client) (out []Send) {
	k.era++
	k.complete, k.saveAt = k.kept, 0
	for w := range k.workers {
		m := &k.workers[w]
		m.Life, m.Clock, m.On = m.Life+1, k.kept, place(m.Worker)
	}
	for s := range k.shards {
		out = append(out, k.begin(s)...)
	}
	for _, m := range k.workers {
		out = append(out, k.restart(m)...)
	}
	return append(out, k.tell()...)
}
