package executor

import (
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/storage/pack"
)

// LeasedFold is a run whose pieces arrive one by one.
type LeasedFold struct {
	e       *Engine
	step    *wire.StartStep
	meta    *pack.Meta
	folders []runner.Folder // by slot
	states  []*wire.Part    // that came with leases
	mu      struct {
		sync.Mutex
		done map[uint32]leasedPiece
	}
}

// leasedPiece is a piece that has been folded.
type leasedPiece struct {
	lease *wire.Lease
	acc   *runner.Acc
	state []float64
	busy  time.Duration
}

// BeginLeased prepares a run for leases.
func (e *Engine) BeginLeased(run *Run, slots int) (f *LeasedFold, err error) {
	defer userPanic(&err)
	f = &LeasedFold{e: e, step: run.Step}
	f.mu.done = map[uint32]leasedPiece{}
	if f.meta, err = e.packMeta(int(run.Step.PackNode)); err != nil {
		return nil, err
	}
	newFolder, err := e.program.Folders(int(run.Step.Node))
	if err != nil {
		return nil, err
	}
	for range slots {
		folder, err := newFolder(f.meta, run.Param)
		if err != nil {
			return nil, err
		}
		f.folders = append(f.folders, folder)
	}
	return f, nil
}

// Add takes what arrived with leases.
func (f *LeasedFold) Add(states []*wire.Part) {
	f.mu.Lock()
	f.states = append(f.states, states...)
	f.mu.Unlock()
}

// RowsOf returns how many rows a lease is over, and how many its split has.
func (f *LeasedFold) RowsOf(l *wire.Lease) (rows, split int64) {
	split = f.meta.Splits[l.Task.Split].Rows
	_, rows = plan.VisitedOf(split, int64(l.Task.Cursor), int64(l.Task.Limit), int(l.Parts), int(l.Part))
	return rows, split
}

// Fold folds a lease's piece on a slot; ok is false where it was stopped before
// its end.
func (f *LeasedFold) Fold(slot int, l *wire.Lease, page *runner.Page, pacer runner.Pacer) (ok bool, err error) {
	defer userPanic(&err)
	began := time.Now()
	if int(l.Task.Split) >= len(f.meta.Splits) || l.Parts == 0 || l.Pieces%l.Parts != 0 || l.Part >= l.Parts {
		return false, fault.Newf(fault.PlanMismatch, "fold", "a lease", "part %d of %d of %d pieces of split %d of %d",
			l.Part, l.Parts, l.Pieces, l.Task.Split, len(f.meta.Splits))
	}
	split, err := f.e.store.Splits.Open(pack.SplitKey{Node: int(f.step.PackNode), Split: int(l.Task.Split)})
	if err != nil {
		return false, err
	}
	f.mu.Lock()
	states := f.states
	f.mu.Unlock()
	state, err := f.e.stateOf(f.step, states, l.Task, f.folders[slot])
	if err != nil {
		return false, err
	}
	t := runner.NewPartFold(f.folders[slot], split, int64(l.Task.Cursor), int64(l.Task.Limit), int(l.Pieces),
		int(l.Parts), int(l.Part)).WithState(state)
	if err := runner.Visit([]runner.Task{{Fold: t, Word: slot}}, page, pacer, func(int) {}); err != nil {
		return false, err
	}
	if t.Left() > 0 {
		return false, nil
	}
	piece := leasedPiece{l, t.Part(int(l.Parts), int(l.Part)), t.State(), time.Since(began)}
	f.mu.Lock()
	f.mu.done[l.Id] = piece
	f.mu.Unlock()
	return true, nil
}

