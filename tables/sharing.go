package tables

import (
	"fmt"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/tables/reassign"
)

// sharing is a worker's part in RapidReassignment: its machine, and what that wants done. All of it is under the
// executor's lock, as messages come whatever the worker does.
type sharing struct {
	machine  *reassign.Machine
	checks   int
	clock    int // that it has shared last, and one more
	begun    int // items of the clock that are done or in hand
	finished bool
	todo     []task
	given    map[reassign.Task][]byte // with what this one is asked to do
	made     map[reassign.Task][]byte // for others, until they have it
}

// task is what the worker's goroutine is to do, between items.
type task struct {
	reassign.Command
	made []byte // of what is to be taken
}

// hands does parts of clocks, in the goroutine of the worker that it is called for.
type hands struct {
	give func(w *worker, p Part) ([]byte, error)
	do   func(w *worker, p Part, given []byte) ([]byte, error)
	take func(w *worker, p Part, made []byte) error
}

func partOf(t reassign.Task) Part { return Part{int(t.Helpee), t.Clock, t.From, t.To} }

// reassigns has the workers of this process do parts of one another's clocks.
func (r *run) reassigns(by Help, how *hands) {
	by.Again, by.Patience = forGood, 0 // no message is lost, and the watch finds who gives no sign
	r.hands = how
	helpers, helpees := r.groups(by)
	for _, w := range r.workers {
		if w.executor.here {
			id := reassign.Worker(w.id)
			w.sharing = &sharing{machine: reassign.New(id, 1, by, helpers[id], helpees[id]), checks: by.Checks,
				given: map[reassign.Task][]byte{}, made: map[reassign.Task][]byte{}}
		}
	}
}

// groups returns the helpers and the helpees of each worker.
func (r *run) groups(by Help) (helpers, helpees [][]reassign.Worker) {
	var homes []int
	for _, w := range r.workers {
		homes = append(homes, w.executor.id)
	}
	helpers, helpees = reassign.Groups(homes, by.Group), make([][]reassign.Worker, len(homes))
	for w, all := range helpers {
		for _, h := range all {
			helpees[h] = append(helpees[h], reassign.Worker(w))
		}
	}
	return helpers, helpees
}

// share does items of a worker's clock, but for those that others do.
func (r *run) share(w *worker, items int, do func(from, to int)) {
	s := w.sharing
	if s.clock == w.clock+1 {
		panic("a clock shares its items twice")
	}
	s.clock = w.clock + 1
	r.decided(w, func() []reassign.Command {
		s.begun, s.finished = 0, false
		w.executor.items += items
		w.done.Shared += int64(items)
		return s.machine.Begin(w.clock, items, r.now())
	})
	for more := true; more; {
		r.tasks(w, do)
		from, to := s.claim(w, items)
		if more = from < to; more {
			do(from, to)
			w.pacing.worked() // it looks for messages when that has taken its time, and not before
		}
		r.decided(w, func() []reassign.Command { return s.machine.Check(to, r.now()) })
	}
	for !r.shared(w) {
		r.tasks(w, do)
	}
}

// claim takes the next items in hand, as many as are done between two looks at messages.
func (s *sharing) claim(w *worker, items int) (from, to int) {
	w.executor.mu.Lock()
	defer w.executor.mu.Unlock()
	from = s.begun
	s.begun = max(from, min(from+max(1, items/s.checks), s.machine.Limit()))
	return from, s.begun
}

// decided has a worker's machine decide, and carries out what needs no worker.
func (r *run) decided(w *worker, decide func() []reassign.Command) {
	w.executor.mu.Lock()
	sends := w.sort(r, decide(), nil)
	w.executor.mu.Unlock()
	r.sendAll(w, sends)
}

// sort puts by what the worker's goroutine is to do, and returns what is sent at once: the executor is locked.
func (w *worker) sort(r *run, all []reassign.Command, made []byte) (sends []parcel) {
	s := w.sharing
	for _, c := range all {
		switch {
		case c.Finish:
			s.finished = true
		case c.Send == nil || ofHelpee(c.Send.Message):
			s.todo = append(s.todo, task{c, made})
		default:
			sends = append(sends, parcel{c.Send, s.contents(c.Send.Message)})
		}
	}
	if s.finished || len(s.todo) > 0 {
		w.executor.changed.Broadcast()
	}
	return sends
}

// ofHelpee reports whether a message is of one that is helped: they leave in their order, when its goroutine has
// written what a helper is given.
func ofHelpee(message any) bool {
	switch message.(type) {
	case reassign.DoThis, reassign.Cancel:
		return true
	}
	return false
}

// parcel is a message to another worker, and what comes with it.
type parcel struct {
	*reassign.Send
	contents []byte
}

