package reassign

import (
	"slices"
	"time"
)

// Machine decides for a worker: as a helpee, what it offers and takes back, and as a helper, what it does and when.
type Machine struct {
	o       Options
	id      Worker
	life    int
	helpers []Worker
	helpees []Worker

	clock    int
	items    int // of the clock
	done     int // from the front
	inHand   int // and the one in hand: it stays
	end      int // what is after it was offered
	began    time.Duration
	average  time.Duration // of a clock
	told     bool
	finished bool
	offers   []*offer
	asked    map[Worker]bool     // helpers that this clock's work was offered to
	ahead    map[Worker]Progress // the last that each helper has told

	queue  []Task          // to be done for others, in their order
	helps  *Task           // what is being done
	fates  map[key]fate    // of others' tasks
	heard  map[Worker]when // the last life and clock of each helpee
	unsaid map[key]*unsaid // completed, and not known to be accepted
	lost   map[Worker]int  // the last life of each that has ended
}

// offer is a range that was offered to a helper.
type offer struct {
	Task
	helper Worker
	state  offerState
	at     time.Duration // when its last message was sent
	since  time.Duration // when its helper was last known to get on
}

type offerState int

const (
	offered    offerState = iota
	begun                 // its helper does it
	cancelling            // it is taken back, if its helper has not begun
	redone                // it has come back, and is being done here
	settled               // it is done, by one of them
)

// key is a task of a helpee.
type key struct {
	helpee Worker
	when
	number int
}

// when is a clock of a life.
type when struct{ life, clock int }

func (w when) before(o when) bool { return w.life < o.life || w.life == o.life && w.clock < o.clock }

func whenOf(t Task) when { return when{t.Life, t.Clock} }

func keyOf(t Task) key { return key{t.Helpee, whenOf(t), t.Number} }

type fate int

const (
	unknown fate = iota
	queued
	doing
	doneFor
	refused
)

type unsaid struct {
	task Task
	at   time.Duration
}

// New returns the machine of a life of a worker, of which no other has the same number.
func New(id Worker, life int, o Options, helpers, helpees []Worker) *Machine {
	return &Machine{o: o, id: id, life: life, helpers: helpers, helpees: helpees, clock: -1, finished: true,
		fates: map[key]fate{}, heard: map[Worker]when{}, unsaid: map[key]*unsaid{}, lost: map[Worker]int{},
		ahead: map[Worker]Progress{}}
}

// Begin begins a clock of a number of items. Its items from Limit on are not this worker's to do.
func (m *Machine) Begin(clock, items int, timer time.Duration) []Command {
	if m.clock >= 0 {
		took := timer - m.began
		if m.average == 0 {
			m.average = took
		}
		m.average = (3*m.average + took) / 4
	}
	m.clock, m.items, m.done, m.inHand, m.end, m.began = clock, items, 0, 0, items, timer
	m.told, m.finished, m.offers, m.asked = false, false, nil, map[Worker]bool{}
	return m.Check(0, timer)
}

// Limit returns before which item the worker's own work ends: what follows was offered to others.
func (m *Machine) Limit() int { return m.end }

// Check notes how many items from the front are done, and returns what is due: a shell calls it Checks times in a
// clock, and now and then while the worker waits.
func (m *Machine) Check(done int, timer time.Duration) (out []Command) {
	m.done = max(m.done, done)
	if !m.told && m.items > 0 && m.share() >= m.o.Progress {
		m.told = true
		for _, w := range m.helpees {
			out = append(out, send(w, Progress{m.id, m.life, m.clock, m.share(), timer}))
		}
	}
	for _, w := range m.helpers {
		if x, ok := m.ahead[w]; ok && x.Clock >= m.clock {
			out = append(out, m.onProgress(x, timer)...)
		}
	}
	out = append(out, m.again(timer)...)
	return append(out, m.next(timer)...)
}

// share returns how much of the clock this worker has done, or offered.
func (m *Machine) share() float64 { return float64(m.done+m.items-m.end) / float64(max(1, m.items)) }

func send(to Worker, message any) Command { return Command{Send: &Send{to, message}} }

// Step takes a message; begun is how many items from the front are done or in hand: they are not offered.
func (m *Machine) Step(message any, begun int, timer time.Duration) (out []Command) {
	m.inHand = max(m.inHand, begun)
	switch x := message.(type) {
	case Progress:
		m.ahead[x.From] = x
		out = m.onProgress(x, timer)
	case DoThis:
		out = m.onDoThis(x)
	case Begun:
		out = m.onBegun(x, timer)
	case Cancel:
		out = m.onCancel(x.Task)
	case Cancelled:
		out = m.onCancelled(x)
	case Completed:
		out = m.onCompleted(x)
	case Accepted:
		delete(m.unsaid, keyOf(x.Task))
	}
	return append(out, m.next(timer)...)
}

