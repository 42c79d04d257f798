package driver

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// How long to wait before a process is started again that is not to blame for its end, or
// could not be started: longer each time, up to a bound.
const (
	startWait     = 100 * time.Millisecond
	startWaitMost = 10 * time.Second
)

// supervise runs a job's process until the job has ended or the driver does.
func (w *work) supervise() {
	if w.info.Pool != "" && !w.awaitTurn() {
		return
	}
	wait := startWait
	for {
		began := time.Now()
		result, end, err := w.runProcess()
		switch v, why := w.endOf(end, err).judge(); v {
		case jobGoesOn:
			return
		case jobIsDone:
			w.done(result, end)
			return
		case jobIsCancelled:
			w.end(JobCancelled, why)
			return
		case jobHasFailed:
			if why == "" {
				why = w.lastWords(err)
			}
			w.end(JobFailed, why)
			return
		case startAgain:
			w.restarted(err)
		case startLater:
			if time.Since(began) > startWaitMost {
				wait = startWait // it was well for a while
			}
			if !w.startsLater(err, wait) {
				return
			}
			if w.isCancelled() {
				w.end(JobCancelled, "cancelled")
				return
			}
			wait = min(2*wait, startWaitMost)
		}
	}
}

// endOf is how a process of the job has ended.
func (w *work) endOf(end *wire.EndRequest, err error) lifeEnd {
	w.mu.Lock()
	e := lifeEnd{cancelled: w.cancelled, failure: w.failure, restarts: w.info.Restarts, most: *w.d.cfg.Restarts, closing: w.d.ctx.Err() != nil}
	w.mu.Unlock()
	if end != nil {
		e.said, e.code, e.why = true, end.Code, end.Why
		return e
	}
	var exit *exec.ExitError
	switch exited := errors.As(err, &exit); {
	case exited:
		e.lost = exit.ExitCode() == wire.ExitLost
	case errors.Is(err, errNotNoted) || fault.Passing(err):
		e.passing = true
	case fault.KindOf(err) == fault.NoResources:
		e.never = err.Error()
	}
	return e
}

// restarted notes that a process is started again that has ended without a word.
func (w *work) restarted(err error) {
	w.d.log.Warn("job process ended without a word; it is started again", "job", w.info.Id, "why", err)
	w.change(func() { w.info.Restarts++ })
	if err := w.note(Record{Kind: JobRestarted}); err != nil {
		w.d.log.Error("cannot write a restart down", "job", w.info.Id, "error", err)
	}
}

// startsSoon begins why a job waits whose process is about to be started again.
const startsSoon = "its process is started again soon: "

// startsLater waits before a process is started again, and says so; false where the driver
// ends first.
func (w *work) startsLater(err error, after time.Duration) bool {
	w.d.log.Warn("a job's process is started again after a while", "job", w.info.Id, "why", err, "after", after)
	w.change(func() {
		if !Over(w.info.State) {
			w.info.State, w.info.Why = JobWaiting, startsSoon+err.Error()
		}
	})
	return w.pause(after)
}

// errNotNoted is of a process that was not started because the journal could not be written to.
var errNotNoted = errors.New("it was not started")

// done takes in what a job has come to.
func (w *work) done(result string, end *wire.EndRequest) {
	if err := os.WriteFile(w.resultFile(), []byte(result), 0o600); err != nil {
		w.d.log.Error("cannot keep a job's result", "job", w.info.Id, "error", err)
	}
	var files []MadeFile
	for _, f := range end.Files {
		files = append(files, MadeFile{Path: f.Path, Size: int64(f.Size), SHA256: plan.DigestFromBytes(f.Sha256)})
	}
	w.change(func() { w.files = files })
	w.flushCommit()
	w.end(JobDone, "")
}

// pause waits, or until the job is cancelled; false where the driver ends first.
func (w *work) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		_, changed := w.snapshot()
		if w.isCancelled() {
			return true
		}
		select {
		case <-timer.C:
			return true
		case <-changed:
		case <-w.d.ctx.Done():
			return false
		}
	}
}

