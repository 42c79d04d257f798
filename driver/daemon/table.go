package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// jobTable holds every job of a driver, as clients see it, and is the shell around the
// lifecycle: it feeds it events, and carries out its commands.
type jobTable struct {
	d    *Daemon
	mu   sync.Mutex // guards what follows; it is held while the lifecycle decides
	life *Life
	list map[string]*jobHandle
	live map[string]*jobHandle // those that have not ended

	asks     map[uint64]chan *LifeReply // requests that wait for an answer
	asked    uint64                     // so far
	links    uint64                     // so far
	arriving *arrival                   // the connection being admitted
	timer    *time.Timer
	wg       sync.WaitGroup // of processes

	// tokens has the jobs that have not ended by the SHA-256 of their tokens, admitted by id.
	tokens, admitted sync.Map
}

// arrival is a new connection of an executor, or of a job's process.
type arrival struct {
	member *member
	out    *wire.Outbox[*wire.ForJob]
	direct string
}

// openJobs takes over the jobs of the journal.
func openJobs(d *Daemon, s State) *jobTable {
	cfg := LifeConfig{Restarts: *d.cfg.Restarts, Keep: *d.cfg.Keep, MaxJobs: *d.cfg.MaxJobs}
	t := &jobTable{d: d, life: NewLife(cfg, State{Last: s.Last}), list: map[string]*jobHandle{},
		live: map[string]*jobHandle{}, asks: map[uint64]chan *LifeReply{}}
	for id, j := range s.Jobs {
		info := infoOf(string(id), &j.Spec)
		info.State, info.Why, info.Step, info.SubmittedUnixNs, info.EndedUnixNs, info.Restarts = cmp.Or(j.State,
			JobWaiting), j.Ended, uint64(j.Step), j.Submitted, j.EndedAt, j.Restarts
		w := t.newWork(info, j.Spec.Token)
		w.term, w.files, w.saved, w.resumed, w.started = j.Term, j.Files, j.Saved, j.Resumed, j.Started
		if Over(info.State) {
			close(w.ended)
		}
		t.add(w)
	}
	return t
}

// infoOf returns the description of a newly submitted job.
func infoOf(id string, s *JobSpec) *wire.JobInfo {
	return &wire.JobInfo{Id: id, Job: s.Kind, Args: s.Args, State: JobWaiting, Pool: s.Pool, Weight: s.Weight,
		Program: s.program(), Owner: s.Owner, Priority: s.Priority, TimeoutNs: int64(s.Timeout),
		MaxRestarts: s.Restarts}
}

// add enters a job that the journal has; t.mu is held, or the table is not shared yet.
func (t *jobTable) add(w *jobHandle) {
	t.enter(w)
	t.life.Adopt(w.info.Id, JobState{Spec: w.spec(), State: w.info.State, Ended: w.info.Why,
		EndedAt: w.info.EndedUnixNs, Step: w.step(),
		Restarts: w.info.Restarts, Term: w.term, Submitted: w.info.SubmittedUnixNs, Resumed: w.resumed,
		Started: w.started})
}

// enter adds a job to the table; t.mu is held.
func (t *jobTable) enter(w *jobHandle) {
	t.list[w.info.Id] = w
	if !Over(w.info.State) {
		t.live[w.info.Id] = w
	}
}

func (t *jobTable) newWork(info *wire.JobInfo, token string) *jobHandle {
	if !Over(info.State) {
		t.tokens.Store(sha256.Sum256([]byte(token)), info.Id)
		t.admitted.Store(info.Id, true)
	}
	return &jobHandle{d: t.d, dir: filepath.Join(t.d.cfg.DataDir, "jobs", info.Id), token: token, info: info,
		changed: make(chan struct{}), ended: make(chan struct{})}
}

// step feeds the lifecycle an event and carries out its commands.
func (t *jobTable) step(ev LifeEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.take(ev)
}

// take does what step does, with t.mu held.
func (t *jobTable) take(ev LifeEvent) {
	for _, c := range t.life.Step(ev, time.Now()) {
		t.carryOut(c)
	}
}

// ask passes a request to the lifecycle and waits for the reply. A wait that is given up is reported to the
// lifecycle.
func (t *jobTable) ask(ctx context.Context, event func(from uint64) LifeEvent) (*LifeReply, error) {
	return t.arrive(ctx, nil, event)
}

