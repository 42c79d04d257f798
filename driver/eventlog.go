package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// LogVersion is the version of the event log's lines, and of the decisions that follow
// from the reports in them.
const LogVersion = 9

// EventsName is the name of a cluster job's event log, in its directory.
const EventsName = "events.jsonl"

// LogHeader is the first line: what ran, on what.
type LogHeader struct {
	Event    string          `json:"event"` // "header"
	Version  int             `json:"version"`
	Job      string          `json:"job"`
	Plan     plan.Digest     `json:"plan"`
	Args     json.RawMessage `json:"args"`
	Options  LogOptions      `json:"options"`
	N        []int64         `json:"n"`
	Weights  []float64       `json:"weights,omitempty"` // of each split, where rows have weights
	Entries  []int64         `json:"entries,omitempty"` // of each split, where rows are sparse
	Splits   []plan.Digest   `json:"splits"`            // content hash of each split
	Versions LogVersions     `json:"versions"`
	Machine  LogMachine      `json:"machine"`
}

// LogPack is a pack that was opened after the first, which the header describes.
type LogPack struct {
	Event   string        `json:"event"` // "pack"
	Pack    int           `json:"pack"`
	N       []int64       `json:"n"`
	Weights []float64     `json:"weights,omitempty"`
	Entries []int64       `json:"entries,omitempty"`
	Splits  []plan.Digest `json:"splits"`
}

// LogVersions are the versions of the program that wrote the log.
type LogVersions struct {
	Volley string `json:"volley"`
	Go     string `json:"go"`
	Wire   string `json:"wire"`
}

// LogMachine describes the machine that it ran on.
type LogMachine struct {
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	CPUs    int    `json:"cpus"`
	Kernels string `json:"kernels"`
}

// LogStep is one training step.
type LogStep struct {
	Event      string      `json:"event"` // "step"
	Pack       int         `json:"pack,omitempty"`
	Step       int         `json:"step"`
	Iteration  int         `json:"iteration"`
	C          []int64     `json:"c"`
	Folded     []int64     `json:"folded"`
	Weight     []float64   `json:"weight,omitempty"`  // of the rows merged, where rows have weights
	Entries    []int64     `json:"entries,omitempty"` // entries of the rows merged, where progress counts entries
	Attempt    []int       `json:"attempt"`
	Epoch      []uint64    `json:"epoch"`
	Cursor     []int64     `json:"cursor"`
	Missing    []int       `json:"missing"`
	Waits      []abss.Wait `json:"waits"`
	Placement  []int       `json:"placement,omitempty"`
	Executors  []string    `json:"executors,omitempty"`
	Moves      []LogMove   `json:"moves,omitempty"`
	Phases     LogPhases   `json:"phases_ns"`
	Bytes      int64       `json:"bytes"`
	ShareFirst float64     `json:"share_first"` // R_p at the first finisher
	ShareStop  float64     `json:"share_stop"`  // R_p at the stop
	Cut        bool        `json:"cut"`
	// share of each split that the step was to fold, where it is not the job's
	Batch   float64            `json:"batch,omitempty"`
	Ratio   float64            `json:"ratio,omitempty"` // chosen by auto, and why
	Why     string             `json:"why,omitempty"`
	Share   float64            `json:"share"`
	NEff    float64            `json:"neff"`
	Retried int                `json:"retried,omitempty"`
	Dropped int64              `json:"dropped_rows"` // so far in the job
	Stale   int64              `json:"stale_reports"`
	Values  map[string]float64 `json:"values,omitempty"`
	Params  plan.Digest        `json:"params"`
	Loop    int                `json:"loop,omitempty"` // of the program, where it is not the first
	LogReports
}

// LogReports are the events of the job since the line before, in the form of a tape: the
// decisions in a line follow from them. Where a step had more than a log keeps they are
// left out, for the rest of the run.
type LogReports struct {
	Reports []byte `json:"reports,omitempty"`
	LeftOut bool   `json:"reports_left_out,omitempty"`
}

// LogPhases are the times of a step's phases in nanoseconds.
type LogPhases struct {
	Send     int64 `json:"send"`     // handing out
	Compute  int64 `json:"compute"`  // until the step was cut or had nothing left
	Wait     int64 `json:"wait"`     // the part of it after the first finisher
	Collect  int64 `json:"collect"`  // until all results were here
	Update   int64 `json:"update"`   // until the parameters were settled
	Exchange int64 `json:"exchange"` // moves that ended during the step
}

