package sim

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// receipt is what a counting fold produces in place of a gradient: which
// positions of which split were folded, under which assignment, and whether
// the copy they were read from was sound. Merging concatenates.
type receipt struct {
	split, attempt, epoch, cursor, count uint64
	damaged                              uint64
	piece                                uint64 // counted from 1, where it is of one
	state                                uint64 // what lived with the split: rows merged before
	parts                                uint64 // that piece is of
	pack, life                           uint64 // life of the job that it was folded for
	limit                                uint64 // of a piece: rows of its split that the step folds
}

const receiptWords = 12

// spans returns the positions that were folded.
func (r receipt) spans(rows int64) []plan.Span {
	spans := plan.Visited(rows, int64(r.cursor), int64(r.count))
	if r.count == 0 {
		return nil
	}
	if r.piece > 0 {
		spans, _ = plan.VisitedOf(rows, int64(r.cursor), int64(r.limit), int(r.parts), int(r.piece)-1)
	}
	return spans[:]
}

func (r receipt) encode(out []byte) []byte {
	for _, v := range []uint64{r.split, r.attempt, r.epoch, r.cursor, r.count, r.damaged, r.piece, r.state, r.parts,
		r.pack, r.life, r.limit} {
		out = binary.LittleEndian.AppendUint64(out, v)
	}
	return out
}

func decodeReceipts(raw []byte) []receipt {
	var out []receipt
	for ; len(raw) >= 8*receiptWords; raw = raw[8*receiptWords:] {
		var v [receiptWords]uint64
		for i := range v {
			v[i] = binary.LittleEndian.Uint64(raw[8*i:])
		}
		out = append(out, receipt{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11]})
	}
	return out
}

// countingWorker does the work of an executor in the simulator: it counts.
type countingWorker struct {
	s       *Sim
	n       *node
	life    uint32           // of the job, that the runner was started for
	held    map[splitOf]bool // true is a sound copy
	rng     *rand.Rand
	failing float64 // chance that a fetch delivers a damaged copy
	states  map[splitOf][]countedState
	bases   map[[2]int]uint64    // what tasks of runs go on from, by run and split
	getting map[splitOf]int      // copies on their way
	sent    map[int][]*wire.Part // states that came with leases, by run
}

// countedState is a version of the row state of a split: how many of its rows have
// been folded.
type countedState struct{ version, rows uint64 }

// stateOf returns what a task goes on with, as an engine finds it.
func (c *countingWorker) stateOf(pack int, sent []*wire.Part, t *wire.Assignment) (uint64, error) {
	at := splitOf{pack, int(t.Split)}
	if t.State == 0 {
		return 0, nil
	}
	have := c.states[at]
	if mutant.On(mutant.StaleState) && len(have) > 0 {
		return have[len(have)-1].rows, nil
	}
	for _, p := range sent {
		if p.Index == t.Split {
			rows := binary.LittleEndian.Uint64(p.Data)
			c.states[at] = []countedState{{t.State, rows}}
			return rows, nil
		}
	}
	for _, v := range have {
		if v.version == t.State {
			c.states[at] = []countedState{v}
			return v.rows, nil
		}
	}
	return 0, fault.Newf(fault.FetchFailed, "fold", "split", "the row state of split %d is not here", t.Split)
}

// goOn goes on from the row state of a split, where something does.
func (c *countingWorker) goOn(out *executor.Folded, r *executor.Run, sent []*wire.Part, t *wire.Assignment,
	rc *receipt) (err error) {
	if r.Step.Node != statefulNode {
		return nil
	}
	pack := packOf(r.Step)
	if base, begun := c.bases[[2]int{r.ID, int(t.Split)}]; begun {
		rc.state = base
	} else {
		rc.state, err = c.stateOf(pack, sent, t)
	}
	if err == nil {
		out.Parts = append(out.Parts, c.keepState(pack, t, rc.state+rc.count))
	}
	return err
}

// statefulNode is the node of steps under which rows have state.
const statefulNode = 1

// packOf returns the number of the pack that a step reads: the simulator's
// packs are of the nodes from 1 on.
func packOf(m *wire.StartStep) int { return int(m.PackNode) - 1 }

func (c *countingWorker) keepState(pack int, t *wire.Assignment, rows uint64) *wire.Part {
	at := splitOf{pack, int(t.Split)}
	raw := binary.LittleEndian.AppendUint64(nil, rows)
	c.states[at] = append(c.states[at], countedState{wire.StateVersion(raw), rows})
	return &wire.Part{State: true, Index: t.Split, Data: raw}
}

