package executor

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/storage/shuffle"
)

// Program is a user's plan that can take over the driver's inputs.
type Program interface {
	runner.Program
	Bind(sources []byte) error
}

// Catalog finds packs on this machine.
type Catalog interface {
	// Pack returns the directory of the pack that a node makes, and its
	// description. It may have to be built first.
	Pack(ctx context.Context, node int) (dir string, meta *pack.Meta, err error)
}

// Peers reach other executors.
type Peers interface {
	// Meta describes a pack that a peer holds splits of.
	Meta(ctx context.Context, from Peer, node int) (*pack.Meta, error)
	// FetchSplit writes the bytes of a split that a peer holds.
	FetchSplit(ctx context.Context, from Peer, key pack.SplitKey, w io.Writer) error
	// OpenMapOutput reads partitions of a map task's output that a peer keeps.
	OpenMapOutput(ctx context.Context, from Peer, key shuffle.Key, span shuffle.Span) (io.ReadCloser, error)
}

// Peer is another executor, and the address at which it serves blocks.
type Peer struct {
	ID      plan.ExecutorID
	Address string // empty within one process
}

// Engine does an executor's work: it builds plans, fetches splits, folds and
// runs actions. It decides nothing.
type Engine struct {
	program Program
	store   *Store
	catalog Catalog
	peers   Peers
	self    plan.ExecutorID
	// TaskMemory is how many bytes of rows a task may hold; 0 is 256 MiB.
	TaskMemory int
	// TaskHeld is how many bytes a task may hold as a whole, such as the values of a key; 0
	// is no limit.
	TaskHeld int
	// OneMachine says that no other machine reads what its tasks make.
	OneMachine bool
	// Shared holds the values that tasks of this process share.
	Shared *Shared
	mu     struct {
		sync.Mutex
		accBytes map[[2]int]int64 // by node and parameter length
		states   map[stateKey][]stateOf
		metas    map[int]*pack.Meta
		acting   map[*acting]bool
	}
}

// NewEngine makes the engine of an executor.
func NewEngine(self plan.ExecutorID, program Program, store *Store, catalog Catalog, peers Peers) *Engine {
	e := &Engine{self: self, program: program, store: store, catalog: catalog, peers: peers, Shared: &Shared{}}
	e.mu.states = map[stateKey][]stateOf{}
	e.mu.accBytes, e.mu.metas, e.mu.acting = map[[2]int]int64{}, map[int]*pack.Meta{}, map[*acting]bool{}
	return e
}

// Store returns the executor's splits and map outputs.
func (e *Engine) Store() *Store { return e.store }

// Plan takes over a job's inputs and returns the plan that the program has built.
func (e *Engine) Plan(p *wire.Prepare) *Planned {
	err := e.program.Bind(p.Sources)
	return &Planned{Job: p.Job, Fingerprint: e.program.Fingerprint(), Err: err}
}

// Fetch fetches a split, from a peer where one is named, else from its source.
func (e *Engine) Fetch(ctx context.Context, h *wire.Hold) *Fetched {
	digest, err := e.fetch(ctx, h)
	return &Fetched{Hold: h, SHA256: digest, Err: err}
}

func (e *Engine) fetch(ctx context.Context, h *wire.Hold) (plan.Digest, error) {
	key := pack.SplitKey{Node: int(h.Node), Split: int(h.Split)}
	if meta := e.Meta(key.Node); meta != nil && e.store.Splits.Path(key) != "" {
		return meta.Splits[key.Split].SHA256, nil
	}
	if h.From == "" {
		return e.adopt(ctx, key)
	}
	from := Peer{ID: plan.ExecutorID(h.From), Address: h.FromAddress}
	meta, err := e.peers.Meta(ctx, from, key.Node)
	if err != nil {
		return plan.Digest{}, err
	}
	if key.Split >= len(meta.Splits) {
		return plan.Digest{}, fault.Newf(fault.PlanMismatch, "fetch", fmt.Sprintf("split %d", key.Split),
			"%s's pack has %d splits", h.From, len(meta.Splits))
	}
	e.know(key.Node, meta)
	if e.store.Splits.Holds(key, meta) { // since an earlier process of the job
		return meta.Splits[key.Split].SHA256, nil
	}
	return e.store.Splits.Receive(key, meta, func(w io.Writer) error { return e.peers.FetchSplit(ctx, from, key, w) })
}