// arrive does what ask does, for a new connection.
func (t *jobTable) arrive(ctx context.Context, a *arrival, event func(from uint64) LifeEvent) (*LifeReply, error) {
	answer := make(chan *LifeReply, 1)
	t.mu.Lock()
	t.asked++
	from := t.asked
	t.asks[from], t.arriving = answer, a
	t.take(event(from))
	t.arriving = nil
	t.mu.Unlock()
	select {
	case r := <-answer:
		return r, r.refused()
	case <-ctx.Done():
		t.step(LifeEvent{Ask: &LifeRequest{GiveUp: from}})
		t.mu.Lock()
		delete(t.asks, from)
		t.mu.Unlock()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// refused returns the error of a request that the lifecycle refuses.
func (r *LifeReply) refused() error {
	if r.Code == codes.OK {
		return nil
	}
	return status.Error(r.Code, r.Why)
}

// carryOut carries out the lifecycle's commands; t.mu is held, so nothing here may wait.
func (t *jobTable) carryOut(c LifeCommand) {
	switch {
	case c.Write != nil:
		go t.write(c.Write)
	case c.MakeDir != "":
		go t.makeDir(c.MakeDir)
	case c.Start != nil:
		w := t.list[c.Start.Job]
		t.wg.Go(func() { w.run(c.Start) })
	case c.Kill != nil:
		t.list[c.Kill.Job].signal(c.Kill.Term, os.Kill)
	case c.Interrupt != nil:
		t.list[c.Interrupt.Job].signal(c.Interrupt.Term, os.Interrupt)
	case c.Tell != nil:
		t.tell(c.Tell)
	case c.Remove != nil:
		gone := t.those(c.Remove)
		go t.remove(gone)
	case c.Measure != nil:
		all := t.those(c.Measure)
		go t.measure(all)
	case c.Reply != nil:
		if answer := t.asks[c.Reply.To]; answer != nil {
			delete(t.asks, c.Reply.To)
			answer <- c.Reply
		}
	case !c.WakeAt.IsZero():
		t.wake(c.WakeAt)
	case c.Log != nil:
		t.log(c.Log)
	default:
		t.carryOn(c)
	}
}

// carryOn carries out the commands about executors and visible states.
func (t *jobTable) carryOn(c LifeCommand) {
	switch {
	case c.Open != nil:
		t.open(c.Open)
	case c.Close != nil:
		end := &wire.CloseJob{Job: c.Close.Job, Why: c.Close.Why}
		t.d.members.send(c.Close.Executor, &wire.ForExecutor{Body: &wire.ForExecutor_Close{Close: end}})
	case c.Admit != nil:
		t.d.admitMember(t.arriving.member)
	case c.Drop != nil:
		t.d.members.drop(c.Drop.Executor, c.Drop.Why)
	case c.Goodbye != "":
		t.d.members.send(c.Goodbye, goodbye)
	case c.Executor != nil:
		t.d.members.show(c.Executor)
	case c.Shown != nil:
		t.show(c.Shown)
	case c.Over != nil:
		t.over(c.Over)
	case c.Renew != "":
		t.renew(c.Renew)
	case c.Forget != nil:
		t.forget(c.Forget)
	}
}

// write writes an entry to the journal.
func (t *jobTable) write(c *LifeWrite) {
	if c.Result {
		t.keepResult(c.Job)
	}
	ev := &LifeWritten{ID: c.ID}
	began := time.Now()
	defer func() { t.d.metrics.wrote(time.Since(began)) }()
	err := t.d.beforeJournal(t.d.ctx, c)
	if err == nil {
		err = t.d.journal.Append(t.d.ctx, c.Records...)
	}
	if err != nil {
		ev.Outcome, ev.Why = NotApplied, err.Error()
		if k := fault.KindOf(err); k == fault.Timeout || k == fault.Cancelled {
			ev.Outcome = Unknown
		}
	}
	t.step(LifeEvent{Written: ev})
}

// keepResult keeps a job's printed result.
func (t *jobTable) keepResult(job string) {
	w, err := t.find(job)
	if err == nil {
		err = os.WriteFile(w.resultFile(), []byte(w.printed()), 0o600)
	}
	if err != nil {
		t.d.log.Error("cannot keep a job's result", "job", job, "error", err)
	}
}

func (t *jobTable) makeDir(job string) {
	ev := &LifeMade{Job: job}
	if err := os.Mkdir(filepath.Join(t.d.cfg.DataDir, "jobs", job), 0o700); err != nil {
		ev.Taken, ev.Failed = os.IsExist(err), err.Error()
	}
	t.step(LifeEvent{Made: ev})
}

// tell sends a message to a job's process.
func (t *jobTable) tell(c *LifeNotice) {
	w := t.list[c.Job]
	m := &wire.ForJob{}
	switch {
	case c.Welcome:
		w.connect(t.arriving, c.Link)
		m.Body = &wire.ForJob_Welcome{Welcome: t.d.welcome(c.Executors)}
	case c.Left != "":
		m.Body = &wire.ForJob_Left{Left: &wire.CloseJob{Job: c.Left, Why: c.Why}}
	default:
		m.Body = &wire.ForJob_Drain{Drain: &wire.DrainRequest{Name: c.Drain}}
	}
	w.tell(m)
}

// open asks an executor for a runner.
func (t *jobTable) open(c *LifeRunner) {
	w, m := t.list[c.Job], t.d.members.get(c.Executor)
	if m == nil {
		return // it has just left
	}
	w.mu.Lock()
	direct, incarnation := w.direct, w.incarnation
	w.mu.Unlock()
	identity, err := t.d.admission.ofJob(c.Job, c.Executor)
	if err != nil {
		m.drop("its runner's certificate cannot be signed: " + err.Error())
		return
	}
	program, err := t.d.admission.attested(w.info.Program)
	if err != nil {
		m.drop("a program cannot be signed for it: " + err.Error())
		return
	}
	_ = m.out.Put(&wire.ForExecutor{Body: &wire.ForExecutor_Open{Open: &wire.OpenJob{Job: c.Job, Runner: c.ID,
		Token: w.token, Identity: identity, Slots: m.slots, Weight: w.info.Weight, Direct: direct,
		Program: program, Args: runnerArgs(w.info), Incarnation: incarnation}}})
}

// show publishes a job's visible state; a new job is entered.
func (t *jobTable) show(c *JobShown) {
	w := t.list[c.Job]
	if w == nil {
		info := infoOf(c.Job, c.Spec)
		info.SubmittedUnixNs = c.Submitted
		w = t.newWork(info, c.Spec.Token)
		t.enter(w)
	}
	over := false // its visible state was over
	select {
	case <-w.ended:
		over = true
	default:
	}
	w.entering.Store(c.Entering)
	w.change(func() {
		if c.Restarts > w.info.Restarts {
			t.d.metrics.restarts.Add(float64(c.Restarts - w.info.Restarts))
		}
		w.info.State, w.info.Why, w.info.Step, w.info.Restarts, w.info.EndedUnixNs = c.State, c.Why, c.Step, c.Restarts,
			c.Ended
	})
	if Over(c.State) && !over {
		if t.d.traces != nil {
			t.d.traces.End(w.traced(), tracedEnd(c))
		}
		t.d.metrics.ends.WithLabelValues(c.State).Inc()
		close(w.ended)
	}
}

// over records a job's output, before its end is published.
func (t *jobTable) over(c *LifeOver) {
	w := t.list[c.Job]
	delete(t.live, c.Job)
	t.shut(w)
	w.change(func() { w.files, w.saved = c.Files, c.Saved })
}

// shut lets no process of a job in any more.
func (t *jobTable) shut(w *jobHandle) {
	t.tokens.Delete(sha256.Sum256([]byte(w.token)))
	t.admitted.Delete(w.info.Id)
}

// renew replaces an ended job by its resumption; a client that watches it has seen the end.
func (t *jobTable) renew(job string) {
	old := t.list[job]
	info, _ := old.snapshot()
	info.State = JobWaiting
	t.enter(t.newWork(info, old.token))
}

// forget drops jobs that were removed, or whose submission failed.
func (t *jobTable) forget(ids []string) {
	for _, w := range t.those(ids) {
		delete(t.list, w.info.Id)
		if t.live[w.info.Id] == w {
			delete(t.live, w.info.Id)
			t.shut(w)
			close(w.ended)
		}
	}
}

// those returns the jobs of some ids; t.mu is held.
func (t *jobTable) those(ids []string) (out []*jobHandle) {
	for _, id := range ids {
		out = append(out, t.list[id])
	}
	return out
}

// remove removes the directories of jobs that the journal has forgotten.
func (t *jobTable) remove(gone []*jobHandle) {
	ev := &LifeGone{}
	for _, w := range gone {
		ev.Jobs, ev.Bytes = append(ev.Jobs, w.info.Id), ev.Bytes+directorySize(w.dir)
		if t.d.copier != nil {
			t.d.copier.forget(jobDir(w.info.Id))
		}
		if err := disk.RemoveAll(w.dir); err != nil { // it is retried when the driver starts
			t.d.log.Error("cannot remove a job's directory", "job", w.info.Id, "error", err)
		}
	}
	t.dropPrograms(gone)
	t.step(LifeEvent{Gone: ev})
}

// measure computes the sizes of jobs' directories.
func (t *jobTable) measure(all []*jobHandle) {
	sizes := map[string]int64{}
	for _, w := range all {
		sizes[w.info.Id] = directorySize(w.dir)
	}
	t.step(LifeEvent{Measured: sizes})
}

// wake schedules a tick of the lifecycle.
func (t *jobTable) wake(at time.Time) {
	if t.timer == nil {
		t.timer = time.AfterFunc(time.Until(at), func() { t.step(LifeEvent{}) })
		return
	}
	t.timer.Reset(time.Until(at))
}

func (t *jobTable) log(c *LifeLog) {
	switch c.Level {
	case LogInfo:
		t.d.log.Info(c.Text, c.Pairs...)
	case LogWarn:
		t.d.log.Warn(c.Text, c.Pairs...)
	default:
		t.d.log.Error(c.Text, c.Pairs...)
	}
}

// byToken returns the job that has not ended and has a token; empty is none. Tokens are looked up by
// their hash, so that the time it takes reveals nothing about them.
func (t *jobTable) byToken(token string) string {
	id, _ := t.tokens.Load(sha256.Sum256([]byte(token)))
	job, _ := id.(string)
	return job
}

// runs reports whether a job has not ended.
func (t *jobTable) runs(job string) bool {
	_, ok := t.admitted.Load(job)
	return ok
}

// all returns the jobs by number.
func (t *jobTable) all() []*jobHandle { return t.some(t.list) }

// shown returns the jobs that clients are told of, by number: those that the journal has.
func (t *jobTable) shown() []*jobHandle {
	return slices.DeleteFunc(t.all(), func(w *jobHandle) bool { return w.entering.Load() })
}

// running returns the jobs that have not ended, by number. Frequent work
// considers no others.
func (t *jobTable) running() []*jobHandle { return t.some(t.live) }

func (t *jobTable) some(jobs map[string]*jobHandle) []*jobHandle {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(jobs), byNumber)
}

// byNumber orders jobs by their numbers.
func byNumber(a, b *jobHandle) int {
	return cmp.Or(cmp.Compare(len(a.dir), len(b.dir)), strings.Compare(a.dir, b.dir))
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

// uses reports whether a job that has not ended needs a program.
func (t *jobTable) uses(digest string) bool {
	for _, w := range t.running() {
		if info, _ := w.snapshot(); !Over(info.State) && info.Program.GetDigest() == digest {
			return true
		}
	}
	return false
}

// find returns the job of an id.
func (t *jobTable) find(id string) (*jobHandle, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.list[id]; w != nil && !w.entering.Load() {
		return w, nil
	}
	if t.life.Had(id) {
		return nil, status.Error(codes.NotFound, notKeptWhy(id))
	}
	return nil, status.Errorf(codes.NotFound, "there is no job %q", id)
}

// submit takes a job in.
func (t *jobTable) submit(req *wire.SubmitRequest, owner string) (string, error) {
	spec := specOf(req, trust.NewSecret())
	spec.Owner = owner
	r, err := t.ask(context.Background(), func(from uint64) LifeEvent {
		return LifeEvent{Ask: &LifeRequest{From: from,
			Submit: spec}}
	})
	if err != nil {
		return "", err
	}
	return r.Job, nil
}

// close stops the processes of all jobs without ending the jobs.
func (t *jobTable) close(most time.Duration) {
	t.step(LifeEvent{Closing: true})
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

// link returns a number for a connection.
func (t *jobTable) link() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links++
	return t.links
}

// memberJoined admits an executor, or refuses it.
func (t *jobTable) memberJoined(m *member) error {
	m.link = t.link()
	_, err := t.arrive(context.Background(), &arrival{member: m}, func(from uint64) LifeEvent {
		return LifeEvent{Member: &MemberEvent{Executor: m.name, Link: m.link,
			Joined: &MemberJoined{From: from, Incarnation: m.incarnation}}}
	})
	return err
}

// memberLeft handles the end of an executor's connection.
func (t *jobTable) memberLeft(m *member, why string) {
	t.step(LifeEvent{Member: &MemberEvent{Executor: m.name, Link: m.link, Left: true, Why: why}})
}

// killSilent reports the job processes without heartbeats to the lifecycle.
func (t *jobTable) killSilent(v *wire.FailureDetector) {
	for _, w := range t.running() {
		w.mu.Lock()
		silent, link := w.out != nil && w.process != nil && !w.busy && v.Dead(w.heard), w.link
		w.mu.Unlock()
		if silent {
			t.step(LifeEvent{Link: &LinkEvent{Job: w.info.Id, Link: link, Silent: v.Silence().String()}})
		}
	}
}

// fromExecutor relays a message to a job's process, which may take a while to read those
// before it; one that reads nothing counts as dead.
func (t *jobTable) fromExecutor(m *member, r *wire.Relay) {
	w, err := t.find(r.Peer)
	if err != nil {
		return
	}
	w.mu.Lock()
	out := w.out
	w.mu.Unlock()
	if out != nil {
		_ = out.Await(&wire.ForJob{Body: &wire.ForJob_Relay{Relay: &wire.Relay{Peer: m.name, Data: r.Data}}},
			wire.Patience)
	}
}