func (c *countingWorker) plan(p *wire.Prepare) *executor.Planned {
	if c.n.foreign {
		c.s.fired("foreign plan")
		return &executor.Planned{Job: p.Job, Fingerprint: plan.DigestOf([]byte("another"))}
	}
	return &executor.Planned{Job: p.Job, Fingerprint: plan.DigestFromBytes(p.Fingerprint)}
}

// fetching notes that a copy is on its way: one at a time of each split.
func (c *countingWorker) fetching(h *wire.Hold) {
	at := splitOf{int(h.Pack), int(h.Split)}
	if _, here := c.held[at]; !here {
		if c.getting[at]++; c.getting[at] > 1 {
			c.s.violate("fetch.once", "%s gets split %d while it is getting it", c.n.id, h.Split)
		}
	}
}

// fetch gets a copy: from a peer it may be damaged on its way, or the peer
// may no longer hold it.
func (c *countingWorker) fetch(h *wire.Hold) *executor.Fetched {
	at := splitOf{int(h.Pack), int(h.Split)}
	delete(c.getting, at)
	f := &executor.Fetched{Hold: h, SHA256: plan.DigestFromBytes(h.Sha256)}
	if c.held[at] {
		return f
	}
	if c.n.full > c.s.w.now {
		f.Err = fault.Newf(fault.NoResources, "keep", "a split", "the disk is full")
		return f
	}
	if h.From != "" {
		peer := c.s.nodes[plan.ExecutorID(h.From)]
		if peer == nil || !peer.up || peer.stalled > c.s.w.now {
			f.Err = fault.Newf(fault.FetchFailed, "fetch from", h.From, "it is gone")
			return f
		}
		if c.rng.Float64() < c.failing {
			c.s.fired("damaged copy")
			f.SHA256[0] ^= 1
			c.held[at] = false
			return f
		}
	}
	c.held[at] = true
	return f
}

func (c *countingWorker) begin(r *executor.Run) (func(int) (int64, int64), error) {
	for _, t := range r.Step.Tasks {
		if r.Step.Node == statefulNode {
			state, err := c.stateOf(packOf(r.Step), r.Step.States, t)
			if err != nil {
				return nil, err
			}
			c.bases[[2]int{r.ID, int(t.Split)}] = state
		}
		if _, ok := c.held[splitOf{packOf(r.Step), int(t.Split)}]; !ok {
			return nil, fault.Newf(fault.FetchFailed, "open", "split", "split %d is not here", t.Split)
		}
	}
	return func(i int) (int64, int64) {
		t := r.Step.Tasks[i]
		n := c.s.packs[packOf(r.Step)].rows[t.Split]
		if t.Limit > 0 {
			return n, int64(t.Limit)
		}
		return n, n
	}, nil
}

func (c *countingWorker) progress(r *executor.Run, counts []int64) []int64 {
	for i, t := range r.Step.Tasks {
		counts[i] = c.s.packs[packOf(r.Step)].progress(r.Step, int(t.Split), int64(t.Cursor), counts[i])
	}
	return counts
}

func (c *countingWorker) finish(r *executor.Run, counts []int64, skip map[plan.SplitID]bool,
	busy time.Duration) *executor.Folded {
	out := &executor.Folded{Run: r.ID, Busy: busy}
	pack := packOf(r.Step)
	p := c.s.packs[pack]
	for i, t := range r.Step.Tasks {
		if c.s.poisoned(pack, int(t.Split)) {
			return &executor.Folded{Run: r.ID, Err: fault.Newf(fault.NoResources, "fold", "a split",
				"there is no memory for split %d", t.Split)}
		}
		if skip[plan.SplitID(t.Split)] {
			continue
		}
		n := counts[i]
		out.Coverage = append(out.Coverage, plan.Coverage{Split: plan.SplitID(t.Split), Attempt: int(t.Attempt),
			Epoch: plan.Epoch(t.Epoch), Cursor: int64(t.Cursor), Count: n, Folded: n,
			Entries: p.progress(r.Step, int(t.Split), int64(t.Cursor), n),
			Weight:  p.weight(int(t.Split), plan.Visited(p.rows[t.Split], int64(t.Cursor), n), n)})
		rc := receipt{split: uint64(t.Split), attempt: uint64(t.Attempt), epoch: t.Epoch, cursor: t.Cursor,
			count: uint64(n),
			pack:  uint64(pack), life: c.lifeOf(r)}
		if c.miscounts() && n > 0 {
			out.Coverage[len(out.Coverage)-1].Folded--
		}
		if err := c.goOn(out, r, r.Step.States, t, &rc); err != nil {
			return &executor.Folded{Run: r.ID, Err: err}
		}
		if !c.held[splitOf{pack, int(t.Split)}] {
			rc.damaged = 1
		}
		if n > 0 {
			out.Parts = append(out.Parts, &wire.Part{Index: t.Split, Data: rc.encode(nil)})
		}
	}
	return out
}