// OpenSplit opens a split that this executor holds, or fetches from a peer where one is named, or else makes.
func (e *Engine) OpenSplit(ctx context.Context, key pack.SplitKey, from Peer) (*pack.Split, error) {
	if e.store.Splits.Path(key) == "" {
		h := &wire.Hold{Node: uint32(key.Node), Split: uint32(key.Split), From: string(from.ID),
			FromAddress: from.Address}
		if _, err := e.fetch(ctx, h); err != nil {
			return nil, err
		}
	}
	return e.store.Splits.Open(key)
}

// adopt takes a split of a pack that this executor has built, or builds now.
func (e *Engine) adopt(ctx context.Context, key pack.SplitKey) (plan.Digest, error) {
	dir, meta, err := e.catalog.Pack(ctx, key.Node)
	if err != nil {
		return plan.Digest{}, err
	}
	e.know(key.Node, meta)
	return e.store.Splits.Adopt(key, dir, meta)
}

func (e *Engine) know(node int, meta *pack.Meta) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.metas[node] == nil {
		e.mu.metas[node] = meta
	}
}

// Meta describes a pack that this executor holds splits of, if it does.
func (e *Engine) Meta(node int) *pack.Meta {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.metas[node]
}

// acting is a running task, for reports of its progress.
type acting struct {
	task  *wire.RunTask
	began time.Time
	rows  atomic.Int64
	moved atomic.Int64 // rows processed anywhere in it, and bytes moved
	waits atomic.Int64 // on what has its own bounds: packs, splits, what other tasks make
	// bytes, to disk and of map outputs by their holders
	spilled atomic.Int64
	fetched sync.Map // plan.ExecutorID: *atomic.Int64
}

// reads counts the bytes that are read of an output that an executor holds.
func (a *acting) reads(holder plan.ExecutorID, r io.ReadCloser, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	n, _ := a.fetched.LoadOrStore(holder, &atomic.Int64{})
	return shuffle.Counted(r, func(bytes int64) { n.(*atomic.Int64).Add(bytes) }), nil
}

// fetchedFrom returns the bytes that were read, by holder.
func (a *acting) fetchedFrom() (all []*wire.FetchedFrom) {
	for holder, n := range a.fetched.Range {
		all = append(all, &wire.FetchedFrom{Holder: string(holder.(plan.ExecutorID)),
			Bytes: n.(*atomic.Int64).Load()})
	}
	slices.SortFunc(all, func(a, b *wire.FetchedFrom) int { return strings.Compare(a.Holder, b.Holder) })
	return all
}

// waiting notes that the task waits, until the function that it returns is called.
func (a *acting) waiting() func() {
	a.waits.Add(1)
	return func() { a.waits.Add(-1) }
}

// Act runs one task of an action.
func (e *Engine) Act(ctx context.Context, t *wire.RunTask) *wire.TaskResult {
	a := &acting{task: t, began: time.Now()}
	e.mu.Lock()
	e.mu.acting[a] = true
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.mu.acting, a)
	}()
	data, err := e.program.Task(ctx, int(t.Node), int(t.Partition), t.Args, localPacks{e, ctx, t, a})
	return &wire.TaskResult{Job: t.Job, Call: t.Call, Partition: t.Partition, Data: data, Fault: wire.FromError(err),
		Rows: a.rows.Load(), BusyNs: int64(time.Since(a.began)), Spilled: a.spilled.Load(),
		Fetched: a.fetchedFrom()}
}

// Acting returns the progress of the tasks that have run for some time.
func (e *Engine) Acting(least time.Duration) (out []*wire.TaskProgress) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for a := range e.mu.acting {
		if a.waits.Load() > 0 {
			a.moved.Add(1)
		}
		if busy := time.Since(a.began); busy >= least {
			out = append(out, &wire.TaskProgress{Job: a.task.Job, Call: a.task.Call, Partition: a.task.Partition,
				Rows: a.rows.Load(), BusyNs: int64(busy),
				Moved: a.rows.Load() + a.moved.Load()})
		}
	}
	return out
}

// localPacks opens splits for actions, held or not: any executor may run them.
type localPacks struct {
	e    *Engine
	ctx  context.Context
	task *wire.RunTask
	acts *acting
}

