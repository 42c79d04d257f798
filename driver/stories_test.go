package driver

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// TestStories runs the stories in testdata. Each is a job in virtual time, what it is told,
// and what it says to that, a line each. Any command may have at=D, the time from then on.
//
//	job [quick] [executors=N] [policy=P] ...     begins one, see configOf; quick: plans are built and splits got at once
//	join E [slots=N]; prepared E [foreign] [fault=K]; lose E; drain E
//	pack rows=(N*TIMES,...) [bytes=(..)] [weights=(..)] [entries=(..)] [maker=E] [node=N]
//	held E SPLIT... [pack=N] [fault=K]
//	step | pass  [pack=N] [node=N] [param=BYTES] [pieces=(..)] [ratio=F] [batch=F] [state] [weighted] [entries]
//	report E SPLIT:COUNT...                      of the latest assignments that E was given, or [step=N] [attempt=N] [epoch=N]
//	result E SPLIT:COUNT... [busy=D] [fault=K] [folded=N] [weight=F] [entries=N] [part=BYTES] [state=TEXT]
//	folded E LEASE... [next=N]                   next: of those it has been given
//	leased E LEASE... [included] [busy=D] [fault=K] [folded=N] [split=N] [part=BYTES] [state=TEXT]
//	call [tasks=N] [pack=N] [partitions=(..)] [prefer=E] [holders=(E/E,..)] [avoid=(E/E,..)]
//	doing E TASK [rows=N] [busy=D] [moved=N]; done E TASK... [rows=N] [busy=D] [fault=K] [call=N]
//	signal spread=F norm=F; restore steps=N epoch=N cursor=(..) merged=(..) [ratio=F] [state=TEXT]
//	tick; abandon; cancel; counters; ledger [pack=N]; slots; defaults
//
// What each job was told is told again in the end, as from its event log: the steps must be
// the same.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &story{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.args = args{t, d}
			if d.Cmd == "job" {
				s.retell()
				*s = story{args: s.args, given: map[plan.ExecutorID]map[uint32]*wire.Assignment{},
					runs: map[plan.ExecutorID]*wire.StartStep{}, leases: map[plan.ExecutorID]map[uint32]*wire.Lease{},
					queue: map[plan.ExecutorID][]uint32{}, included: map[plan.ExecutorID][]uint32{}}
			}
			s.out.Reset()
			s.now = s.dur("at", s.now)
			s.do(d.Cmd)
			return s.out.String()
		})
		s.args.t = t
		s.retell()
	})
}

// args are those of a command.
type args struct {
	t *testing.T
	d *datadriven.TestData
}

func (a args) has(key string) bool { return a.d.HasArg(key) }

func (a args) list(key string) []string {
	for _, c := range a.d.CmdArgs {
		if c.Key == key {
			return c.Vals
		}
	}
	return nil
}

func (a args) text(key, other string) string {
	if v := a.list(key); len(v) > 0 {
		return v[0]
	}
	return other
}

// numbered are the arguments that begin with a digit.
func (a args) numbered() (out []string) {
	for _, c := range a.d.CmdArgs {
		if c.Key[0] >= '0' && c.Key[0] <= '9' {
			out = append(out, c.Key)
		}
	}
	return out
}

func (a args) who() plan.ExecutorID { return plan.ExecutorID(a.d.CmdArgs[0].Key) }

func (a args) must(err error) {
	a.t.Helper()
	if err != nil {
		a.d.Fatalf(a.t, "%v", err)
	}
}

func (a args) parse(v string) int64 {
	n, err := strconv.ParseInt(v, 10, 64)
	a.must(err)
	return n
}

func (a args) int(key string, other int) int {
	if v := a.text(key, ""); v != "" {
		return int(a.parse(v))
	}
	return other
}

func (a args) float(key string) float64 {
	f, err := strconv.ParseFloat(a.text(key, "0"), 64)
	a.must(err)
	return f
}

func (a args) dur(key string, other time.Duration) time.Duration {
	v := a.text(key, "")
	if v == "" {
		return other
	}
	out, err := time.ParseDuration(v)
	a.must(err)
	return out
}

// numbers are those of a list: 7*3 is 7,7,7.
func (a args) numbers(key string) (out []int64) {
	for _, v := range a.list(key) {
		n, times, more := strings.Cut(v, "*")
		if !more {
			times = "1"
		}
		for range a.parse(times) {
			out = append(out, a.parse(n))
		}
	}
	return out
}

// fault is what went wrong, if anything did.
func (a args) fault() *wire.Fault {
	name := strings.ReplaceAll(a.text("fault", ""), "-", " ")
	for _, k := range fault.Kinds() {
		if k.String() == name {
			return wire.FromError(fault.New(k, "read", "it", errors.New("it broke")))
		}
	}
	if name != "" {
		a.d.Fatalf(a.t, "%q is no kind of failure", name)
	}
	return nil
}