// contents returns what goes with a message to a helpee, and forgets what is given back.
func (s *sharing) contents(message any) []byte {
	switch m := message.(type) {
	case reassign.Completed:
		return s.made[m.Task]
	case reassign.Cancelled:
		delete(s.given, m.Task)
	}
	return nil
}

// sendAll passes messages on to the machines of other workers.
func (r *run) sendAll(from *worker, all []parcel) {
	for _, p := range all {
		to := r.workers[p.To]
		switch {
		case !to.executor.here:
			from.sends(r.out.post(to.executor.id, func(w *writer) { w.help(int(p.To), p.Message, p.contents) }))
		case r.computed != nil:
			bytes := func() int {
				from.sends(shortBytes + len(p.contents))
				return shortBytes + len(p.contents)
			}
			hand := func() { r.hear(to, p.Message, p.contents) }
			r.computed.deliver(from.executor.id, to.executor.id, bytes, hand)
		default:
			r.hear(to, p.Message, p.contents)
		}
	}
}

// sends counts bytes that the worker has sent another.
func (w *worker) sends(bytes int) {
	w.executor.mu.Lock()
	w.executor.helping += bytes
	w.executor.mu.Unlock()
}

// hear takes a message of another worker's machine.
func (r *run) hear(w *worker, message any, contents []byte) {
	s := w.sharing
	w.executor.mu.Lock()
	switch m := message.(type) {
	case reassign.DoThis:
		s.given[m.Task] = contents
	case reassign.Accepted:
		delete(s.made, m.Task)
	}
	sends := w.sort(r, s.machine.Step(message, s.begun, r.now()), contents)
	w.executor.mu.Unlock()
	r.sendAll(w, sends)
}

// tasks does what a worker's machine wants done.
func (r *run) tasks(w *worker, own func(from, to int)) {
	for {
		w.executor.mu.Lock()
		if len(w.sharing.todo) == 0 {
			w.executor.mu.Unlock()
			return
		}
		t := w.sharing.todo[0]
		w.sharing.todo = slices.Delete(w.sharing.todo, 0, 1)
		w.executor.mu.Unlock()
		if err := r.do(w, t, own); err != nil {
			r.fail(fault.New(fault.UserCode, "help", fmt.Sprintf("in clock %d of worker %d", w.clock, w.id), err))
			panic(halt{})
		}
	}
}

func (r *run) do(w *worker, t task, own func(from, to int)) error {
	switch {
	case t.Send != nil:
		return r.offer(w, t.Send)
	case t.Help != nil:
		return r.help(w, *t.Help)
	case t.Own != nil:
		own(t.Own.From, t.Own.To)
		w.pacing.worked()
		r.decided(w, func() []reassign.Command { return w.sharing.machine.Redone(*t.Own, r.now()) })
	case t.Take != nil:
		w.executor.mu.Lock()
		w.executor.helped += t.Take.Len()
		w.done.Given += int64(t.Take.Len())
		w.executor.mu.Unlock()
		return r.hands.take(w, partOf(*t.Take), t.made)
	case t.Fail != nil:
		return fault.Newf(fault.Timeout, "wait", fmt.Sprintf("worker %d", t.Fail.Helper), "for %v", t.Fail.Waited)
	}
	return nil
}

// offer sends a helper a task, or takes one back.
func (r *run) offer(w *worker, s *reassign.Send) (err error) {
	p := parcel{Send: s}
	if d, ok := s.Message.(reassign.DoThis); ok {
		if p.contents, err = r.hands.give(w, partOf(d.Task)); err != nil {
			return err
		}
	}
	r.sendAll(w, []parcel{p})
	return nil
}

// help does a part of another worker's clock.
func (r *run) help(w *worker, t reassign.Task) error {
	s := w.sharing
	w.executor.mu.Lock()
	given := s.given[t]
	delete(s.given, t)
	w.executor.mu.Unlock()
	made, err := r.hands.do(w, partOf(t), given)
	if err != nil {
		return err
	}
	w.pacing.worked()
	r.decided(w, func() []reassign.Command {
		w.done.Taken += int64(t.Len())
		s.made[t] = made
		return s.machine.Helped(t, r.now())
	})
	return nil
}

// shared reports whether all items of a worker's clock are done. It waits for helpers until there is something to do,
// be it for another worker of the executor: it may be one that others wait for.
func (r *run) shared(w *worker) bool {
	for {
		switch o := r.awaitHelpers(w); o {
		case nil:
			return true
		case w:
			return false
		default:
			r.attendMeanwhile(w, o)
		}
	}
}

// awaitHelpers waits until a worker has something to do, or another of its executor, which is then taken to be running,
// and returns that; nil where all items of the clock are done.
func (r *run) awaitHelpers(w *worker) *worker {
	x := w.executor
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		switch o := x.asked(); {
		case r.over():
			panic(halt{})
		case len(w.sharing.todo) > 0:
			return w
		case w.sharing.finished:
			return nil
		case o != nil:
			o.running = true
			return o
		}
		w.idle(r)
	}
}