func (p localPacks) OpenSplit(node, split int) (*pack.Split, error) {
	key := pack.SplitKey{Node: node, Split: split}
	if p.e.store.Splits.Path(key) == "" {
		defer p.acts.waiting()()
		if _, err := p.e.adopt(p.ctx, key); err != nil {
			return nil, err
		}
	}
	return p.e.store.Splits.Open(key)
}

func (p localPacks) MakePack(ctx context.Context, node int) (plan.ExecutorID, *pack.Meta, error) {
	defer p.acts.waiting()()
	_, meta, err := p.e.catalog.Pack(ctx, node)
	if err != nil {
		return "", nil, err
	}
	for i := range meta.Splits { // it can hand out, or take over, any of them from now on
		if _, err := p.e.adopt(ctx, pack.SplitKey{Node: node, Split: i}); err != nil {
			return "", nil, err
		}
	}
	return p.e.self, meta, nil
}

// DefaultTaskMemory is how many bytes of rows a task may hold by default.
const DefaultTaskMemory = 256 << 20

func (p localPacks) Advance(rows int) { p.acts.rows.Add(int64(rows)) }

func (p localPacks) Moved(n int) { p.acts.moved.Add(int64(n)) }

func (p localPacks) Spilled(bytes int64) { p.acts.spilled.Add(bytes) }

func (p localPacks) Memory() int {
	if p.e.TaskMemory == 0 {
		return DefaultTaskMemory
	}
	return p.e.TaskMemory
}

func (p localPacks) Held() int { return p.e.TaskHeld }

func (p localPacks) NewMapOutput(partitions int) *shuffle.Writer {
	w := p.e.store.Outputs.NewWriter(partitions, p.Memory()/8)
	if p.e.OneMachine {
		w.StaysHere()
	}
	return w
}

func (p localPacks) KeepShuffle(key shuffle.Key, b *shuffle.Output) plan.ExecutorID {
	p.e.store.Outputs.Keep(key, b)
	return p.e.self
}

func (p localPacks) DropShuffle(node int, through uint64) { p.e.store.Outputs.Drop(node, through) }

func (p localPacks) Shared(name, version string, bytes int64, make func() (any, error)) (any, error) {
	waited, making := p.acts.waiting(), false // for the task that makes it
	v, err := p.e.Shared.get(name, version, bytes, func() (any, error) {
		making = true
		waited()
		return make()
	})
	if !making {
		waited()
	}
	return v, err
}

func (p localPacks) OpenMapOutput(ctx context.Context, holder plan.ExecutorID, key shuffle.Key,
	span shuffle.Span) (io.ReadCloser, error) {
	if holder == p.e.self {
		r, err := p.e.store.Outputs.Open(key, span)
		return p.acts.reads(holder, r, err)
	}
	from := Peer{ID: holder}
	for i, h := range p.task.Holders {
		if h == string(holder) && i < len(p.task.Addresses) {
			from.Address = p.task.Addresses[i]
		}
	}
	r, err := p.e.peers.OpenMapOutput(ctx, from, key, span)
	return p.acts.reads(holder, r, err)
}

// Fold is a run's tasks, ready to be folded.
type Fold struct {
	Tasks   []*runner.SplitFold
	BySlot  [][]int
	e       *Engine
	step    *wire.StartStep
	folders []runner.Folder // by slot
	splits  int
	done    []*runner.Acc
	busy    []time.Duration
}

// Begin opens the run's splits and prepares their folds.
func (e *Engine) Begin(run *Run, slots int) (fold *Fold, err error) {
	defer userPanic(&err)
	s := run.Step
	packNode := int(s.PackNode)
	meta, err := e.packMeta(packNode)
	if err != nil {
		return nil, err
	}
	f := &Fold{e: e, step: s, BySlot: SlotsOf(len(s.Tasks), slots), splits: len(meta.Splits),
		Tasks: make([]*runner.SplitFold, len(s.Tasks)), done: make([]*runner.Acc, len(s.Tasks))}
	f.busy = make([]time.Duration, len(f.BySlot))
	newFolder, err := e.program.Folders(int(s.Node))
	if err != nil {
		return nil, err
	}
	for _, words := range f.BySlot {
		folder, err := newFolder(meta, run.Param)
		if err != nil {
			return nil, err
		}
		f.folders = append(f.folders, folder)
		accBytes, err := e.accumulatorBytes(folder, int(s.Node), len(run.Param))
		if err != nil {
			return nil, err
		}
		for _, i := range words {
			t := s.Tasks[i]
			split, err := e.store.Splits.Open(pack.SplitKey{Node: packNode, Split: int(t.Split)})
			if err != nil {
				return nil, err
			}
			state, err := e.stateOf(s, s.States, t, folder)
			if err != nil {
				return nil, err
			}
			pieces := runner.Pieces(folder, meta, int(t.Split), accBytes)
			f.Tasks[i] = runner.NewSplitFold(folder, split, int64(t.Cursor), int64(t.Limit), pieces).WithState(state)
			if s.Entries {
				f.Tasks[i].CountEntries()
			}
		}
	}
	return f, nil
}