// story is a job, and what its executors know.
type story struct {
	args
	job      *Job
	cfg      JobConfig
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
		s.quick, s.cfg = s.has("quick"), s.configOf()
		s.job = NewJob(s.cfg, s.now)
	case "tick":
		s.tell(Event{})
	case "drain":
		s.tell(Event{Drain: s.who()})
	case "signal":
		s.tell(Event{Signal: &Signal{Spread: s.float("spread"), Norm: s.float("norm")}})
	case "abandon":
		s.job.Abandon()
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
		s.tell(Event{Lost: &Lost{Executor: s.who(), Why: "gone"}})
	case "join":
		s.tell(Event{Joined: &Joined{Executor: s.who(), Slots: s.int("slots", 1)}})
	case "pack":
		s.openPack()
	case "step", "pass":
		s.askStep(cmd == "step")
	case "call":
		s.askCall()
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
		m.Body = &wire.ToDriver_Prepared{Prepared: s.prepared(s.has("foreign"))}
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
		task := uint32(s.parse(s.numbered()[0]))
		m.Body = &wire.ToDriver_TaskProgress{TaskProgress: &wire.TaskProgress{Job: "job",
			Call: uint64(s.int("call", int(s.call))), Partition: task,
			Rows: int64(s.int("rows", 0)), BusyNs: int64(s.dur("busy", 0)), Moved: int64(s.int("moved", 0))}}
	case "done":
		s.taskDone()
		return
	default:
		s.d.Fatalf(s.t, "unknown command")
	}
	s.hear(s.who(), m)
}

func (s *story) prepared(foreign bool) *wire.Prepared {
	print := s.cfg.Fingerprint
	if foreign {
		print = plan.Digest{0xff}
	}
	return &wire.Prepared{Job: "job", Fingerprint: print[:], Fault: s.fault()}
}

func (s *story) held() {
	for _, k := range s.numbered() {
		s.hear(s.who(), &wire.ToDriver{Body: &wire.ToDriver_Holding{Holding: &wire.Holding{Job: "job",
			Pack: uint32(s.int("pack", 0)), Split: uint32(s.parse(k)), Fault: s.fault()}}})
	}
}

func (s *story) stepArg() uint32  { return uint32(s.int("step", int(s.step))) }
func (s *story) epochArg() uint64 { return uint64(s.int("epoch", int(s.runs[s.who()].GetEpoch()))) }

// coverage is of the latest assignment that an executor was given of a split.
func (s *story) coverage(word string) *wire.Coverage {
	split, count, _ := strings.Cut(word, ":")
	c := &wire.Coverage{Split: uint32(s.parse(split)), Count: uint64(s.parse(count))}
	if a := s.given[s.who()][c.Split]; a != nil {
		c.Attempt, c.Epoch, c.Cursor = a.Attempt, a.Epoch, a.Cursor
	}
	c.Attempt, c.Epoch = uint32(s.int("attempt", int(c.Attempt))), uint64(s.int("epoch", int(c.Epoch)))
	c.Folded, c.Weight, c.Entries = uint64(s.int("folded", int(c.Count))), s.float("weight"),
		uint64(s.int("entries", 0))
	return c
}

func (s *story) progress() *wire.Progress {
	p := &wire.Progress{Job: "job", Step: s.stepArg()}
	for _, w := range s.numbered() {
		c := s.coverage(w)
		p.Counts = append(p.Counts, &wire.Count{Split: c.Split, Attempt: c.Attempt, Epoch: c.Epoch, Processed: c.Count})
	}
	return p
}

func (s *story) result() *wire.Result {
	r := &wire.Result{Job: "job", Step: s.stepArg(), BusyNs: uint64(s.dur("busy", 0)), Fault: s.fault()}
	for _, w := range s.numbered() {
		c := s.coverage(w)
		r.Coverage = append(r.Coverage, c)
		if s.has("state") {
			r.Parts = append(r.Parts, &wire.Part{State: true, Index: c.Split, Data: []byte(s.text("state", ""))})
		}
	}
	if n := s.int("part", 0); n > 0 {
		r.Parts = append(r.Parts, &wire.Part{Level: 1, Data: make([]byte, n)})
	}
	return r
}

// ids are those said, or of the leases next in an executor's queue, or those that it is to
// include.
func (s *story) ids() (out []uint32) {
	who := s.who()
	for _, w := range s.numbered() {
		out = append(out, uint32(s.parse(w)))
	}
	if n := s.int("next", 0); n > 0 {
		out = append(out, s.queue[who][:min(n, len(s.queue[who]))]...)
	}
	if s.has("included") {
		out = append(out, s.included[who]...)
	}
	s.queue[who] = slices.DeleteFunc(s.queue[who], func(id uint32) bool { return slices.Contains(out, id) })
	return out
}

