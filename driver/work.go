package driver

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/fault"
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

// work is a job of a driver.
type work struct {
	term     uint32           // of the job's last process; only supervise uses it
	began    int64            // where in the job's log its present process begins
	flushing sync.Mutex       // held while a step is written down
	files    []MadeFile       // that it has made, once it has ended
	said     *wire.EndRequest // by its present process of its end; nil until then
	d        *Daemon
	dir      string
	token    string

	logs sync.Mutex // guards the job's log files, whose disk may be slow

	mu          sync.Mutex
	direct      string    // address, of its process
	incarnation string    // of its process
	heard       time.Time // of its process
	busy        bool      // a message of its process is being taken in
	info        *wire.JobInfo
	out         *wire.Outbox[*wire.ForJob] // to its process; nil while there is none
	process     *os.Process
	cancelled   bool
	failure     string        // why its process was killed, if that ends the job
	trouble     string        // what keeps its process from committing steps
	changed     chan struct{} // closed at the next change of state or log
	ended       chan struct{}
	opened      map[string]int       // runners started, by executor
	openedAt    map[string]time.Time // the last of them
	commit      *wire.Commit         // the last step, where it is not in the journal
	journaled   time.Time
	previous    *wire.Commit // of this process
	readers     int          // of its files
	leaving     bool         // it is being removed
	resuming    bool         // it has ended, and another work is about to take its place
	queued      int64        // when it was submitted, or last resumed: its turn in its pool

	// Of its directory, once it has ended and somebody has looked; only prune uses them.
	bytes int64
	sized bool
}

// Over says whether a state is an end.
func Over(state string) bool { return state != JobWaiting && state != JobRunning }

// snapshot is a copy of what is known of the job.
func (w *work) snapshot() (*wire.JobInfo, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cloneInfo(w.info), w.changed
}

func cloneInfo(i *wire.JobInfo) *wire.JobInfo {
	return &wire.JobInfo{Id: i.Id, Job: i.Job, State: i.State, Why: i.Why, SubmittedUnixNs: i.SubmittedUnixNs, EndedUnixNs: i.EndedUnixNs,
		Step: i.Step, Args: slices.Clone(i.Args), Result: i.Result, Restarts: i.Restarts, Pool: i.Pool, Weight: i.Weight, Program: i.Program}
}

// described is a copy of what is known of the job, with what it has come to.
func (w *work) described() *wire.JobInfo {
	info, _ := w.snapshot()
	if info.State == JobDone {
		raw, _ := os.ReadFile(w.resultFile()) // none is as good as empty
		info.Result = string(raw)
	}
	return info
}

// change runs something under the job's lock and wakes those who watch.
func (w *work) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	close(w.changed)
	w.changed = make(chan struct{})
}

// jobTable is every job of a driver.
type jobTable struct {
	d    *Daemon
	mu   sync.Mutex
	list map[string]*work
	live map[string]*work // those that have not ended
	last int              // the highest number that a job has had
	wg   sync.WaitGroup
	// pruning is held while jobs are removed.
	pruning sync.Mutex
	// tokens are those of jobs that have not ended, by their SHA-256.
	tokens sync.Map
}

// openJobs takes over the jobs of the journal.
func openJobs(d *Daemon, s State) *jobTable {
	t := &jobTable{d: d, list: map[string]*work{}, live: map[string]*work{}, last: s.Last}
	for id, j := range s.Jobs {
		info := &wire.JobInfo{Id: string(id), Job: j.Spec.Kind, Args: j.Spec.Args, State: j.State, Why: j.Ended, Step: uint64(j.Step),
			SubmittedUnixNs: j.Submitted, EndedUnixNs: j.EndedAt, Restarts: j.Restarts, Pool: j.Spec.Pool, Weight: j.Spec.Weight, Program: j.Spec.program()}
		if info.State == "" {
			info.State = JobWaiting
		}
		w := t.newWork(info, j.Spec.Token)
		w.term, w.files, w.queued = j.Term, j.Files, max(w.queued, j.Resumed)
		t.add(w)
	}
	return t
}

// add enters a job; t.mu is held, or nobody else has the table yet.
func (t *jobTable) add(w *work) {
	t.list[w.info.Id] = w
	if !Over(w.info.State) {
		t.live[w.info.Id] = w
	}
}

func (t *jobTable) newWork(info *wire.JobInfo, token string) *work {
	if !Over(info.State) {
		t.tokens.Store(sha256.Sum256([]byte(token)), true)
	}
	return &work{d: t.d, queued: info.SubmittedUnixNs, dir: filepath.Join(t.d.cfg.DataDir, "jobs", info.Id), token: token, info: info,
		changed: make(chan struct{}), ended: make(chan struct{}), opened: map[string]int{}, openedAt: map[string]time.Time{}}
}