// LogMove is a split's move to another executor.
type LogMove struct {
	Split int    `json:"split"`
	From  string `json:"from"`
	To    string `json:"to"`
	Role  bool   `json:"role,omitempty"`
}

// LogEvaluation is an uncut pass over all rows.
type LogEvaluation struct {
	Event     string      `json:"event"` // "evaluation"
	Pack      int         `json:"pack,omitempty"`
	Iteration int         `json:"iteration"`
	Node      int         `json:"node"`
	C         []int64     `json:"c"`
	Folded    []int64     `json:"folded"`
	Attempt   []int       `json:"attempt"`
	Epoch     []uint64    `json:"epoch"`
	Missing   []int       `json:"missing"`
	Waits     []abss.Wait `json:"waits"`
	TookNs    int64       `json:"took_ns"`
	Why       string      `json:"why,omitempty"` // auto's reason to lease its pieces or not
	Objective *float64    `json:"objective,omitempty"`
	Params    plan.Digest `json:"params"`         // of the parameter it ran under
	Work      bool        `json:"work,omitempty"` // it is part of the method, as one of second derivatives
	// Commit is that of the iteration that it is the last pass of.
	Commit *LogCommit `json:"commit,omitempty"`
	LogReports
}

// LogCommit is the end of an iteration.
type LogCommit struct {
	Loop      int                `json:"loop,omitempty"` // of the program, from 1; 0 is of a log before version 9
	Iteration int                `json:"iteration"`
	Values    map[string]float64 `json:"values,omitempty"`
	Params    plan.Digest        `json:"params"` // as of a step
}

// LogIteration is a turn of a loop that made no step: its work was actions, or workers on parameter tables.
type LogIteration struct {
	Event     string             `json:"event"` // "iteration"
	Loop      int                `json:"loop"`  // of the program, counted from 1
	Iteration int                `json:"iteration"`
	TookNs    int64              `json:"took_ns"` // by the loop so far, in all processes that ran it
	Values    map[string]float64 `json:"values,omitempty"`
	Params    plan.Digest        `json:"params"` // as of a step
}

// LogResume marks that the job continued from a checkpoint. Its ledger is that
// of the step.
type LogResume struct {
	Event  string  `json:"event"` // "resume"
	Pack   int     `json:"pack,omitempty"`
	Step   int     `json:"step"`
	Cursor []int64 `json:"cursor"`
	Merged []int64 `json:"merged"`
	// Options and Args are those that it continues under: limits may be others.
	Options LogOptions      `json:"options"`
	Args    json.RawMessage `json:"args,omitempty"`
	Ended   bool            `json:"ended,omitempty"` // its loop had been ended by the program
}

// LogFooter is the last line: it marks the log as complete.
type LogFooter struct {
	Event       string `json:"event"` // "footer"
	Steps       int    `json:"steps"`
	Evaluations int    `json:"evaluations"`
	Lines       int    `json:"lines"` // before this one
	SHA256      string `json:"sha256"`
	StoppedBy   string `json:"stopped_by"`
}

// EventLog writes a job's event log. Lines that do not fit on a full disk wait in
// memory; no checkpoint is made meanwhile, as its mark would come after them. Its methods may be called side by side.
type EventLog struct {
	mu          sync.Mutex
	named       bool // its name is on the disk
	f           *disk.File
	sum         hash.Hash
	lines       int
	steps       int
	evaluations int
	waiting     []byte // lines that are not in the file yet
	held        bool   // what the file has from a point on is of the run that this one goes on from, and still there
	from        int64  // that point
	err         error  // permanent
}

// waitingMost is how many bytes of lines may wait while the disk is full.
const waitingMost = 64 << 20

// CreateEventLog begins a log; a nil log writes nothing.
func CreateEventLog(path string) (*EventLog, error) {
	if path == "" {
		return nil, nil
	}
	if err := disk.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fault.New(fault.NoResources, "write the event log", path, err)
	}
	f, err := disk.Create(path)
	if err != nil {
		return nil, fault.New(fault.NoResources, "write the event log", path, err)
	}
	return &EventLog{f: f, sum: sha256.New()}, nil
}