// splitOf returns the split that a slot folds; -1 is several.
func (f *Fold) splitOf(slot int) int {
	if len(f.BySlot[slot]) != 1 {
		return -1
	}
	return int(f.step.Tasks[f.BySlot[slot][0]].Split)
}

// packMeta describes a pack that this executor is to fold splits of.
func (e *Engine) packMeta(node int) (*pack.Meta, error) {
	if meta := e.Meta(node); meta != nil {
		return meta, nil
	}
	return nil, fault.Newf(fault.FetchFailed, "fold", fmt.Sprintf("the pack of node %d", node),
		"this executor holds no split of it")
}

func (e *Engine) accumulatorBytes(f runner.Folder, node, param int) (int64, error) {
	key := [2]int{node, param}
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.mu.accBytes[key]; ok {
		return n, nil
	}
	raw, err := f.Encode(f.Zero())
	if err != nil {
		return 0, fault.New(fault.UserCode, "encode", "the accumulator", err)
	}
	e.mu.accBytes[key] = int64(len(raw))
	return int64(len(raw)), nil
}

// FinishSlot merges the pieces of a slot's tasks; slots may do so
// independently. skip are splits whose results are not needed.
func (f *Fold) FinishSlot(slot int, skip map[plan.SplitID]bool, busy time.Duration) (err error) {
	defer userPanic(&err)
	f.busy[slot] = busy
	for _, i := range f.BySlot[slot] {
		if !skip[plan.SplitID(f.step.Tasks[i].Split)] {
			f.done[i] = f.Tasks[i].Finish(f.step.Scale)
		}
	}
	return nil
}

// userPanic turns a panic in the user's functions into an error.
func userPanic(err *error) {
	if r := recover(); r != nil {
		*err = fault.Newf(fault.UserCode, "fold", "the step", "panic: %v\n%s", r, debug.Stack())
	}
}

// Result merges the tasks of all slots into maximal subtrees and encodes them.
func (f *Fold) Result(run int, skip map[plan.SplitID]bool) (out *Folded) {
	var err error
	defer func() {
		if err != nil {
			out = &Folded{Run: run, Err: err}
		}
	}()
	defer userPanic(&err)
	out = &Folded{Run: run}
	held, accs := map[int]bool{}, map[int]*runner.Acc{}
	for i, t := range f.step.Tasks {
		if skip[plan.SplitID(t.Split)] {
			continue
		}
		held[int(t.Split)] = true
		accs[int(t.Split)] = f.done[i]
		c := CoverageOf(t, f.Tasks[i].Count(), f.Tasks[i].Weight(), f.done[i])
		if f.step.Entries {
			c.Entries = f.Tasks[i].Progress()
		}
		out.Coverage = append(out.Coverage, c)
	}
	if out.Parts, err = encodeParts(f.folders[0], runner.Reduce(f.folders[0], f.splits, held, accs)); err != nil {
		return nil // the error is the result
	}
	for i, t := range f.step.Tasks {
		if state := f.Tasks[i].State(); state != nil && !skip[plan.SplitID(t.Split)] {
			out.Parts = append(out.Parts, f.e.keepState(f.step, t, state))
		}
	}
	for _, b := range f.busy {
		out.Busy += b
	}
	return out
}

// encodeParts encodes parts for the wire.
func encodeParts(f runner.Folder, parts []runner.Part) ([]*wire.Part, error) {
	var out []*wire.Part
	for _, p := range parts {
		data, err := f.Encode(p.Acc.Value)
		if err != nil {
			return nil, fault.New(fault.UserCode, "encode", "the accumulator", err)
		}
		out = append(out, &wire.Part{Level: int32(p.Level), Index: uint32(p.Index), Data: data, Weight: p.Acc.Weight})
	}
	return out, nil
}