// resultFile is where what the job printed as its result is kept.
func (w *work) resultFile() string { return filepath.Join(w.dir, "result.json") }

// note writes a decision about the job down.
func (w *work) note(r Record) error {
	r.Job, r.At = plan.JobID(w.info.Id), time.Now().UnixNano()
	return w.d.journal.Append(w.d.ctx, r)
}

// knows reports whether a token is that of a job that has not ended. Tokens are looked up by
// their hash, so that the time it takes tells nothing about them.
func (t *jobTable) knows(token string) bool {
	_, ok := t.tokens.Load(sha256.Sum256([]byte(token)))
	return ok
}

// all are the jobs by number.
func (t *jobTable) all() []*work { return t.some(t.list) }

// running are the jobs that have not ended, by number. What is done for every message, or
// all the time, looks at no others.
func (t *jobTable) running() []*work { return t.some(t.live) }

func (t *jobTable) some(jobs map[string]*work) []*work {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(jobs), byNumber)
}

// byNumber orders jobs by their numbers.
func byNumber(a, b *work) int {
	return cmp.Or(cmp.Compare(len(a.dir), len(b.dir)), strings.Compare(a.dir, b.dir))
}

// ended are the jobs that have ended.
func (t *jobTable) ended() map[string]*work {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]*work{}
	for id, w := range t.list {
		if t.live[id] == nil {
			out[id] = w
		}
	}
	return out
}

// over notes that a job has ended.
func (t *jobTable) over(w *work) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[w.info.Id] == w { // and has not been resumed since
		delete(t.live, w.info.Id)
	}
}

// states counts jobs by state.
func (t *jobTable) states() map[string]int {
	out := map[string]int{JobWaiting: 0, JobRunning: 0, JobDone: 0, JobFailed: 0, JobCancelled: 0}
	t.mu.Lock()
	all := slices.Collect(maps.Values(t.list))
	t.mu.Unlock()
	for _, w := range all {
		w.mu.Lock()
		out[w.info.State]++
		w.mu.Unlock()
	}
	return out
}

// before are the jobs of a pool whose turn comes before one's and that have not
// ended.
func (t *jobTable) before(w *work) []*work {
	var out []*work
	for _, o := range t.running() {
		if cmp.Or(cmp.Compare(o.queued, w.queued), byNumber(o, w)) >= 0 {
			continue
		}
		if info, _ := o.snapshot(); info.Pool == w.info.Pool && !Over(info.State) {
			out = append(out, o)
		}
	}
	return out
}

// uses says whether a job that has not ended needs a program.
func (t *jobTable) uses(digest string) bool {
	for _, w := range t.running() {
		if info, _ := w.snapshot(); !Over(info.State) && info.Program.GetDigest() == digest {
			return true
		}
	}
	return false
}

// find is the job of an id.
func (t *jobTable) find(id string) (*work, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.list[id]; w != nil {
		return w, nil
	}
	if n := jobNumber(id); n > 0 && n <= t.last {
		return nil, notKept(id)
	}
	return nil, status.Errorf(codes.NotFound, "there is no job %q", id)
}

// nextID is a job's name that no directory has: what a submission that could not be kept
// has left belongs to no other. t.mu is held.
func (t *jobTable) nextID() string {
	for {
		t.last++
		id := jobName(t.last)
		if _, err := os.Lstat(filepath.Join(t.d.cfg.DataDir, "jobs", id)); err != nil {
			return id
		}
	}
}

// submit takes a job in and starts its process.
func (t *jobTable) submit(req *wire.SubmitRequest) (string, error) {
	t.mu.Lock()
	id := t.nextID()
	w := t.newWork(&wire.JobInfo{Id: id, Job: req.Job, Args: req.Args, State: JobWaiting, SubmittedUnixNs: time.Now().UnixNano(), Pool: req.Pool, Weight: req.Weight, Program: req.Program}, newToken())
	t.add(w)
	t.mu.Unlock()
	err := os.Mkdir(w.dir, 0o700) // a directory belongs to one job for ever
	if err == nil {
		err = w.note(Record{Kind: JobSubmitted, Spec: specOf(req, w.token)})
	}
	if err != nil {
		t.mu.Lock()
		delete(t.list, id)
		delete(t.live, id)
		t.mu.Unlock()
		t.tokens.Delete(sha256.Sum256([]byte(w.token)))
		if k := fault.KindOf(err); k == fault.Timeout || k == fault.Cancelled { // it may be written down yet: then so is this, after it
			go func() {
				_ = w.note(Record{Kind: JobEnded, State: JobCancelled, Reason: "it could not be kept in time"})
			}()
		}
		close(w.ended)
		return "", status.Errorf(codes.ResourceExhausted, "the job cannot be kept: %v", err)
	}
	t.start(w)
	return id, nil
}