// LogMark is a position in an event log: the part that a job keeps when it
// continues from a checkpoint.
type LogMark struct {
	Bytes       int64  `json:"bytes"`
	Lines       int    `json:"lines"`
	Steps       int    `json:"steps"`
	Evaluations int    `json:"evaluations"`
	SHA256      string `json:"sha256"`
}

// Mark returns the end of the log so far, which it syncs. It fails while lines wait
// for a full disk; later calls may succeed.
func (l *EventLog) Mark() (LogMark, error) {
	if l == nil {
		return LogMark{}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.release()
	if err == nil {
		err = l.flush()
	}
	if err != nil {
		return LogMark{}, l.failed(err)
	}
	if l.err = l.f.Sync(); l.err == nil && !l.named {
		l.err = disk.SyncDir(filepath.Dir(l.f.Name()))
		l.named = l.err == nil
	}
	if l.err != nil {
		return LogMark{}, l.failed(l.err)
	}
	at, err := l.f.Seek(0, io.SeekCurrent)
	if err != nil {
		return LogMark{}, l.failed(err)
	}
	return LogMark{Bytes: at, Lines: l.lines, Steps: l.steps, Evaluations: l.evaluations,
		SHA256: hex.EncodeToString(l.sum.Sum(nil))}, nil
}

// ContinueEventLog continues a log from a mark. What came after it is cut off once there is more to say than that
// the run goes on: a run that is refused leaves the log as it was; ok is false where the file is not the log that
// the mark was made in.
func ContinueEventLog(path string, m LogMark) (l *EventLog, ok bool) {
	if path == "" || m.Lines == 0 {
		return nil, false
	}
	f, err := disk.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, false
	}
	l = &EventLog{f: f, sum: sha256.New(), lines: m.Lines, steps: m.Steps, evaluations: m.Evaluations}
	_, err = io.CopyN(l.sum, f, m.Bytes)
	if err != nil || hex.EncodeToString(l.sum.Sum(nil)) != m.SHA256 {
		f.Close()
		return nil, false
	}
	l.held, l.from = true, m.Bytes
	return l, true
}

// Write adds a line. Err and Close return a permanent failure.
func (l *EventLog) Write(line any) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	raw, err := json.Marshal(line)
	if err != nil {
		l.err = err
		return
	}
	raw = append(raw, '\n')
	l.sum.Write(raw)
	l.waiting = append(l.waiting, raw...)
	l.lines++
	switch line.(type) {
	case *LogResume, *LogPlan, *LogAction, *LogShuffle, *LogSlots, *LogTables:
		if l.held {
			return // with what follows
		}
	case *LogStep:
		l.steps++
	case *LogEvaluation:
		l.evaluations++
	}
	_ = l.flush() // what does not fit waits
}

// Lines returns how many lines it has.
func (l *EventLog) Lines() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines
}

// Err returns why the log can never be complete; it is nil while lines merely wait.
func (l *EventLog) Err() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed(l.err)
}

// flush writes the lines that wait, and returns why some still do.
func (l *EventLog) flush() error {
	if l.err != nil || len(l.waiting) == 0 {
		return l.err
	}
	if err := l.release(); err != nil {
		return err
	}
	n, err := l.f.Write(l.waiting)
	l.waiting = append(l.waiting[:0], l.waiting[n:]...)
	if err != nil && (!fault.Passing(err) || len(l.waiting) > waitingMost) {
		l.err = err
	}
	return err
}

// release cuts off what the file has of the run that this one goes on from.
func (l *EventLog) release() error {
	if l.held {
		l.held, l.err = false, l.f.Truncate(l.from)
	}
	return l.err
}

// Finish writes the footer and closes the log. It waits for space on the disk for up
// to RoomWait.
func (l *EventLog) Finish(ctx context.Context, stoppedBy string) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	last := &LogFooter{Event: "footer", Steps: l.steps, Evaluations: l.evaluations, Lines: l.lines,
		SHA256: hex.EncodeToString(l.sum.Sum(nil)), StoppedBy: stoppedBy}
	l.mu.Unlock()
	l.Write(last)
	_ = AwaitRoom(ctx, func() error { // Close returns why there was none
		l.mu.Lock()
		defer l.mu.Unlock()
		if err := l.flush(); l.err == nil {
			return err
		}
		return nil
	})
	return l.Close()
}