// Result merges the pieces of some leases, and returns how long they took.
func (f *LeasedFold) Result(run int, ids []uint32) (out *Folded) {
	var err error
	defer func() {
		if err != nil {
			out = &Folded{Run: run, Err: err}
		}
	}()
	defer userPanic(&err)
	out = &Folded{Run: run}
	pieces := map[runner.PartOf]*runner.Acc{}
	for _, id := range ids {
		p, ok := f.mu.done[id]
		if !ok {
			return &Folded{Run: run, Err: fault.Newf(fault.Internal, "merge", "a lease", "lease %d was not folded here",
				id)}
		}
		out.Busy += p.busy
		rows, _ := f.RowsOf(p.lease)
		pieces[runner.PartOf{Split: int(p.lease.Task.Split), Part: int(p.lease.Part),
			Parts: int(p.lease.Parts)}] = p.acc
		var weight float64
		if p.acc != nil {
			weight = p.acc.Weight
		}
		c := CoverageOf(p.lease.Task, rows, weight, p.acc)
		out.Coverage, out.Leases = append(out.Coverage, c), append(out.Leases, id)
	}
	whole := func(split int, acc *runner.Acc) {
		runner.Close(f.folders[0], acc, f.meta, split, acc.Count == f.meta.Splits[split].Rows, f.step.Scale)
	}
	out.Parts, err = encodeParts(f.folders[0], runner.ReduceParts(f.folders[0], len(f.meta.Splits), pieces, whole))
	for _, id := range ids {
		if p := f.mu.done[id]; p.state != nil {
			out.Parts = append(out.Parts, f.e.keepState(f.step, p.lease.Task, p.state))
		}
	}
	return out
}

// Failed returns the result of a run in which a lease could not be folded.
func (f *LeasedFold) Failed(run int, l *wire.Lease, err error) *Folded {
	return &Folded{Run: run, Err: err, Coverage: []plan.Coverage{CoverageOf(l.Task, 0, 0, nil)}, Leases: []uint32{l.Id}}
}

// leasing is the state that the slots of a leased run share: the pieces to
// fold, and how the run ends.
type leasing struct {
	mu     sync.Mutex
	more   *sync.Cond
	queue  []*wire.Lease
	states []*wire.Part // that came with them
	ended  bool
	ids    []uint32 // to include
	failed *Folded
}

func newLeasing() *leasing {
	l := &leasing{}
	l.more = sync.NewCond(&l.mu)
	return l
}

// add gives the slots more to fold.
func (l *leasing) add(c *LeaseRun) {
	l.mu.Lock()
	l.queue, l.states = append(l.queue, c.Leases...), append(l.states, c.States...)
	l.mu.Unlock()
	l.more.Broadcast()
}

// next waits for a piece; nil is the run's end. What came with pieces is given to take before any slot has one of them.
func (l *leasing) next(take func([]*wire.Part)) *wire.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.ended {
		l.more.Wait()
	}
	if l.ended {
		return nil
	}
	take(l.states)
	first := l.queue[0]
	l.queue, l.states = l.queue[1:], nil
	return first
}

// end ends the run: with what is to be included, or with a failure.
func (l *leasing) end(ids []uint32, failed *Folded) {
	l.mu.Lock()
	if !l.ended {
		l.ended, l.ids, l.failed = true, ids, failed
	}
	l.mu.Unlock()
	l.more.Broadcast()
}

// foldLeased runs a leased run's slots to its end and merges the requested pieces.
func (e *Executor) foldLeased(run *Run, r *liveRun) *Folded {
	f, err := e.engine.BeginLeased(run, e.cfg.Slots)
	if err != nil {
		return &Folded{Run: run.ID, Err: err}
	}
	for k := range e.cfg.Slots {
		e.did(r, k, plan.Loading, -1, r.did.began)
	}
	var wg sync.WaitGroup
	for k := 1; k < e.cfg.Slots; k++ {
		wg.Go(func() { e.leasedSlot(run.ID, k, f, r) })
	}
	e.leasedSlot(run.ID, 0, f, r)
	wg.Wait()
	if r.leasing.failed != nil {
		return r.leasing.failed
	}
	began := e.now()
	out := f.Result(run.ID, r.leasing.ids)
	e.did(r, 0, plan.Merging, -1, began)
	return out
}

// leasedSlot folds pieces until the run ends.
func (e *Executor) leasedSlot(run, k int, f *LeasedFold, r *liveRun) {
	var pacer runner.Pacer
	if e.cfg.Pacer != nil {
		pacer = e.cfg.Pacer(k)
	}
	for {
		began := time.Now()
		l := r.leasing.next(f.Add)
		if l == nil {
			return
		}
		if pacer != nil {
			pacer.Waited(time.Since(began))
		}
		folds := e.now()
		ok, err := f.Fold(k, l, r.page, pacer)
		e.did(r, k, KindOf(l), int(l.Task.Split), folds)
		if err != nil {
			r.leasing.end(nil, f.Failed(run, l, err))
			r.page.Stop()
			return
		}
		if !ok {
			return
		}
		e.post(Event{Pieces: &PiecesFolded{Run: run, IDs: []uint32{l.Id}}})
	}
}
