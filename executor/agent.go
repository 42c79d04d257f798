package executor

import (
	"maps"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

// Event is something that happened to an executor. Exactly one field is set.
type Event struct {
	Message *wire.ToExecutor
	Planned *Planned
	Fetched *Fetched
	Sampled *Sample
	Folded  *Folded
	Pieces  *PiecesFolded
	Acted   *wire.TaskResult
	Acting  *wire.TaskProgress // how far a task has come
}

// Planned is the plan that the program built for a job.
type Planned struct {
	Job         string
	Fingerprint plan.Digest
	Err         error
}

// Fetched is how fetching a split ended: the hash of what has arrived.
type Fetched struct {
	Hold   *wire.Hold
	SHA256 plan.Digest
	Err    error
}

// Sample holds the processed counts of a run's tasks. Due is set where SampleAt
// requested it, not where a task has finished.
type Sample struct {
	Run    int
	Counts []int64
	Due    bool
}

// PiecesFolded lists leases of a run that have been folded.
type PiecesFolded struct {
	Run int
	IDs []uint32
}

// Folded is the end of a run's slots: what each task has covered, the merged
// parts, and how long the slots took, pauses for other jobs included.
type Folded struct {
	Run      int
	Coverage []plan.Coverage
	Leases   []uint32 // of a leased run: the lease of each coverage
	Parts    []*wire.Part
	Busy     time.Duration
	Err      error
	Spans    []*wire.Span  // what the slots did
	Took     time.Duration // the run, in all
}

// Command is something for the shell to do. Exactly one field is set.
type Command struct {
	Send     *wire.ToDriver
	Plan     *wire.Prepare
	Fetch    *wire.Hold
	Start    *Run
	Stop     *StopRun
	SampleAt *SampleAt
	Act      *wire.RunTask
	Lease    *LeaseRun
	Include  *IncludeRun
}

// LeaseRun gives a run more pieces to fold.
type LeaseRun struct {
	Run    int
	Leases []*wire.Lease
	States []*wire.Part // row states of splits that are not here
}

// IncludeRun ends a run with the result of some of its leases.
type IncludeRun struct {
	Run int
	IDs []uint32
}

// Run is one set of tasks to fold.
type Run struct {
	ID    int
	Step  *wire.StartStep
	Param []byte
}

// StopRun ends a run at its next chunk, without the results of some splits.
type StopRun struct {
	Run  int
	Skip []plan.SplitID
}

// SampleAt requests a Sample of a run.
type SampleAt struct {
	Run int
	At  plan.Time
}

// Agent decides for one executor.
type Agent struct {
	id     plan.ExecutorID
	slots  int
	runs   map[int]*activeRun
	last   int
	params map[plan.Digest][]byte
	early  []*wire.StartStep // their parameter has not arrived yet
	leases []*wire.Leases    // their step has not
	coming map[copyKey][]*wire.Hold
}

type activeRun struct {
	id       int
	step     *wire.StartStep
	sent     []int64
	interval plan.Time
	stopped  bool
	leases   map[uint32]bool // had, of a leased run
}

// epochOf returns the epoch under which the tasks of a step were assigned.
func epochOf(s *wire.StartStep) uint64 {
	if s.Leased {
		return s.Epoch
	} else if len(s.Tasks) == 0 {
		return 0
	}
	return s.Tasks[0].Epoch
}

// ends reports whether a stop is for a step: one begun later under a new epoch goes on.
func ends(stop *wire.StopStep, s *wire.StartStep) bool {
	return s.Job == stop.Job && plantedEnds(s.Step == stop.Step && epochOf(s) <= stop.Epoch)
}

// skippedBy returns the splits whose results a stop does without.
func skippedBy(stop *wire.StopStep) []plan.SplitID {
	out := make([]plan.SplitID, len(stop.Skip))
	for i, k := range stop.Skip {
		out[i] = plan.SplitID(k)
	}
	return out
}

// NewAgent makes the agent of an executor.
func NewAgent(id plan.ExecutorID, slots int) *Agent {
	return &Agent{id: id, slots: slots, runs: map[int]*activeRun{}, params: map[plan.Digest][]byte{},
		coming: map[copyKey][]*wire.Hold{}}
}

// Register returns the executor's first message.
func (a *Agent) Register() *wire.ToDriver {
	own := version.Own()
	return &wire.ToDriver{Body: &wire.ToDriver_Register{Register: &wire.Register{
		Executor: string(a.id), Slots: uint32(a.slots), Version: own.Oldest, Newest: own.Newest, Module: own.Module}}}
}

// Step takes an event and returns what is to be done.
func (a *Agent) Step(ev Event, now plan.Time) []Command {
	switch {
	case ev.Planned != nil:
		return a.onPlanned(ev.Planned)
	case ev.Fetched != nil:
		return a.onFetched(ev.Fetched)
	case ev.Sampled != nil:
		return a.onSample(ev.Sampled, now)
	case ev.Folded != nil:
		r := a.runs[ev.Folded.Run]
		if r == nil {
			return nil
		}
		delete(a.runs, r.id)
		return []Command{resultOf(r.step, ev.Folded)}
	case ev.Pieces != nil:
		return a.onPieces(ev.Pieces)
	case ev.Acted != nil:
		return []Command{{Send: &wire.ToDriver{Body: &wire.ToDriver_TaskResult{TaskResult: ev.Acted}}}}
	case ev.Acting != nil:
		return []Command{{Send: &wire.ToDriver{Body: &wire.ToDriver_TaskProgress{TaskProgress: ev.Acting}}}}
	}
	switch b := ev.Message.GetBody().(type) {
	case *wire.ToExecutor_Prepare:
		return []Command{{Plan: b.Prepare}}
	case *wire.ToExecutor_Hold:
		return a.onHold(b.Hold)
	case *wire.ToExecutor_Parameter:
		return a.onParameter(b.Parameter, now)
	case *wire.ToExecutor_StartStep:
		return a.onStart(b.StartStep, now)
	case *wire.ToExecutor_Leases:
		return a.onLeases(b.Leases)
	case *wire.ToExecutor_Include:
		return a.onInclude(b.Include)
	case *wire.ToExecutor_StopStep:
		return a.onStop(b.StopStep)
	case *wire.ToExecutor_RunTask:
		return []Command{{Act: b.RunTask}}
	case *wire.ToExecutor_EndJob:
		return a.onEnd(b.EndJob)
	}
	return nil
}

func (a *Agent) onPlanned(p *Planned) []Command {
	return []Command{{Send: &wire.ToDriver{Body: &wire.ToDriver_Prepared{Prepared: &wire.Prepared{
		Job: p.Job, Fingerprint: p.Fingerprint[:], Fault: wire.FromError(p.Err)}}}}}
}

// onStart begins a run. Runs of earlier steps are stopped: their results are no
// longer needed.
func (a *Agent) onStart(s *wire.StartStep, now plan.Time) []Command {
	var out []Command
	a.early = slices.DeleteFunc(a.early, func(e *wire.StartStep) bool { return e.Job == s.Job && e.Step < s.Step })
	a.leases = slices.DeleteFunc(a.leases, func(m *wire.Leases) bool { return m.Job == s.Job && m.Step < s.Step })
	for _, id := range a.active() {
		r := a.runs[id]
		if s.Leased && r.step.Job == s.Job && r.step.Step == s.Step && r.step.Epoch >= s.Epoch {
			return out // the same message once more, or one that was overtaken
		}
		if r.before(s) && !r.stopped {
			r.stopped = true
			out = append(out, Command{Stop: &StopRun{Run: id}})
		}
	}
	param := s.Param
	if len(s.ParamDigest) > 0 {
		var ok bool
		if param, ok = a.params[plan.DigestFromBytes(s.ParamDigest)]; !ok {
			a.early = append(a.early, s)
			return out
		}
	}
	a.last++
	r := &activeRun{id: a.last, step: s, sent: make([]int64, len(s.Tasks)), interval: plan.Time(s.ReportIntervalNs)}
	a.runs[a.last] = r
	if s.Leased {
		return append(append(out, Command{Start: &Run{ID: a.last, Step: s, Param: param}}), a.beginLeases(r)...)
	}
	return append(out, Command{Start: &Run{ID: a.last, Step: s, Param: param}},
		Command{SampleAt: &SampleAt{Run: a.last, At: now + r.interval}})
}

// before reports whether the result of a run is no longer needed once a step begins.
func (r *activeRun) before(s *wire.StartStep) bool {
	return r.step.Job == s.Job && (r.step.Step < s.Step || s.Leased && r.step.Leased && r.step.Step == s.Step &&
		r.step.Epoch < s.Epoch)
}

// onParameter keeps a step's parameter. It may come by another way than the
// step, and after it.
func (a *Agent) onParameter(p *wire.Parameter, now plan.Time) []Command {
	digest := plan.DigestFromBytes(p.Digest)
	a.params = map[plan.Digest][]byte{digest: p.Data}
	early := a.early
	a.early = nil
	var out []Command
	for _, s := range early {
		out = append(out, a.onStart(s, now)...)
	}
	return out
}

// active lists the runs in the order in which they began.
func (a *Agent) active() []int { return slices.Sorted(maps.Keys(a.runs)) }

func (a *Agent) onStop(s *wire.StopStep) []Command {
	var out []Command
	skip := skippedBy(s)
	a.early = slices.DeleteFunc(a.early, func(e *wire.StartStep) bool {
		if !ends(s, e) {
			return false
		}
		out = append(out, resultOf(e, &Folded{Coverage: nothingOf(e, skip)}))
		return true
	})
	for _, id := range a.active() {
		if r := a.runs[id]; ends(s, r.step) && !r.stopped {
			r.stopped = true
			out = append(out, Command{Stop: &StopRun{Run: id, Skip: skip}})
		}
	}
	return out
}

// nothingOf returns the coverage of a step that was stopped before it could begin.
func nothingOf(s *wire.StartStep, skip []plan.SplitID) []plan.Coverage {
	cov := []plan.Coverage{}
	for _, t := range s.Tasks {
		if !slices.Contains(skip, plan.SplitID(t.Split)) {
			cov = append(cov, CoverageOf(t, 0, 0, nil))
		}
	}
	return cov
}

// onEnd stops what is still folded for a job that has ended, and drops its
// parameters.
func (a *Agent) onEnd(e *wire.EndJob) []Command {
	a.params, a.early, a.leases = map[plan.Digest][]byte{}, nil, nil
	var out []Command
	for _, id := range a.active() {
		if r := a.runs[id]; r.step.Job == e.Job && !r.stopped {
			r.stopped = true
			out = append(out, Command{Stop: &StopRun{Run: id}})
		}
	}
	return out
}

// onSample reports the counts that have changed since the last report.
func (a *Agent) onSample(s *Sample, now plan.Time) []Command {
	r := a.runs[s.Run]
	if r == nil {
		return nil
	}
	p := &wire.Progress{Job: r.step.Job, Step: r.step.Step}
	for i, n := range s.Counts {
		if n != r.sent[i] {
			t := r.step.Tasks[i]
			n = plantedReported(n)
			p.Counts = append(p.Counts, &wire.Count{Split: t.Split, Attempt: t.Attempt, Epoch: t.Epoch,
				Processed: uint64(n)})
			r.sent[i] = n
		}
	}
	var out []Command
	if len(p.Counts) > 0 {
		out = append(out, Command{Send: &wire.ToDriver{Body: &wire.ToDriver_Progress{Progress: p}}})
	}
	if s.Due {
		out = append(out, Command{SampleAt: &SampleAt{Run: s.Run, At: now + r.interval}})
	}
	return out
}

// resultOf sends what a run of a step has come to.
func resultOf(s *wire.StartStep, f *Folded) Command {
	res := &wire.Result{Job: s.Job, Step: s.Step, Parts: f.Parts, BusyNs: uint64(f.Busy), Fault: wire.FromError(f.Err),
		Epoch: s.Epoch, Spans: f.Spans, TookNs: uint64(f.Took)}
	for _, c := range f.Coverage {
		res.Coverage = append(res.Coverage, &wire.Coverage{Split: uint32(c.Split), Attempt: uint32(c.Attempt),
			Epoch: uint64(c.Epoch), Cursor: uint64(c.Cursor), Count: uint64(c.Count), Folded: uint64(c.Folded),
			Weight: c.Weight, Entries: uint64(c.Entries)})
	}
	for i, id := range f.Leases {
		res.Coverage[i].Lease = id
	}
	if f.Err != nil && f.Coverage == nil {
		for _, t := range s.Tasks {
			res.Coverage = append(res.Coverage, &wire.Coverage{Split: t.Split, Attempt: t.Attempt, Epoch: t.Epoch,
				Cursor: t.Cursor})
		}
	}
	return Command{Send: &wire.ToDriver{Body: &wire.ToDriver_Result{Result: res}}}
}

// SlotsOf assigns a run's tasks to slots, round-robin.
func SlotsOf(tasks, slots int) [][]int {
	out := make([][]int, min(slots, max(1, tasks)))
	for i := range tasks {
		out[i%len(out)] = append(out[i%len(out)], i)
	}
	return out
}

// CoverageOf returns what a finished task covers, with the weight of the rows that it visited.
func CoverageOf(t *wire.Assignment, count int64, weight float64, acc *runner.Acc) plan.Coverage {
	c := plan.Coverage{Split: plan.SplitID(t.Split), Attempt: int(t.Attempt), Epoch: plan.Epoch(t.Epoch),
		Cursor: int64(t.Cursor), Count: count, Weight: weight}
	if acc != nil {
		c.Folded = acc.Count
	}
	return c
}