// onProgress offers work where the worker is too far behind a helper (algorithm 1).
func (m *Machine) onProgress(x Progress, timer time.Duration) []Command {
	if m.finished || m.average == 0 || m.asked[x.From] || !contains(m.helpers, x.From) || x.Life <= m.lost[x.From] {
		return nil
	}
	ahead := float64(x.Clock-m.clock) + x.Done - m.share()
	ahead += (timer - x.Timer).Seconds() / m.average.Seconds()
	if ahead <= m.o.Trigger {
		return nil
	}
	m.asked[x.From] = true
	return m.offer(x.From, m.o.First*float64(m.end-m.first()), timer)
}

// first returns the first item that is left, and floor the first of those that may be offered.
func (m *Machine) first() int { return max(m.done, m.inHand) }

func (m *Machine) floor() int {
	return max(m.first(), plantedFloor(m.items-int(m.o.Tail*float64(m.items))))
}

// offer offers the last items that are left to a helper; some stay.
func (m *Machine) offer(to Worker, wanted float64, timer time.Duration) []Command {
	most := min((m.end-m.first())/2, m.end-m.floor())
	size := int(min(max(wanted+0.5, 1), float64(most)))
	if size < 1 {
		return nil
	}
	t := Task{Helpee: m.id, Life: m.life, Clock: m.clock, Number: len(m.offers), Range: Range{m.end - size, m.end}}
	m.end -= size
	m.offers = append(m.offers, &offer{Task: t, helper: to, at: timer, since: timer})
	return []Command{send(to, DoThis{t})}
}

// offerOf returns an offer of this clock that a helper speaks of; nil if it is none.
func (m *Machine) offerOf(t Task, helper Worker) *offer {
	if t.Helpee != m.id || whenOf(t) != (when{m.life, m.clock}) || t.Number >= len(m.offers) {
		return nil
	}
	if f := m.offers[t.Number]; f.helper == helper {
		return f
	}
	return nil
}

// onBegun notes that a helper does what it was offered, and offers it more.
func (m *Machine) onBegun(x Begun, timer time.Duration) []Command {
	f := m.offerOf(x.Task, x.Helper)
	if f == nil || f.state != offered && f.state != cancelling {
		return nil
	}
	f.state, f.since = begun, timer
	return m.offer(x.Helper, m.o.Follow*float64(f.Len()), timer)
}

// onCancelled does a range itself, now that its helper never will.
func (m *Machine) onCancelled(x Cancelled) []Command {
	f := m.offerOf(x.Task, x.Helper)
	if f == nil || f.state != offered && f.state != cancelling {
		return nil
	}
	f.state = redone
	return []Command{{Own: &f.Task}}
}

// onCompleted takes what a helper has done, once.
func (m *Machine) onCompleted(x Completed) (out []Command) {
	out = []Command{send(x.Helper, Accepted{x.Task})}
	f := m.offerOf(x.Task, x.Helper)
	if f == nil || f.state == redone || plantedTaken(f.state == settled) {
		return out
	}
	f.state = settled
	return append(out, Command{Take: &f.Task})
}

// Redone notes that a range that had come back is done.
func (m *Machine) Redone(t Task, timer time.Duration) []Command {
	if f := m.offerOf(t, m.helperOf(t)); f != nil && f.state == redone {
		f.state = settled
	}
	return m.next(timer)
}

func (m *Machine) helperOf(t Task) Worker {
	if whenOf(t) == (when{m.life, m.clock}) && t.Number < len(m.offers) {
		return m.offers[t.Number].helper
	}
	return -1
}

// onDoThis takes a task, refuses it, or says again what has become of it.
func (m *Machine) onDoThis(x DoThis) []Command {
	k := keyOf(x.Task)
	if whenOf(x.Task).before(m.heard[x.Helpee]) || x.Life <= m.lost[x.Helpee] {
		return []Command{send(x.Helpee, Cancelled{m.id, x.Task})} // its clock is over
	}
	m.hear(x.Task)
	switch m.fates[k] {
	case unknown:
		m.fates[k] = queued
		m.queue = append(m.queue, x.Task)
	case doing:
		return []Command{send(x.Helpee, Begun{m.id, x.Task})}
	case refused:
		return []Command{send(x.Helpee, Cancelled{m.id, x.Task})}
	}
	return nil
}

// hear forgets what it knows of earlier clocks of a helpee.
func (m *Machine) hear(t Task) {
	now := whenOf(t)
	if !m.heard[t.Helpee].before(now) {
		return
	}
	m.heard[t.Helpee] = now
	for k := range m.fates {
		if k.helpee == t.Helpee && k.before(now) && m.fates[k] != doing {
			delete(m.fates, k)
		}
	}
	m.queue = slices.DeleteFunc(m.queue, func(o Task) bool { return o.Helpee == t.Helpee && whenOf(o).before(now) })
}

