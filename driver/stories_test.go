package driver

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/storytest"
	"github.com/volley-engine/volley/internal/wire"
)

// TestStories runs the stories in testdata. Each is a job in virtual time, what it is told,
// and what it says to that, a line each. Any command may have at=D, the time from then on.
//
//	job [quick] [executors=N] [policy=P] ...     begins one, see configOf; quick: plans are built and splits got at once
//	join E [slots=N]; prepared E [foreign] [fault=K]; lose E; drain E
//	pack rows=(N*TIMES,...) [bytes=(..)] [weights=(..)] [entries=(..)] [maker=E [sourceless]] [node=N]; remade E [pack=N]
//	held E SPLIT... [pack=N] [fault=K]
//	step | pass  [pack=N] [node=N] [param=BYTES] [pieces=(..)] [ratio=F] [batch=F] [state] [weighted] [entries]
//	report E SPLIT:COUNT...                      of the latest assignments that E was given, or [step=N] [attempt=N] [epoch=N]
//	result E SPLIT:COUNT... [busy=D] [fault=K] [folded=N] [weight=F] [entries=N] [part=BYTES] [state=TEXT]
//	folded E LEASE... [next=N]                   next: of those it has been given
//	leased E LEASE... [included] [busy=D] [fault=K] [folded=N] [split=N] [part=BYTES] [state=TEXT]
//	call [tasks=N] [pack=N] [partitions=(..)] [prefer=E] [holders=(E/E,..)] [avoid=(E/E,..)]
//	doing E TASK [rows=N] [busy=D] [moved=N]; done E TASK... [rows=N] [busy=D] [fault=K] [call=N]
//	signal spread=F norm=F; restore steps=N epoch=N cursor=(..) merged=(..) [ratio=F] [state=TEXT]
//	extend [to=N]                                the plan is another; prepared E first: of the plan that the job began with
//	abandon-call CALL
//	tick; abandon [calls]; cancel; counters; ledger [pack=N]; slots; defaults
//
// What each job was told is told again in the end, as from its event log: the steps must be
// the same.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &story{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.Args = storytest.Args{T: t, D: d}
			if d.Cmd == "job" {
				s.retell()
				*s = story{Args: s.Args, given: map[plan.ExecutorID]map[uint32]*wire.Assignment{},
					runs: map[plan.ExecutorID]*wire.StartStep{}, leases: map[plan.ExecutorID]map[uint32]*wire.Lease{},
					queue: map[plan.ExecutorID][]uint32{}, included: map[plan.ExecutorID][]uint32{}}
			}
			s.out.Reset()
			s.now = s.Duration("at", s.now)
			s.do(d.Cmd)
			return s.out.String()
		})
		s.T = t
		s.retell()
	})
}

// story is a job, and what its executors know.
type story struct {
	storytest.Args
	job      *Job
	cfg      JobConfig
	first    plan.Digest // of the plan that it began with
	quick    bool
	now      plan.Time
	out      strings.Builder
	given    map[plan.ExecutorID]map[uint32]*wire.Assignment // latest of each split
	runs     map[plan.ExecutorID]*wire.StartStep             // latest
	leases   map[plan.ExecutorID]map[uint32]*wire.Lease
	queue    map[plan.ExecutorID][]uint32 // leases given, not folded
	included map[plan.ExecutorID][]uint32
	step     uint32 // latest
	call     uint64
	packs    []*PackInfo
	restored []*Restored
	reports  []*StepReport
}

