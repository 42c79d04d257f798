package daemon

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// States of a job.
const (
	JobWaiting   = "waiting"
	JobRunning   = "running"
	JobDone      = "done"
	JobFailed    = "failed"
	JobCancelled = "cancelled"
)

// jobHandle is a job of a driver as clients see it, with its process and that one's
// connection. The lifecycle decides about it.
type jobHandle struct {
	d       *Daemon
	dir     string
	token   string
	term    uint32 // as the journal had it when the driver started, and since
	resumed int64
	started int64 // its first process, as the journal had it

	entering atomic.Bool // the journal does not have it yet

	logs sync.Mutex // guards the job's log files, whose disk may be slow

	mu          sync.Mutex
	info        *wire.JobInfo
	files       []MadeFile // its output files, once it has ended
	saved       []Saved    // the datasets that it has saved, likewise
	process     *os.Process
	present     uint32                     // term of the process
	incarnation string                     // of the process
	result      string                     // what the last process has printed
	out         *wire.Outbox[*wire.ForJob] // to its process; nil while there is none
	link        uint64                     // which connection that is
	direct      string                     // address, of its process
	heard       time.Time                  // of its process
	busy        bool                       // a message of its process is being handled
	previous    *wire.Commit               // of this process
	rows        uint64                     // that its steps have merged
	changed     chan struct{}              // closed at the next change of state or log
	ended       chan struct{}
}

// Over reports whether a state is final.
func Over(state string) bool { return state != JobWaiting && state != JobRunning }

// snapshot returns a copy of the job's state.
func (w *jobHandle) snapshot() (*wire.JobInfo, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cloneInfo(w.info), w.changed
}

func cloneInfo(i *wire.JobInfo) *wire.JobInfo { return proto.Clone(i).(*wire.JobInfo) }

// described returns a copy of the job's state, with its result.
func (w *jobHandle) described() *wire.JobInfo {
	info, _ := w.snapshot()
	if info.State == JobDone {
		var why string
		if info.Result, why = w.resultText(); why != "" {
			info.Why = why
		}
	}
	return info
}

// change runs a function under the job's lock and wakes the watchers.
func (w *jobHandle) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	close(w.changed)
	w.changed = make(chan struct{})
}

// stands notes the actions in progress, and how the job's loop stands.
func (w *jobHandle) stands(b *wire.Beat) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.info.Actions = b.Actions; b.Standing != nil { // a process that was started again has none yet
		w.info.Standing = b.Standing
	}
}

// resultFile returns the path at which the job's printed result is kept.
func (w *jobHandle) resultFile() string { return filepath.Join(w.dir, resultName) }

// resultName is the file, in a job's directory, that has what its process has printed.
const resultName = "result.json"

// printed returns the result that the job's last process has printed.
func (w *jobHandle) printed() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.result
}

// step returns the last committed step that is known.
func (w *jobHandle) step() plan.StepID { return plan.StepID(w.info.Step) }

// spec returns what was submitted.
func (w *jobHandle) spec() JobSpec {
	s := specOf(&wire.SubmitRequest{Job: w.info.Job, Args: w.info.Args, Pool: w.info.Pool, Weight: w.info.Weight,
		Program: w.info.Program}, w.token)
	s.Owner, s.Priority, s.Timeout = w.info.Owner, w.info.Priority, time.Duration(w.info.TimeoutNs)
	s.Restarts = w.info.MaxRestarts
	return *s
}

// specOf returns what the journal keeps of a submission.
func specOf(req *wire.SubmitRequest, token string) *JobSpec {
	return &JobSpec{Kind: req.Job, Args: req.Args, Token: token, Pool: req.Pool, Weight: req.Weight,
		Program: req.Program.GetDigest(), ProgramArgs: req.Program.GetArgs(), ProgramDir: req.Program.GetDir(),
		Signed: req.Program.GetSigned(), Priority: req.Priority, Timeout: time.Duration(req.TimeoutNs),
		Restarts: req.Restarts}
}

// program returns the user's own; nil for a bundled job.
func (s JobSpec) program() *wire.UserProgram {
	if s.Program == "" {
		return nil
	}
	return &wire.UserProgram{Digest: s.Program, Args: s.ProgramArgs, Dir: s.ProgramDir, Signed: s.Signed}
}

// cancel ends a job's process at a step boundary, or at once after a timeout.
func (w *jobHandle) cancel() error {
	_, err := w.d.jobs.ask(context.Background(), func(from uint64) LifeEvent {
		return LifeEvent{Ask: &LifeRequest{From: from, Cancel: w.info.Id}}
	})
	if status.Code(err) == codes.NotFound {
		return nil // there may be none
	}
	return err
}

// read prevents the removal of a job until done is called.
func (w *jobHandle) read() (done func(), err error) {
	_, err = w.d.jobs.ask(context.Background(), func(from uint64) LifeEvent {
		return LifeEvent{Ask: &LifeRequest{From: from, Read: w.info.Id}}
	})
	if err != nil {
		return nil, err
	}
	return func() { w.d.jobs.step(LifeEvent{Ask: &LifeRequest{Done: w.info.Id}}) }, nil
}

// tell sends a message to the job's process, if there is one.
func (w *jobHandle) tell(m *wire.ForJob) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out != nil {
		_ = w.out.Put(m)
	}
}

// append adds to a file of the job.
func (w *jobHandle) append(name string, data []byte) {
	w.logs.Lock()
	defer w.logs.Unlock()
	sealed := name != "log" // the journal has the digest of that one
	if err := appendLog(filepath.Join(w.dir, filepath.Base(name)), data, w.d.cfg.JobLog, sealed); err != nil {
		w.d.log.Error("cannot keep a log", "job", w.info.Id, "error", err)
	}
}

// checkLog reports what is damaged of a sealed log.
func (w *jobHandle) checkLog(name string) error {
	w.logs.Lock()
	defer w.logs.Unlock()
	return checkSeals(filepath.Join(w.dir, name))
}