// leasedResult covers what leases are of.
func (s *story) leasedResult() *wire.Result {
	r := &wire.Result{Job: "job", Step: s.stepArg(), BusyNs: uint64(s.dur("busy", 0)), Epoch: s.epochArg(),
		Fault: s.fault()}
	for _, id := range s.ids() {
		c := &wire.Coverage{Lease: id, Weight: s.float("weight")}
		if l := s.leases[s.who()][id]; l != nil {
			rows := s.packs[s.int("pack", 0)].Rows[l.Task.Split]
			limit := rows
			if l.Task.Limit > 0 {
				limit = int64(l.Task.Limit)
			}
			_, n := plan.VisitedOf(rows, int64(l.Task.Cursor), limit, int(l.Parts), int(l.Part))
			c.Split, c.Attempt, c.Epoch, c.Cursor, c.Count = l.Task.Split, l.Task.Attempt, l.Task.Epoch, l.Task.Cursor,
				uint64(n)
		}
		c.Split, c.Folded = uint32(s.int("split", int(c.Split))), uint64(s.int("folded", int(c.Count)))
		r.Coverage = append(r.Coverage, c)
		if s.has("state") {
			r.Parts = append(r.Parts, &wire.Part{State: true, Index: c.Split, Data: []byte(s.text("state", ""))})
		}
	}
	if n := s.int("part", 0); n > 0 {
		r.Parts = append(r.Parts, &wire.Part{Level: 1, Data: make([]byte, n)})
	}
	return r
}

func (s *story) taskDone() {
	for _, k := range s.ids() {
		s.hear(s.who(), &wire.ToDriver{Body: &wire.ToDriver_TaskResult{TaskResult: &wire.TaskResult{Job: "job",
			Call: uint64(s.int("call", int(s.call))), Partition: k,
			Data: fmt.Append(nil, s.who(), "/", k), Fault: s.fault(), Rows: int64(s.int("rows", 0)),
			BusyNs: int64(s.dur("busy", 0))}}})
	}
}

func (s *story) openPack() {
	p := &PackInfo{Node: s.int("node", 0), Maker: plan.ExecutorID(s.text("maker", "")), Rows: s.numbers("rows"),
		Entries: s.numbers("entries"), Bytes: s.numbers("bytes")}
	for _, w := range s.numbers("weights") {
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
	r := &plan.StepRequest{Node: s.int("node", 0), Pack: s.int("pack", 0), Param: make([]byte, s.int("param", 0)),
		Train: train, Ratio: s.float("ratio"), Batch: s.float("batch"),
		State: s.has("state"), Weighted: s.has("weighted"), Entries: s.has("entries")}
	for _, n := range s.numbers("pieces") {
		r.Pieces = append(r.Pieces, int(n))
	}
	s.leases = map[plan.ExecutorID]map[uint32]*wire.Lease{}
	s.tell(Event{Step: r})
}

func (s *story) askCall() {
	r := &plan.CallRequest{Node: s.int("node", 0), Pack: s.int("pack", -1), Args: make([][]byte, s.int("tasks", 1)),
		Prefer: plan.ExecutorID(s.text("prefer", ""))}
	for _, n := range s.numbers("partitions") {
		r.Partitions = append(r.Partitions, int(n))
	}
	for _, w := range s.list("holders") {
		r.Holders = append(r.Holders, strings.Split(w, "/"))
	}
	for _, w := range s.list("avoid") {
		r.Avoid = append(r.Avoid, strings.Split(w, "/"))
	}
	s.tell(Event{Call: r})
}

func (s *story) restore() {
	r := &Restored{Pack: s.int("pack", 0), Steps: s.int("steps", 0), Epoch: plan.Epoch(s.int("epoch", 0)),
		Ratio: s.float("ratio")}
	merged := s.numbers("merged")
	for i, n := range s.numbers("cursor") {
		r.Entries = append(r.Entries, entry(n, merged[i]))
	}
	if w, ok := s.text("state", ""), s.has("state"); ok {
		r.States = append(r.States, RestoredState{Node: s.int("node", 0), Split: s.int("split", 0), Data: []byte(w)})
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
			s.t.Errorf("step %d: %v", at, err)
			return
		}
		for _, r := range got {
			if want := *StepLine(s.reports[at]); !reflect.DeepEqual(*StepLine(r), want) {
				s.t.Errorf("step %d is told again as\n%+v, it was\n%+v", at, *StepLine(r), want)
			}
			if want := *EvaluationLine(s.reports[at],
				plan.Digest{1}); !reflect.DeepEqual(*EvaluationLine(r, plan.Digest{1}), want) {
				s.t.Errorf("step %d is told again as a pass as\n%+v, it was\n%+v", at,
					*EvaluationLine(r, plan.Digest{1}), want)
			}
			at++
		}
	}
}