func (s *story) do(cmd string) {
	switch cmd {
	case "job":
		s.quick, s.cfg = s.Has("quick"), s.configOf()
		s.job, s.first = NewJob(s.cfg, s.now), s.cfg.Fingerprint
	case "tick":
		s.tell(Event{})
	case "drain":
		s.tell(Event{Drain: s.Executor()})
	case "signal":
		s.tell(Event{Signal: &Signal{Spread: s.Float("spread", 0), Norm: s.Float("norm", 0)}})
	case "abandon":
		s.job.Abandon()
		if s.Has("calls") {
			s.job.open = nil
		}
	case "cancel":
		s.answer(s.job.Cancel())
	case "counters":
		fmt.Fprintf(&s.out, "%+v\n", s.job.Counters())
	case "defaults":
		fmt.Fprintf(&s.out, "%+v\n%v\n", OptionsOf(JobConfig{}), JobConfig{}.EnsureDefaults().TaskTimeout)
	case "slots":
		fmt.Fprintln(&s.out, s.job.Slots())
	case "ledger":
		s.showLedger()
	case "lose":
		s.tell(Event{Lost: &Lost{Executor: s.Executor(), Why: "gone"}})
	case "join":
		s.tell(Event{Joined: &Joined{Executor: s.Executor(), Slots: s.Int("slots", 1)}})
	case "pack":
		s.openPack()
	case "remade":
		s.tell(Event{Remade: &Remade{Pack: s.Int("pack", 0), Maker: s.Executor()}})
	case "step", "pass":
		s.askStep(cmd == "step")
	case "call":
		s.askCall()
	case "extend":
		s.cfg.Fingerprint = plan.Digest{byte(s.Int("to", 1))}
		s.tell(Event{Extend: &plan.Extension{Fingerprint: s.cfg.Fingerprint, Sources: []byte("as it is now")}})
	case "abandon-call":
		s.answer(s.job.AbandonCall(uint64(s.Number(s.Arg(0))), s.now))
	case "restore":
		s.restore()
	default:
		s.message(cmd)
	}
}

func (s *story) hear(from plan.ExecutorID, m *wire.ToDriver) {
	s.tell(Event{Message: &Message{From: from, Body: m}})
}

// message is what an executor says.
func (s *story) message(cmd string) {
	m := &wire.ToDriver{}
	switch cmd {
	case "prepared":
		m.Body = &wire.ToDriver_Prepared{Prepared: s.prepared(s.Has("foreign"))}
	case "held":
		s.held()
		return
	case "report":
		m.Body = &wire.ToDriver_Progress{Progress: s.progress()}
	case "result":
		m.Body = &wire.ToDriver_Result{Result: s.result()}
	case "folded":
		m.Body = &wire.ToDriver_PiecesFolded{PiecesFolded: &wire.PiecesFolded{Job: "job", Step: s.stepArg(),
			Epoch: s.epochArg(), Ids: s.ids()}}
	case "leased":
		m.Body = &wire.ToDriver_Result{Result: s.leasedResult()}
	case "doing":
		task := uint32(s.Number(s.Numbered(0)[0]))
		m.Body = &wire.ToDriver_TaskProgress{TaskProgress: &wire.TaskProgress{Job: "job",
			Call: uint64(s.Int("call", int(s.call))), Partition: task,
			Rows: int64(s.Int("rows", 0)), BusyNs: int64(s.Duration("busy", 0)), Moved: int64(s.Int("moved", 0))}}
	case "done":
		s.taskDone()
		return
	default:
		s.D.Fatalf(s.T, "unknown command")
	}
	s.hear(s.Executor(), m)
}

func (s *story) prepared(foreign bool) *wire.Prepared {
	print := s.cfg.Fingerprint
	if s.Has("first") {
		print = s.first
	}
	if foreign {
		print = plan.Digest{0xff}
	}
	return &wire.Prepared{Job: "job", Fingerprint: print[:], Fault: wire.FromError(s.Fault("fault"))}
}

func (s *story) held() {
	for _, k := range s.Numbered(0) {
		s.hear(s.Executor(), &wire.ToDriver{Body: &wire.ToDriver_Holding{Holding: &wire.Holding{Job: "job",
			Pack: uint32(s.Int("pack", 0)), Split: uint32(s.Number(k)), Fault: wire.FromError(s.Fault("fault"))}}})
	}
}

func (s *story) stepArg() uint32 { return uint32(s.Int("step", int(s.step))) }
func (s *story) epochArg() uint64 {
	return uint64(s.Int("epoch", int(s.runs[s.Executor()].GetEpoch())))
}

// coverage is of the latest assignment that an executor was given of a split.
func (s *story) coverage(word string) *wire.Coverage {
	split, count, _ := strings.Cut(word, ":")
	c := &wire.Coverage{Split: uint32(s.Number(split)), Count: uint64(s.Number(count))}
	if a := s.given[s.Executor()][c.Split]; a != nil {
		c.Attempt, c.Epoch, c.Cursor = a.Attempt, a.Epoch, a.Cursor
	}
	c.Attempt, c.Epoch = uint32(s.Int("attempt", int(c.Attempt))), uint64(s.Int("epoch", int(c.Epoch)))
	c.Folded, c.Weight, c.Entries = uint64(s.Int("folded", int(c.Count))), s.Float("weight", 0),
		uint64(s.Int("entries", 0))
	return c
}