// onCancel gives a task back that was not begun.
func (m *Machine) onCancel(t Task) []Command {
	k := keyOf(t)
	if !whenOf(t).before(m.heard[t.Helpee]) {
		m.hear(t)
		switch m.fates[k] {
		case doing:
			return []Command{send(t.Helpee, Begun{m.id, t})}
		case doneFor:
			return []Command{send(t.Helpee, Completed{m.id, t})}
		}
		m.fates[k] = refused
		m.queue = slices.DeleteFunc(m.queue, func(o Task) bool { return keyOf(o) == k && plantedQueue() })
	}
	return []Command{send(t.Helpee, Cancelled{m.id, t})}
}

// Helped notes that a helpee's range is done.
func (m *Machine) Helped(t Task, timer time.Duration) (out []Command) {
	k := keyOf(t)
	m.helps = nil
	m.fates[k] = doneFor
	if t.Life > m.lost[t.Helpee] {
		m.unsaid[k] = &unsaid{t, timer}
		out = append(out, send(t.Helpee, Completed{m.id, t}))
	}
	return append(out, m.next(timer)...)
}

// Lost notes that a life of a worker has ended: what it was to do comes back, and what was to be done for it is not.
func (m *Machine) Lost(w Worker, life int, timer time.Duration) (out []Command) {
	m.lost[w] = max(m.lost[w], life)
	m.queue = slices.DeleteFunc(m.queue, func(t Task) bool { return t.Helpee == w && t.Life <= life })
	for k := range m.unsaid {
		if k.helpee == w && k.life <= life {
			delete(m.unsaid, k)
		}
	}
	for _, f := range m.offers {
		if f.helper == w && f.state != settled && f.state != redone && plantedLost() {
			f.state = redone
			out = append(out, Command{Own: &f.Task})
		}
	}
	delete(m.asked, w)
	return append(out, m.next(timer)...)
}

// own reports whether the worker has done what is its own, so far.
func (m *Machine) own() bool { return m.done >= m.end }

// next begins what can be begun: taking back, help, and the end of the clock.
func (m *Machine) next(timer time.Duration) (out []Command) {
	if m.own() && !m.finished {
		out = m.takeBack(timer)
	}
	out = append(out, m.help()...)
	if m.own() && !m.finished && m.helps == nil && m.settled() {
		m.finished = true
		out = append(out, Command{Finish: true})
	}
	return out
}

// takeBack cancels the next range that no helper has begun: one at a time, as others may still be.
func (m *Machine) takeBack(timer time.Duration) (out []Command) {
	for _, f := range slices.Backward(m.offers) {
		switch f.state {
		case cancelling, redone:
			return nil
		case offered:
			f.state, f.at = cancelling, timer
			out = append(out, send(f.helper, Cancel{f.Task}))
			if plantedUnwaited() {
				out = append(out, Command{Own: &f.Task})
			}
			return out
		}
	}
	return nil
}

func (m *Machine) settled() bool {
	return !slices.ContainsFunc(m.offers, func(f *offer) bool { return f.state != settled })
}

// help begins the next task of another worker whose turn it is: that of an earlier clock than this worker's at once,
// and one of the same when its own work is done (algorithm 2).
func (m *Machine) help() []Command {
	if m.helps != nil {
		return nil
	}
	at := slices.IndexFunc(m.queue, func(t Task) bool {
		return plantedTurn(t.Clock < m.clock || t.Clock == m.clock && m.own())
	})
	if at < 0 {
		return nil
	}
	t := m.queue[at]
	m.queue = slices.Delete(m.queue, at, at+1)
	m.helps, m.fates[keyOf(t)] = &t, doing
	return []Command{send(t.Helpee, Begun{m.id, t}), {Help: &t}}
}

// again sends again what has had no answer for long.
func (m *Machine) again(timer time.Duration) (out []Command) {
	for _, f := range m.offers {
		waits := f.state != redone && f.state != settled
		if waited := timer - f.since; waits && m.own() && m.o.Patience > 0 && waited > m.o.Patience {
			out = append(out, Command{Fail: &Failure{f.helper, f.Task, waited}})
		}
		if (f.state == offered || f.state == cancelling) && timer-f.at >= m.o.Again {
			f.at = timer
			switch {
			case f.state == offered:
				out = append(out, send(f.helper, DoThis{f.Task}))
			case plantedAgain():
				out = append(out, send(f.helper, Cancel{f.Task}))
			}
		}
	}
	for _, k := range sorted(m.unsaid) {
		if u := m.unsaid[k]; timer-u.at >= m.o.Again && plantedSaid() {
			u.at = timer
			out = append(out, send(k.helpee, Completed{m.id, u.task}))
		}
	}
	return out
}

func sorted(all map[key]*unsaid) (keys []key) {
	for k := range all {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.helpee != b.helpee {
			return int(a.helpee - b.helpee)
		}
		if a.when != b.when {
			if a.before(b.when) {
				return -1
			}
			return 1
		}
		return a.number - b.number
	})
	return keys
}