func (c *countingWorker) beginLeased(*executor.Run) error { return nil }

// failed returns, for a lease now and then, an error for want of memory.
func (c *countingWorker) failed(r *executor.Run, l *wire.Lease) *executor.Folded {
	if c.failing == 0 || c.rng.IntN(500) > 0 {
		return nil
	}
	c.s.fired("piece failed")
	t := l.Task
	cov := plan.Coverage{Split: plan.SplitID(t.Split), Attempt: int(t.Attempt), Epoch: plan.Epoch(t.Epoch),
		Cursor: int64(t.Cursor)}
	return &executor.Folded{Run: r.ID, Coverage: []plan.Coverage{cov}, Leases: []uint32{l.Id},
		Err: fault.Newf(fault.NoResources, "fold", "a split", "there is no memory")}
}

func (c *countingWorker) addStates(r *executor.Run, states []*wire.Part) {
	c.sent[r.ID] = append(c.sent[r.ID], states...)
}

// miscounts reports, now and then, that an accumulator has a wrong count.
func (c *countingWorker) miscounts() bool {
	if c.failing == 0 || c.rng.IntN(2000) > 0 {
		return false
	}
	c.s.fired("miscount")
	return true
}

// lifeOf returns the life of the job that a run is of: a runner lives as long.
func (c *countingWorker) lifeOf(*executor.Run) uint64 { return uint64(c.life) }

func (c *countingWorker) rowsOf(r *executor.Run, l *wire.Lease) int64 {
	t := l.Task
	_, rows := plan.VisitedOf(c.s.packs[packOf(r.Step)].rows[t.Split], int64(t.Cursor), int64(t.Limit), int(l.Parts),
		int(l.Part))
	return rows
}

// finishLeased hands in a receipt for every piece that is asked for; a lease of a
// split that is not here fails.
func (c *countingWorker) finishLeased(r *executor.Run, had []*wire.Lease, include []uint32,
	busy time.Duration) *executor.Folded {
	out := &executor.Folded{Run: r.ID, Busy: busy}
	pack := packOf(r.Step)
	p := c.s.packs[pack]
	for _, l := range had {
		if !slices.Contains(include, l.Id) {
			continue
		}
		t, n := l.Task, c.rowsOf(r, l)
		sound, here := c.held[splitOf{pack, int(t.Split)}]
		cov := plan.Coverage{Split: plan.SplitID(t.Split), Attempt: int(t.Attempt), Epoch: plan.Epoch(t.Epoch),
			Cursor: int64(t.Cursor), Count: n, Folded: n}
		spans, _ := plan.VisitedOf(p.rows[t.Split], int64(t.Cursor), int64(t.Limit), int(l.Parts), int(l.Part))
		cov.Weight = p.weight(int(t.Split), spans, n)
		if !here {
			return &executor.Folded{Run: r.ID, Coverage: []plan.Coverage{cov}, Leases: []uint32{l.Id},
				Err: fault.Newf(fault.FetchFailed, "open", "split", "split %d is not here", t.Split)}
		}
		rc := receipt{split: uint64(t.Split), attempt: uint64(t.Attempt), epoch: t.Epoch, cursor: t.Cursor,
			count: uint64(n), piece: uint64(l.Part) + 1,
			parts: uint64(l.Parts), limit: uint64(t.Limit), pack: uint64(pack), life: c.lifeOf(r)}
		if err := c.goOn(out, r, c.sent[r.ID], t, &rc); err != nil {
			return &executor.Folded{Run: r.ID, Coverage: []plan.Coverage{cov}, Leases: []uint32{l.Id}, Err: err}
		}
		if !sound {
			rc.damaged = 1
		}
		out.Coverage, out.Leases = append(out.Coverage, cov), append(out.Leases, l.Id)
		out.Parts = append(out.Parts, &wire.Part{Level: -1, Index: t.Split, Data: rc.encode(nil)})
	}
	return out
}

func (c *countingWorker) act(t *wire.RunTask) *wire.TaskResult {
	return &wire.TaskResult{Job: t.Job, Call: t.Call, Partition: t.Partition, Data: callData(t.Call, t.Partition)}
}