func (s *story) progress() *wire.Progress {
	p := &wire.Progress{Job: "job", Step: s.stepArg()}
	for _, w := range s.Numbered(0) {
		c := s.coverage(w)
		p.Counts = append(p.Counts, &wire.Count{Split: c.Split, Attempt: c.Attempt, Epoch: c.Epoch, Processed: c.Count})
	}
	return p
}

func (s *story) result() *wire.Result {
	r := &wire.Result{Job: "job", Step: s.stepArg(), BusyNs: uint64(s.Duration("busy", 0)),
		Fault: wire.FromError(s.Fault("fault"))}
	for _, w := range s.Numbered(0) {
		c := s.coverage(w)
		r.Coverage = append(r.Coverage, c)
		if s.Has("state") {
			r.Parts = append(r.Parts, &wire.Part{State: true, Index: c.Split, Data: []byte(s.Text("state", ""))})
		}
	}
	if n := s.Int("part", 0); n > 0 {
		r.Parts = append(r.Parts, &wire.Part{Level: 1, Data: make([]byte, n)})
	}
	return r
}

// ids are those said, or of the leases next in an executor's queue, or those that it is to
// include.
func (s *story) ids() (out []uint32) {
	who := s.Executor()
	for _, w := range s.Numbered(0) {
		out = append(out, uint32(s.Number(w)))
	}
	if n := s.Int("next", 0); n > 0 {
		out = append(out, s.queue[who][:min(n, len(s.queue[who]))]...)
	}
	if s.Has("included") {
		out = append(out, s.included[who]...)
	}
	s.queue[who] = slices.DeleteFunc(s.queue[who], func(id uint32) bool { return slices.Contains(out, id) })
	return out
}

// leasedResult covers what leases are of.
func (s *story) leasedResult() *wire.Result {
	r := &wire.Result{Job: "job", Step: s.stepArg(), BusyNs: uint64(s.Duration("busy", 0)), Epoch: s.epochArg(),
		Fault: wire.FromError(s.Fault("fault"))}
	for _, id := range s.ids() {
		c := &wire.Coverage{Lease: id, Weight: s.Float("weight", 0)}
		if l := s.leases[s.Executor()][id]; l != nil {
			rows := s.packs[s.Int("pack", 0)].Rows[l.Task.Split]
			limit := rows
			if l.Task.Limit > 0 {
				limit = int64(l.Task.Limit)
			}
			_, n := plan.VisitedOf(rows, int64(l.Task.Cursor), limit, int(l.Parts), int(l.Part))
			c.Split, c.Attempt, c.Epoch, c.Cursor, c.Count = l.Task.Split, l.Task.Attempt, l.Task.Epoch, l.Task.Cursor,
				uint64(n)
		}
		c.Split, c.Folded = uint32(s.Int("split", int(c.Split))), uint64(s.Int("folded", int(c.Count)))
		r.Coverage = append(r.Coverage, c)
		if s.Has("state") {
			r.Parts = append(r.Parts, &wire.Part{State: true, Index: c.Split, Data: []byte(s.Text("state", ""))})
		}
	}
	if n := s.Int("part", 0); n > 0 {
		r.Parts = append(r.Parts, &wire.Part{Level: 1, Data: make([]byte, n)})
	}
	return r
}

func (s *story) taskDone() {
	for _, k := range s.ids() {
		s.hear(s.Executor(), &wire.ToDriver{Body: &wire.ToDriver_TaskResult{TaskResult: &wire.TaskResult{Job: "job",
			Call: uint64(s.Int("call", int(s.call))), Partition: k,
			Data: fmt.Append(nil, s.Executor(), "/", k), Fault: wire.FromError(s.Fault("fault")),
			Rows:   int64(s.Int("rows", 0)),
			BusyNs: int64(s.Duration("busy", 0))}}})
	}
}