// awaitTurn waits until the jobs of the same pool that were submitted before
// have ended; false where the job or the driver ended first.
func (w *work) awaitTurn() bool {
	for _, o := range w.d.jobs.before(w) {
		w.change(func() { w.info.Why = "it waits for " + o.info.Id + ", which is before it in pool " + w.info.Pool })
		for waiting := true; waiting; {
			_, changed := w.snapshot()
			if w.isCancelled() {
				w.end(JobCancelled, "cancelled")
				return false
			}
			select {
			case <-o.ended:
				waiting = false
			case <-changed:
			case <-w.d.ctx.Done():
				return false
			}
		}
	}
	w.change(func() { w.info.Why = "" })
	return true
}

// command is what the job's process runs: a bundled job, or the user's program
// with the engine's flags before its own.
func (w *work) command() (*exec.Cmd, error) {
	if u := w.info.Program; u != nil {
		path, ok := w.d.programs.Path(u.Digest)
		if !ok {
			return nil, fault.Newf(fault.NoResources, "run", w.info.Job, "its program is no longer here").WithHint("submit it again")
		}
		return exec.Command(path, programArgs(w.info.Args, u.Args)...), nil
	}
	args := append([]string{"run", w.info.Job}, w.info.Args...)
	args = append(args, "--json", "--overwrite", "--out", filepath.Join(w.dir, "out"), "--event-log", filepath.Join(w.dir, EventsName),
		"--checkpoint-dir", filepath.Join(w.dir, "checkpoints"), "--checkpoint-every", "1", "--resume")
	return exec.Command(w.d.cfg.Program, args...), nil
}

// programArgs puts the engine's flags before a program's own.
func programArgs(engine, own []string) []string {
	return append(append(slices.Clone(engine), "--"), own...)
}

