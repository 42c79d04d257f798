package tables

import (
	"context"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables/consistency"
)

// beginning is what a member of a gang gets first: the run that it is a part of.
type beginning struct {
	Cast               cast
	First, Last, Every int
	Shapes             []Shape
	Param              []byte
	Timeout            time.Duration // without a sign of a worker
	States             [][]byte      // of the workers that it runs; nil where they begin
}

// gather begins a run whose workers and shards are in other processes. This one knows how far all are, and takes what
// they are at reports.
func (c *clocks[P, D, S]) gather(ctx context.Context) (*run, error) {
	gang, err := c.gang(ctx, c.last)
	if err != nil {
		return nil, err
	}
	r, err := c.restored(cast{gang.Slots(), gang.Homes()}, rdd.Leader)
	if err == nil {
		r.names = gang.Names()
		err = c.brief(gang, r)
	}
	if err != nil {
		gang.Close()
		return nil, err
	}
	r.close, r.grown = gang.Close, gang.Grown
	r.mayLead()
	r.start()
	r.out.start()
	r.all.Go(func() {
		for {
			from, message, err := gang.Recv()
			if err == nil {
				err = r.out.take(from, message)
			}
			if err != nil {
				r.fail(err)
				return
			}
		}
	})
	return r, nil
}

// brief sends members what they begin with.
func (c *clocks[P, D, S]) brief(gang rdd.Gang, r *run) error {
	b := beginning{Cast: cast{gang.Slots(), gang.Homes()}, First: r.first, Last: r.last, Every: r.every,
		Timeout: gang.Timeout()}
	for _, t := range r.tables {
		b.Shapes = append(b.Shapes, t.shape())
	}
	var err error
	if b.Param, err = rdd.Encode(c.param); err != nil {
		return fault.New(fault.UserCode, "encode", "the parameter of workers", err)
	}
	r.out = newOutside(r, gang.Send)
	for e := range r.executors {
		b.States = make([][]byte, len(r.workers))
		for _, w := range r.executors[e].workers {
			if r.first > 0 {
				b.States[w.id] = c.at.States[w.id]
			}
		}
		first, err := rdd.Encode(b)
		if err == nil {
			err = gang.Send(e, first)
		}
		if err != nil {
			return err
		}
		for _, t := range r.tables {
			if r.first > 0 {
				r.out.post(e, func(w *writer) { t.writeSnapshot(w, aShard, e, t.restored()[e]) })
			}
		}
		r.out.post(e, func(w *writer) { w.begin(aGo, 0, 0); w.end() })
	}
	return nil
}

// member does a member's part of a run.
func (w Work[P, D, S]) member(ctx context.Context, m *rdd.Member) error {
	from := &early{Member: m}
	r, b, err := w.joined(from)
	if err != nil {
		return ofTheEnd(err)
	}
	data, err := w.data.At(ctx, m, w.splitsOf(r, m.Number))
	if err != nil {
		return err
	}
	going, stopped := context.WithCancel(ctx)
	defer stopped()
	go func() {
		select {
		case <-r.stopped: // who waits for a slot is to end, too
			stopped()
		case <-going.Done():
		}
	}()
	r.pause = func() time.Duration { return m.Pause(going) }
	r.pacer = func(_, slot int) rdd.Pacer { return m.Pacer(slot) }
	return w.serve(r, b, from, data)
}

// splitsOf returns the splits that an executor reads: those of its workers, and of whom these may help.
func (w Work[P, D, S]) splitsOf(r *run, executor int) (splits []int) {
	for _, x := range r.executors[executor].workers {
		splits = append(splits, int(x.id))
	}
	if w.help == nil || !w.help.rows {
		return splits
	}
	_, helpees := r.groups(w.help.by)
	for _, x := range r.executors[executor].workers {
		for _, o := range helpees[x.id] {
			splits = append(splits, int(o))
		}
	}
	slices.Sort(splits)
	return slices.Compact(splits)
}

// serve runs the workers and shards of a member until the run ends.
func (w Work[P, D, S]) serve(r *run, b *beginning, from *early, rows source[D]) error {
	var param P
	if err := rdd.Decode(b.Param, &param); err != nil {
		return fault.New(fault.UserCode, "decode", "the parameter of workers", err)
	}
	if err := w.employ(r, b.States, param, rows); err != nil {
		return err
	}
	r.timeout = b.Timeout
	if err := r.awaitGo(from); err != nil {
		return ofTheEnd(err)
	}
	r.mayLead()
	r.start()
	r.out.start()
	defer r.stop()
	go r.follow(from)
	<-r.stopped
	err := r.failed()
	if err != nil && from.Fail != nil {
		from.Fail(err) // workers may be long in ending
	}
	return err
}