func (s *story) openPack() {
	p := &PackInfo{Node: s.Int("node", 0), Maker: plan.ExecutorID(s.Text("maker", "")), Sourceless: s.Has("sourceless"),
		Rows:    storytest.Numbers[int64](s.Args, "rows", nil),
		Entries: storytest.Numbers[int64](s.Args, "entries", nil),
		Bytes:   storytest.Numbers[int64](s.Args, "bytes", nil)}
	for _, w := range storytest.Numbers[int64](s.Args, "weights", nil) {
		p.Weights = append(p.Weights, float64(w))
	}
	if p.Bytes == nil {
		p.Bytes = p.Rows
	}
	for i := range p.Rows {
		p.SHA256 = append(p.SHA256, plan.Digest{byte(len(s.packs) + 1), byte(i)})
	}
	s.packs = append(s.packs, p)
	s.tell(Event{Pack: p})
}

func (s *story) askStep(train bool) {
	r := &plan.StepRequest{Node: s.Int("node", 0), Pack: s.Int("pack", 0), Param: make([]byte, s.Int("param", 0)),
		Train: train, Ratio: s.Float("ratio", 0), Batch: s.Float("batch", 0), Sample: s.Has("sample"),
		State: s.Has("state"), Weighted: s.Has("weighted"), Entries: s.Has("entries")}
	for _, n := range storytest.Numbers[int64](s.Args, "pieces", nil) {
		r.Pieces = append(r.Pieces, int(n))
	}
	s.leases = map[plan.ExecutorID]map[uint32]*wire.Lease{}
	s.tell(Event{Step: r})
}

func (s *story) askCall() {
	r := &plan.CallRequest{Node: s.Int("node", 0), Pack: s.Int("pack", -1), Args: make([][]byte, s.Int("tasks", 1)),
		Prefer: plan.ExecutorID(s.Text("prefer", ""))}
	for _, n := range storytest.Numbers[int64](s.Args, "partitions", nil) {
		r.Partitions = append(r.Partitions, int(n))
	}
	for _, w := range s.List("holders") {
		r.Holders = append(r.Holders, strings.Split(w, "/"))
	}
	for _, w := range s.List("avoid") {
		r.Avoid = append(r.Avoid, strings.Split(w, "/"))
	}
	s.tell(Event{Call: r})
}

func (s *story) restore() {
	r := &Restored{Pack: s.Int("pack", 0), Steps: s.Int("steps", 0), Epoch: plan.Epoch(s.Int("epoch", 0)),
		Ratio: s.Float("ratio", 0)}
	merged := storytest.Numbers[int64](s.Args, "merged", nil)
	for i, n := range storytest.Numbers[int64](s.Args, "cursor", nil) {
		r.Entries = append(r.Entries, entry(n, merged[i]))
	}
	if w, ok := s.Text("state", ""), s.Has("state"); ok {
		r.States = append(r.States, RestoredState{Node: s.Int("node", 0), Split: s.Int("split", 0), Data: []byte(w)})
	}
	s.restored = append(s.restored, r)
	s.tell(Event{Restore: r})
}

// retell tells the steps again from what was recorded of them.
func (s *story) retell() {
	if s.job == nil {
		return
	}
	again := NewRetelling(s.cfg, false)
	for _, p := range s.packs {
		again.Describe(p.Rows, p.Weights, p.Entries)
	}
	for _, r := range s.restored {
		again.Resumed(r)
	}
	for at := 0; at < len(s.reports); {
		got, err := again.Tell(s.reports[at].Reports)
		if err != nil {
			s.T.Errorf("step %d: %v", at, err)
			return
		}
		for _, r := range got {
			if want := *StepLine(s.reports[at]); !reflect.DeepEqual(*StepLine(r), want) {
				s.T.Errorf("step %d is told again as\n%+v, it was\n%+v", at, *StepLine(r), want)
			}
			if want := *EvaluationLine(s.reports[at],
				plan.Digest{1}); !reflect.DeepEqual(*EvaluationLine(r, plan.Digest{1}), want) {
				s.T.Errorf("step %d is told again as a pass as\n%+v, it was\n%+v", at,
					*EvaluationLine(r, plan.Digest{1}), want)
			}
			at++
		}
	}
}