// runProcess runs the job's process once and returns what it printed on stdout, and what it
// has said of its end; nil where it has said nothing.
func (w *work) runProcess() (result string, end *wire.EndRequest, err error) {
	cmd, err := w.command()
	if err != nil {
		return "", nil, err
	}
	w.term++
	if err := w.note(Record{Kind: JobStarted, Term: w.term}); err != nil {
		return "", nil, errors.Join(errNotNoted, err)
	}
	p := wire.Process{Role: wire.JobRole, Term: w.term, JobDir: w.dir, Dir: w.info.Program.GetDir(), Job: w.info.Id, Driver: w.d.Addr(), Token: w.token, Incarnation: newToken()}
	cmd.Env = p.Environ(filepath.Join(w.dir, "cache"))
	cmd.Dir = w.dir
	stdout := &printed{}
	cmd.Stdout = stdout
	if w.info.Program != nil {
		cmd.Stdout = logWriter{w} // what it prints is for its user
	}
	cmd.Stderr = logWriter{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	w.began = logEnd(filepath.Join(w.dir, "log"))
	w.change(func() {
		if err = cmd.Start(); err == nil {
			w.process, w.incarnation, w.info.State, w.said = cmd.Process, p.Incarnation, JobRunning, nil
			if strings.HasPrefix(w.info.Why, startsSoon) {
				w.info.Why = ""
			}
		}
	})
	if err != nil {
		return "", nil, err
	}
	stop := context.AfterFunc(w.d.ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	if w.isCancelled() {
		_ = cmd.Process.Kill()
	}
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whatever it has left over
	w.change(func() { w.process, end, w.said = nil, w.said, nil })
	return w.resultOf(stdout), end, err
}

// printed is what a bundled job's process prints: its result, up to resultMost bytes.
type printed struct {
	text []byte
	more bool
}

// resultMost is how large a job's result may be.
const resultMost = 16 << 20

func (p *printed) Write(b []byte) (int, error) {
	if p.more = p.more || len(p.text)+len(b) > resultMost; !p.more {
		p.text = append(p.text, b...)
	}
	return len(b), nil
}

// resultOf returns what was printed; one that is too large to keep is said to be.
func (w *work) resultOf(p *printed) string {
	if p.more {
		w.append("log", []byte("the job's result is larger than 16 MiB and is not kept\n"))
		return ""
	}
	return strings.TrimSpace(string(p.text))
}

func (w *work) isCancelled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cancelled
}

// logWriter appends to a job's log.
type logWriter struct{ w *work }

func (l logWriter) Write(p []byte) (int, error) {
	l.w.append("log", p)
	l.w.change(func() {})
	return len(p), nil
}

// lastWords is what is known of the end of a process that has not said it: how it exited, and
// what it printed of the reason.
func (w *work) lastWords(err error) string {
	how := "exit status 0"
	if err != nil {
		how = err.Error()
	}
	how = "its process ended without saying so (" + how + ")"
	if last := lastWords(filepath.Join(w.dir, "log"), w.began); last != "" {
		return how + "; its last words: " + last
	}
	return how
}

// End takes in how a job's process has ended. What another process than the present one
// says is refused.
func (d *Daemon) End(ctx context.Context, req *wire.EndRequest) (*wire.EndReply, error) {
	w, err := d.jobs.find(req.Job)
	if err != nil {
		return nil, err
	}
	if err := d.admitJob(ctx, w); err != nil {
		return nil, err
	}
	refused := status.Error(codes.FailedPrecondition, "this is not the job's present process")
	w.change(func() {
		if req.Incarnation == w.incarnation && w.process != nil {
			w.said, refused = req, nil
		}
	})
	return &wire.EndReply{}, refused
}

// cancel ends a job's process at a step boundary, and after a while at once.
func (w *work) cancel() {
	w.mu.Lock()
	if Over(w.info.State) {
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	var p *os.Process
	w.change(func() { w.cancelled, p = true, w.process })
	if err := w.note(Record{Kind: JobEnded, State: JobCancelled, Reason: "cancelled"}); err != nil {
		w.d.log.Error("cannot write a cancellation down", "job", w.info.Id, "error", err)
	}
	if p == nil {
		return
	}
	_ = p.Signal(os.Interrupt)
	kill := time.AfterFunc(cancelGrace, func() { _ = p.Kill() })
	go func() {
		<-w.ended
		kill.Stop()
	}()
}

// cancelGrace is how long a cancelled job may take to come to a step's end.
const cancelGrace = 3 * time.Second

// Work is the connection of a job's process.
func (d *Daemon) Work(stream wire.Cluster_WorkServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	h := first.GetHello()
	if h == nil {
		return status.Error(codes.InvalidArgument, "a job process says hello first")
	}
	w, err := d.jobs.find(h.Name)
	if err != nil {
		return err
	}
	if err := d.admitJob(stream.Context(), w); err != nil {
		return err
	}
	w.mu.Lock()
	current := h.Incarnation == w.incarnation
	w.mu.Unlock()
	if !current {
		return status.Error(codes.FailedPrecondition, "this is not the job's present process")
	}
	broken := make(chan error, 1)
	out := wire.NewOutbox(stream.Send, func(err error) { broken <- err })
	defer out.Stop()
	w.connect(out, h.Direct)
	defer w.disconnect(out)
	ended := make(chan error, 1)
	go func() { ended <- w.hear(stream, out) }()
	select {
	case err = <-ended:
		return err
	case err = <-broken:
		if status.Code(err) == codes.Unavailable || stream.Context().Err() != nil {
			return <-ended // it has hung up, and says itself how it ends
		}
		d.log.Warn("job process does not read; it is killed", "job", w.info.Id, "why", err)
		w.change(func() {
			if w.process != nil && h.Incarnation == w.incarnation {
				_ = w.process.Kill() // what it has not heard it would wait for for ever
			}
		})
		return status.Errorf(codes.Unavailable, "messages to this process wait for too long: %v", err)
	}
}

// hear takes in what the job's process says, until it ends.
func (w *work) hear(stream wire.Cluster_WorkServer, out *wire.Outbox[*wire.ForJob]) error {
	for {
		f, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		w.handling(out, true)
		w.take(f)
		w.handling(out, false)
	}
}

// take takes a message of the job's process in. What is for an executor waits for room: the
// process is held up, and nobody else.
func (w *work) take(f *wire.FromJob) {
	switch b := f.Body.(type) {
	case *wire.FromJob_Relay:
		if m := w.d.members.get(b.Relay.Peer); m != nil {
			_ = m.out.Await(&wire.ForExecutor{Body: &wire.ForExecutor_Relay{Relay: &wire.Relay{Peer: w.info.Id, Data: b.Relay.Data}}}, wire.Patience)
		}
	case *wire.FromJob_Commit:
		w.committed(b.Commit)
	case *wire.FromJob_Drained:
		w.drained(b.Drained.Name)
	case *wire.FromJob_Exclusion:
		if m := w.d.members.get(b.Exclusion.Executor); m != nil {
			m.exclude(w.info.Id, b.Exclusion.Why)
		}
	case *wire.FromJob_Trouble:
		w.change(func() { w.trouble = b.Trouble.What })
		w.d.jobs.explain()
	}
}

// handling notes that a message of the job's process is taken in, or has been:
// while that waits for a disk, the process is not silent.
func (w *work) handling(out *wire.Outbox[*wire.ForJob], on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out != out {
		return // another process has taken its place
	}
	w.busy, w.heard = on, time.Now()
}

// journalEvery is the shortest time between two steps of a job that go to the
// journal; those between are in the job's own checkpoints or are done again.
const journalEvery = 100 * time.Millisecond

// committed takes a job's step in.
func (w *work) committed(c *wire.Commit) {
	w.d.metrics.committed(w.lastCommit(c), c)
	due := false
	w.change(func() {
		w.info.Step, w.commit = c.Step, c
		if due = time.Since(w.journaled) >= journalEvery; due {
			w.journaled = time.Now()
		}
	})
	if due {
		go w.flushCommit() // the journal's disk must not keep the job's messages waiting
	}
}

// lastCommit is the commit before this one of the same process.
func (w *work) lastCommit(c *wire.Commit) *wire.Commit {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.previous
	w.previous = c
	if last == nil {
		last = &wire.Commit{}
	}
	return last
}

// flushCommit writes the last step down, if it is not yet.
func (w *work) flushCommit() {
	w.flushing.Lock() // steps go to the journal in order
	defer w.flushing.Unlock()
	w.mu.Lock()
	c := w.commit
	w.commit = nil
	w.mu.Unlock()
	if c == nil {
		return
	}
	err := w.note(Record{Kind: StepCommitted, Step: plan.StepID(c.Step), Epoch: plan.Epoch(c.Epoch), Params: plan.DigestFromBytes(c.Params)})
	if err != nil {
		w.d.log.Error("cannot write a step down", "job", w.info.Id, "error", err)
	}
}

// drained ends the runner of an executor that has nothing of the job left.
func (w *work) drained(name string) {
	w.d.log.Info("executor drained", "executor", name, "job", w.info.Id)
	m := w.d.members.get(name)
	if m == nil {
		return
	}
	_ = m.out.Put(&wire.ForExecutor{Body: &wire.ForExecutor_Close{Close: &wire.CloseJob{Job: w.info.Id}}})
	w.tell(&wire.ForJob{Body: &wire.ForJob_Left{Left: &wire.CloseJob{Job: name, Why: "it was drained"}}})
	w.mu.Lock()
	delete(w.opened, name)
	w.mu.Unlock()
	w.d.jobs.noteDrained(m)
}

// killSilent kills the job processes that give no sign of life; they are
// started again like others that were killed.
func (t *jobTable) killSilent(v *wire.Vigil) {
	for _, w := range t.running() {
		w.mu.Lock()
		silent := w.out != nil && w.process != nil && !w.busy && v.Dead(w.heard)
		if silent {
			_ = w.process.Kill()
		}
		w.mu.Unlock()
		if silent {
			t.d.log.Warn("job process hangs; it is killed", "job", w.info.Id, "silent for", v.Silence())
		}
	}
}

// connect takes a job's process over and starts runners everywhere.
func (w *work) connect(out *wire.Outbox[*wire.ForJob], direct string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	members := slices.DeleteFunc(w.d.members.all(), (*member).takesNoWork) // under w.mu: who joins later finds w.out
	w.out, w.direct, w.opened, w.previous, w.heard, w.busy = out, direct, map[string]int{}, nil, time.Now(), false
	_ = out.Put(&wire.ForJob{Body: &wire.ForJob_Welcome{Welcome: &wire.Welcome{Executors: uint32(len(members)), BeatNs: uint64(w.d.cfg.beat())}}})
	for _, m := range members {
		m.exclude(w.info.Id, "") // that was of an earlier process
		w.openOn(m)
	}
	w.trouble = ""
	w.info.Why = w.d.members.missing()
}

// disconnect ends the runners of a process that is gone.
func (w *work) disconnect(out *wire.Outbox[*wire.ForJob]) {
	w.mu.Lock()
	if w.out == out { // else another process has its own runners by now
		w.out = nil
		for _, m := range w.d.members.all() {
			_ = m.out.Put(&wire.ForExecutor{Body: &wire.ForExecutor_Close{Close: &wire.CloseJob{Job: w.info.Id}}})
		}
	}
	w.mu.Unlock()
	w.change(func() {}) // who waits for its end goes on
	w.d.jobs.noteAllDrained()
}