// ofTheEnd returns nil where the work is to end.
func ofTheEnd(err error) error {
	if fault.KindOf(err) == fault.Cancelled {
		return nil
	}
	return err
}

// joined makes a member's run of what the job's process sends first.
func (w Work[P, D, S]) joined(m *early) (*run, *beginning, error) {
	first, err := m.ofLeader()
	if err != nil {
		return nil, nil, err
	}
	var b beginning
	if err := rdd.Decode(first, &b); err != nil {
		return nil, nil, fault.New(fault.Corrupt, "read", "what workers begin with", err)
	}
	if len(b.Shapes) != len(w.tables) || m.Number >= len(b.Cast.Slots) {
		return nil, nil, fault.Newf(fault.PlanMismatch, "begin", "workers", "%d tables, of %d; member %d of %d",
			len(b.Shapes), len(w.tables), m.Number, len(b.Cast.Slots))
	}
	for i, t := range w.tables {
		t.reshape(b.Shapes[i])
	}
	r, err := w.newRun(b.Cast, m.Number, b.First, b.Last, b.Every)
	if err != nil {
		return nil, nil, err
	}
	r.out = newOutside(r, m.Send)
	return r, &b, nil
}

// early is a member that has not begun yet: what others send it meanwhile, who have, is kept.
type early struct {
	*rdd.Member
	kept []sent
}

// sent is a piece that another process has sent.
type sent struct {
	from  int
	piece []byte
}

// ofLeader waits for the next piece of the job's process.
func (m *early) ofLeader() ([]byte, error) {
	for {
		from, piece, err := m.Recv()
		if err != nil || from == rdd.Leader {
			return piece, err
		}
		m.kept = append(m.kept, sent{from, piece})
	}
}

// next returns the next piece of any process.
func (m *early) next() (int, []byte, error) {
	if len(m.kept) == 0 {
		return m.Recv()
	}
	s := m.kept[0]
	m.kept = m.kept[1:]
	return s.from, s.piece, nil
}

// awaitGo takes what shards begin from, up to the word of the job's process.
func (r *run) awaitGo(m *early) error {
	for !r.going {
		piece, err := m.ofLeader()
		if err == nil {
			err = r.out.take(rdd.Leader, piece)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// follow takes what other processes send until the run ends.
func (r *run) follow(m *early) {
	for {
		from, piece, err := m.next()
		switch {
		case fault.KindOf(err) == fault.Cancelled:
			r.end()
			return
		case err == nil:
			err = r.out.take(from, piece)
		}
		if err != nil {
			r.fail(err)
			return
		}
	}
}

// receive takes a message of another process.
func (r *run) receive(in *reader, k kind, table, to int) {
	switch k {
	case aGo:
		r.going = true
		r.startTables() // what follows in the piece may be for them
	case aHorizon:
		r.horizon.Store(int64(in.int() + r.ahead))
		r.stir()
	case aState:
		r.receiveState(in, to)
	case aHelp:
		r.receiveHelp(in, to)
	default:
		if table < 0 || table >= len(r.tables) {
			_ = in.corrupt()
			return
		}
		r.tables[table].receive(in, k, to)
	}
}

// sendState sends a worker's state after a clock that is reported, and how its executor has spent its time so far.
func (r *run) sendState(w *worker, after int, state []byte) {
	x := w.executor
	x.mu.Lock()
	spent, said := x.spending, w.said
	x.mu.Unlock()
	bytes := r.out.post(rdd.Leader, func(to *writer) {
		to.begin(aState, 0, int(w.id))
		to.ints(after, int(spent.busy), int(spent.waited), spent.items, spent.helped,
			int(spent.Ahead), int(spent.Stale))
		to.bytes(state)
		to.use(said, spent.use)
		to.end()
	})
	x.mu.Lock()
	x.states += bytes
	x.mu.Unlock()
}

func (r *run) receiveState(in *reader, id int) {
	after := in.within(r.last + 1)
	spent := spending{time.Duration(in.int()), time.Duration(in.int()), in.int(), in.int(),
		consistency.Spread{Ahead: consistency.Clock(in.int()), Stale: consistency.Clock(in.int())}, use{}}
	state := append([]byte(nil), in.bytes()...)
	var said plan.WorkerUse
	said, spent.use = in.use(len(r.tables))
	said.Clock = after
	if in.err != nil || id < 0 || id >= len(r.workers) {
		_ = in.corrupt()
		return
	}
	x := r.workers[id].executor
	x.mu.Lock()
	if spent.busy+spent.waited >= x.busy+x.waited { // of several the last
		x.spending = spent
	}
	r.workers[id].said = said
	x.mu.Unlock()
	r.savedState(after, id, state)
}