// specOf is what the journal keeps of a submission.
func specOf(req *wire.SubmitRequest, token string) *JobSpec {
	return &JobSpec{Kind: req.Job, Args: req.Args, Token: token, Pool: req.Pool, Weight: req.Weight,
		Program: req.Program.GetDigest(), ProgramArgs: req.Program.GetArgs(), ProgramDir: req.Program.GetDir()}
}

// program is the user's own; nil for a bundled job.
func (s JobSpec) program() *wire.UserProgram {
	if s.Program == "" {
		return nil
	}
	return &wire.UserProgram{Digest: s.Program, Args: s.ProgramArgs, Dir: s.ProgramDir}
}

// resumeAll starts the processes of jobs that had not ended.
func (t *jobTable) resumeAll() {
	for _, w := range t.ended() {
		close(w.ended)
	}
	for _, w := range t.running() {
		t.d.log.Info("job resumes", "job", w.info.Id)
		t.start(w)
	}
}

func (t *jobTable) start(w *work) { t.wg.Go(w.supervise) }

// close stops the processes of all jobs without ending the jobs.
func (t *jobTable) close(most time.Duration) {
	t.d.cancel()
	done := make(chan struct{})
	go func() { t.wg.Wait(); close(done) }()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// end sets a job's last state.
func (w *work) end(state, why string) {
	if err := w.note(Record{Kind: JobEnded, State: state, Reason: why, Files: w.files}); err != nil {
		w.d.log.Error("cannot write a job's end down", "job", w.info.Id, "error", err)
	}
	w.d.jobs.tokens.Delete(sha256.Sum256([]byte(w.token)))
	w.change(func() { w.info.State, w.info.Why, w.info.EndedUnixNs = state, why, time.Now().UnixNano() })
	w.d.jobs.over(w)
	close(w.ended)
	for _, m := range w.d.members.all() {
		m.exclude(w.info.Id, "")
	}
	w.d.jobs.noteAllDrained()
	w.d.log.Info("job ended", "job", w.info.Id, "state", state, "why", why)
}

// memberJoined starts runners of the running jobs on a new executor.
func (t *jobTable) memberJoined(m *member) {
	for _, w := range t.running() {
		w.mu.Lock()
		if w.out != nil {
			delete(w.opened, m.name)
			w.openOn(m)
		}
		w.mu.Unlock()
	}
	t.explain()
}

// fitnessChanged starts runners on an executor that is fit again, and ends those of one that
// is not any more: the jobs' other executors take over.
func (t *jobTable) fitnessChanged(m *member) {
	why := m.unfit()
	if why == "" {
		t.d.log.Info("executor is fit again", "executor", m.name)
		t.memberJoined(m)
		return
	}
	t.d.log.Error("executor is unfit", "executor", m.name, "why", why)
	for _, w := range t.running() {
		w.mu.Lock()
		if w.out != nil && w.opened[m.name] > 0 {
			delete(w.opened, m.name)
			_ = m.out.Put(&wire.ForExecutor{Body: &wire.ForExecutor_Close{Close: &wire.CloseJob{Job: w.info.Id, Why: why}}})
			_ = w.out.Put(&wire.ForJob{Body: &wire.ForJob_Left{Left: &wire.CloseJob{Job: m.name, Why: why}}})
		}
		w.mu.Unlock()
	}
	t.explain()
}

// explain says of running jobs whether they stand still for want of executors, and what
// keeps them from committing steps.
func (t *jobTable) explain() {
	missing := t.d.members.missing()
	for _, w := range t.running() {
		w.mu.Lock()
		why := cmp.Or(missing, w.trouble)
		differs := w.info.State == JobRunning && w.info.Why != why
		w.mu.Unlock()
		if differs {
			w.change(func() {
				if w.info.State == JobRunning {
					w.info.Why = why
				}
			})
		}
	}
}

// openOn asks an executor for a runner; w.mu is held.
func (w *work) openOn(m *member) {
	if m.takesNoWork() {
		return
	}
	w.opened[m.name]++
	w.openedAt[m.name] = time.Now()
	_ = m.out.Put(&wire.ForExecutor{Body: &wire.ForExecutor_Open{Open: &wire.OpenJob{Job: w.info.Id, Token: w.token, Slots: m.slots, Weight: w.info.Weight, Direct: w.direct, Program: w.info.Program,
		Args: append([]string{"run", w.info.Job}, w.info.Args...)}}})
}

// memberLeft tells running jobs that an executor is gone.
func (t *jobTable) memberLeft(m *member, why string) {
	if t.d.members.get(m.name) != nil {
		return // it is back already, and its jobs know
	}
	for _, w := range t.running() {
		w.tell(&wire.ForJob{Body: &wire.ForJob_Left{Left: &wire.CloseJob{Job: m.name, Why: why}}})
	}
	t.explain()
}

// drain has every running job move off an executor.
func (t *jobTable) drain(m *member) {
	for _, w := range t.running() {
		w.mu.Lock()
		if w.out != nil && w.opened[m.name] > 0 {
			_ = w.out.Put(&wire.ForJob{Body: &wire.ForJob_Drain{Drain: &wire.DrainRequest{Name: m.name}}})
		}
		w.mu.Unlock()
	}
	t.noteDrained(m)
}

// noteAllDrained looks at all executors that are to have no more work.
func (t *jobTable) noteAllDrained() {
	for _, m := range t.d.members.all() {
		if m.isDraining() {
			t.noteDrained(m)
		}
	}
}

// noteDrained marks an executor on which no job has anything left.
func (t *jobTable) noteDrained(m *member) {
	for _, w := range t.running() {
		w.mu.Lock()
		busy := w.out != nil && !Over(w.info.State) && w.opened[m.name] > 0
		w.mu.Unlock()
		if busy {
			return
		}
	}
	m.mu.Lock()
	m.mu.drained = true
	leaving := m.mu.leaving
	m.mu.Unlock()
	if leaving {
		m.goodbye()
	}
}

// tell sends something to the job's process, if there is one.
func (w *work) tell(m *wire.ForJob) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out != nil {
		_ = w.out.Put(m)
	}
}