// RoomWait is how long writes at the end of a job wait for space on the disk.
const RoomWait = 30 * time.Second

// AwaitRoom retries until success, for up to RoomWait, and returns the last error.
func AwaitRoom(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, RoomWait)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

// Digest returns the SHA-256 of the log as it is, its footer included where it has one: with it
// a reader can later tell the log from any other. It is empty where no log is written.
func (l *EventLog) Digest() string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return hex.EncodeToString(l.sum.Sum(nil))
}

// Close closes a log without a footer: it is incomplete.
func (l *EventLog) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		l.waiting = nil // nothing has come of it
	}
	if err := l.flush(); l.err == nil {
		l.err = err
	}
	if err := l.f.Close(); l.err == nil {
		l.err = err
	}
	return l.failed(l.err)
}

func (l *EventLog) failed(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.NoResources, "write the event log", l.f.Name(), err)
}

// StepLine describes a training step; its parameters and update time are
// added when it is committed.
func StepLine(r *StepReport) *LogStep {
	l := &LogStep{Event: "step", Pack: r.Pack, Step: r.Number, Missing: []int{}, Waits: r.Stats.Waits,
		Placement: r.Placement, Executors: r.Executors,
		Bytes: r.Bytes, ShareFirst: r.Stats.ShareFirst, ShareStop: r.Stats.ShareStop, Cut: r.Stats.Cut, Batch: r.Batch,
		Ratio: r.Chosen.Ratio, Why: r.Chosen.Why,
		Share: r.Share, NEff: r.NEff, Retried: r.Retried, Dropped: r.Counters.DroppedRows,
		Stale: r.Counters.StaleReports}
	l.C, l.Folded, l.Attempt, l.Epoch, l.Cursor = coverageArrays(r)
	if r.Entries != nil {
		l.Entries = make([]int64, len(r.Coverage))
		for i, c := range r.Coverage {
			if c != nil {
				l.Entries[i] = c.Entries
			}
		}
	}
	if r.Weighted {
		l.Weight = make([]float64, len(r.Coverage))
		for i, c := range r.Coverage {
			if c != nil {
				l.Weight[i] = c.Weight
			}
		}
	}
	for _, s := range r.Missing {
		l.Missing = append(l.Missing, int(s))
	}
	for _, m := range r.Moves {
		l.Moves = append(l.Moves, LogMove{Split: int(m.Split), From: string(m.From), To: string(m.To), Role: m.Role})
	}
	l.Phases = LogPhases{Compute: int64(r.Stats.StopAt), Collect: int64(r.Took - r.Stats.StopAt),
		Exchange: int64(r.MoveTime)}
	if r.Stats.FirstFinish > 0 {
		l.Phases.Wait = int64(r.Stats.StopAt - r.Stats.FirstFinish)
	}
	return l
}

// coverageArrays returns what a step merged, by split; a missing split has
// zeros and the assignment it had.
func coverageArrays(r *StepReport) (c, folded []int64, attempt []int, epoch []uint64, cursor []int64) {
	n := len(r.Coverage)
	c, folded, cursor = make([]int64, n), make([]int64, n), make([]int64, n)
	attempt, epoch = make([]int, n), make([]uint64, n)
	for i := range n {
		a := r.Assigned[i]
		attempt[i], epoch[i], cursor[i] = a.Attempt, uint64(a.Epoch), a.Cursor
		if cov := r.Coverage[i]; cov != nil {
			c[i], folded[i], attempt[i], epoch[i], cursor[i] = cov.Count, cov.Folded, cov.Attempt, uint64(cov.Epoch),
				cov.Cursor
		}
	}
	return c, folded, attempt, epoch, cursor
}

// EvaluationLine describes an uncut pass.
func EvaluationLine(r *StepReport, params plan.Digest) *LogEvaluation {
	l := &LogEvaluation{Event: "evaluation", Pack: r.Pack, Node: r.Node, Missing: []int{}, Waits: r.Stats.Waits,
		TookNs: int64(r.Took), Params: params, Why: r.Chosen.Why, Work: r.Work}
	l.C, l.Folded, l.Attempt, l.Epoch, _ = coverageArrays(r)
	for _, s := range r.Missing {
		l.Missing = append(l.Missing, int(s))
	}
	return l
}