// attendMeanwhile has another worker do what it was asked to, in the goroutine of one that waits.
func (r *run) attendMeanwhile(w, o *worker) {
	o.pacing = w.pacing
	w.waits.Store(true) // the other one gives signs
	err := r.attend(o)
	w.waits.Store(false)
	w.executor.mu.Lock()
	w.paused, o.paused, o.running = w.paused+o.paused, 0, false
	w.executor.changed.Broadcast()
	w.executor.mu.Unlock()
	if err != nil {
		panic(halt{})
	}
}

// idle waits for a change at the executor, which is locked.
func (w *worker) idle(r *run) {
	began := r.now()
	w.waits.Store(true)
	w.executor.changed.Wait()
	w.waits.Store(false)
	w.paused += r.now() - began
	w.pacing.waited(r.now() - began)
}

// asked returns a worker that is between its clocks and has something to do for another; nil where there is none.
func (x *executor) asked() *worker {
	for _, w := range x.workers {
		if !w.running && w.sharing != nil && len(w.sharing.todo) > 0 {
			return w
		}
	}
	return nil
}

// attend has a worker that is between its clocks do what it was asked to.
func (r *run) attend(w *worker) error {
	err := r.guard(fmt.Sprintf("what worker %d does for another", w.id), func() error {
		w.moved.Add(1)
		r.tasks(w, nil)
		return nil
	})
	if err != nil && err != errHalted {
		r.fail(err)
	}
	return err
}

// helpKind says what a message between workers is.
type helpKind int

const (
	aProgress helpKind = iota
	doThis
	hasBegun
	cancelHelp
	helpCancelled
	helpCompleted
	helpAccepted
)

// help encodes a message to a worker of another process.
func (w *writer) help(to int, message any, contents []byte) {
	w.begin(aHelp, 0, to)
	switch m := message.(type) {
	case reassign.Progress:
		w.ints(int(aProgress), int(m.From), m.Life, m.Clock, int(m.Done*helpUnits))
	case reassign.DoThis:
		w.task(doThis, m.Helpee, m.Task)
	case reassign.Begun:
		w.task(hasBegun, m.Helper, m.Task)
	case reassign.Cancel:
		w.task(cancelHelp, m.Helpee, m.Task)
	case reassign.Cancelled:
		w.task(helpCancelled, m.Helper, m.Task)
	case reassign.Completed:
		w.task(helpCompleted, m.Helper, m.Task)
	case reassign.Accepted:
		w.task(helpAccepted, m.Helpee, m.Task)
	}
	w.bytes(contents)
	w.end()
}

// mostItems bounds what a clock shares.
const mostItems = 1 << 40

// helpUnits is how many parts of a clock's share are told apart between processes.
const helpUnits = 1 << 20

func (w *writer) task(k helpKind, from reassign.Worker, t reassign.Task) {
	w.ints(int(k), int(from), t.Life, t.Clock, int(t.Helpee), t.Number, t.From, t.To)
}

// receiveHelp takes a message to a worker of this process. By its timer another worker's progress is that of the moment
// in which it is heard: clocks of machines differ.
func (r *run) receiveHelp(in *reader, to int) {
	k, from := helpKind(in.within(int(helpAccepted)+1)), reassign.Worker(in.within(len(r.workers)))
	life, clock := in.within(2), in.within(r.last+1)
	var message any
	if k == aProgress {
		message = reassign.Progress{From: from, Life: life, Clock: clock, Done: float64(in.int()) / helpUnits,
			Timer: r.now()}
	} else {
		t := reassign.Task{Helpee: reassign.Worker(in.within(len(r.workers))), Life: life, Clock: clock,
			Number: in.within(mostItems), Range: reassign.Range{From: in.within(mostItems), To: in.within(mostItems)}}
		if t.From > t.To {
			_ = in.corrupt()
		}
		message = helpMessage(k, from, t)
	}
	contents := append([]byte(nil), in.bytes()...)
	if in.err != nil || to < 0 || to >= len(r.workers) || r.workers[to].sharing == nil {
		_ = in.corrupt()
		return
	}
	r.hear(r.workers[to], message, contents)
}

func helpMessage(k helpKind, from reassign.Worker, t reassign.Task) any {
	switch k {
	case doThis:
		return reassign.DoThis{Task: t}
	case hasBegun:
		return reassign.Begun{Helper: from, Task: t}
	case cancelHelp:
		return reassign.Cancel{Task: t}
	case helpCancelled:
		return reassign.Cancelled{Helper: from, Task: t}
	case helpCompleted:
		return reassign.Completed{Helper: from, Task: t}
	}
	return reassign.Accepted{Task: t}
}