// maxRunners is how often in a row an executor is asked for a runner of one job
// before it is left alone for a while.
const (
	maxRunners = 5
	leftAlone  = 30 * time.Second
)

// runnerEnded tells a job that an executor's runner of it has ended, and asks
// for another.
func (t *jobTable) runnerEnded(m *member, c *wire.CloseJob) {
	w, err := t.find(c.Job)
	if err != nil {
		return
	}
	w.tell(&wire.ForJob{Body: &wire.ForJob_Left{Left: &wire.CloseJob{Job: m.name, Why: c.Why}}})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out == nil || Over(w.info.State) {
		return
	}
	if m.isDraining() {
		delete(w.opened, m.name)
		go t.noteDrained(m)
		return
	}
	if m.unfit() != "" { // which is not the job's fault; it is asked again when it is fit
		delete(w.opened, m.name)
		return
	}
	if time.Since(w.openedAt[m.name]) > leftAlone {
		w.opened[m.name] = 1 // it was well for a while
	}
	if w.opened[m.name] >= maxRunners {
		m.exclude(c.Job, fmt.Sprintf("%d runners ended, the last because %s", maxRunners, c.Why))
		t.d.log.Error("executor excluded from a job", "executor", m.name, "job", c.Job, "why", c.Why, "runners ended", maxRunners)
		if w.hopeless() {
			w.fail(fmt.Sprintf("its runners ended on every executor, the last because %s", c.Why))
			return
		}
		time.AfterFunc(leftAlone, func() { w.readmit(m) })
		return
	}
	t.d.log.Warn("runner ended", "executor", m.name, "job", c.Job, "why", c.Why)
	w.openOn(m)
}

// hopeless says whether there is no executor left on which the job's runners
// have not ended too often; w.mu is held.
func (w *work) hopeless() bool {
	some := false
	for _, m := range w.d.members.all() {
		if m.isDraining() {
			continue
		}
		if some = true; w.opened[m.name] < maxRunners {
			return false
		}
	}
	return some
}

// fail ends the job's process, and the job with it; w.mu is held.
func (w *work) fail(why string) {
	w.failure = why
	if w.process != nil {
		_ = w.process.Kill()
	}
}

// readmit asks an executor again whose runners have ended too often.
func (w *work) readmit(m *member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opened[m.name] < maxRunners {
		return // the job has another process by now, and a runner there
	}
	m.exclude(w.info.Id, "")
	if w.out != nil && !Over(w.info.State) && w.d.members.get(m.name) == m {
		w.opened[m.name] = 0
		w.openOn(m)
	}
}

// fromExecutor carries a message to a job's process, which may take a while to read what is
// before it; one that reads nothing is as good as dead.
func (t *jobTable) fromExecutor(m *member, r *wire.Relay) {
	w, err := t.find(r.Peer)
	if err != nil {
		return
	}
	w.mu.Lock()
	out := w.out
	w.mu.Unlock()
	if out != nil {
		_ = out.Await(&wire.ForJob{Body: &wire.ForJob_Relay{Relay: &wire.Relay{Peer: m.name, Data: r.Data}}}, wire.Patience)
	}
}

// append adds to a file of the job.
func (w *work) append(name string, data []byte) {
	w.logs.Lock()
	defer w.logs.Unlock()
	if err := appendLog(filepath.Join(w.dir, filepath.Base(name)), data); err != nil {
		w.d.log.Error("cannot keep a log", "job", w.info.Id, "error", err)
	}
}
