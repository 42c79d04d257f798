package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/memory"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// command returns what the job's process runs: a bundled job, or the user's
// program with the engine's flags before its own.
func (w *jobHandle) command() (*exec.Cmd, error) {
	if u := w.info.Program; u != nil {
		path, ok := w.d.programs.Path(u.Digest)
		if !ok {
			return nil, fault.Newf(fault.NoResources, "run", w.info.Job,
				"its program is no longer here").WithHint("submit it again")
		}
		return exec.Command(path, programArgs(w.info.Args, u.Args)...), nil
	}
	args := append(runnerArgs(w.info), "--json", "--overwrite", "--out", filepath.Join(w.dir, "out"), "--event-log",
		filepath.Join(w.dir, driver.EventsName),
		"--checkpoint-dir", filepath.Join(w.dir, "checkpoints"), "--checkpoint-every", "1", "--resume")
	return exec.Command(w.d.cfg.Program, args...), nil
}

// runnerArgs returns what a runner of a job is started with, and its process at first: the
// bundled job by name, or the engine's flags for the user's program.
func runnerArgs(j *wire.JobInfo) []string {
	if j.Program != nil {
		return j.Args
	}
	return append([]string{"run", j.Job}, j.Args...)
}

// programArgs puts the engine's flags before a program's own.
func programArgs(engine, own []string) []string {
	return append(append(slices.Clone(engine), "--"), own...)
}

// run runs a process of the job, and reports its end.
func (w *jobHandle) run(s *LifeStart) {
	began := logEnd(filepath.Join(w.dir, "log"))
	cmd, stdout, err := w.prepared(s)
	var bound *memory.Bound
	if err == nil {
		bound, err = w.begin(cmd, s)
	}
	if err != nil {
		failed := &ProcessFailed{Why: err.Error(), Words: w.lastWords(err, began),
			Never:  fault.KindOf(err) == fault.NoResources,
			Passes: fault.Passing(err) || fault.Is(err, fault.HolderLost)}
		w.d.jobs.step(LifeEvent{Process: &ProcessEvent{Job: s.Job, Term: s.Term, Failed: failed}})
		return
	}
	w.d.jobs.step(LifeEvent{Process: &ProcessEvent{Job: s.Job, Term: s.Term, Started: true}})
	err = cmd.Wait()
	exceeded := bound.Ended()
	result := w.resultOf(stdout)
	w.change(func() { w.process, w.result = nil, result })
	w.d.jobs.step(LifeEvent{Process: &ProcessEvent{Job: s.Job, Term: s.Term, Exited: w.exited(err, began, exceeded)}})
}

// exited returns how a process has ended.
func (w *jobHandle) exited(err error, began int64, exceeded bool) *ProcessExited {
	e := &ProcessExited{Why: "exit status 0", Words: w.lastWords(err, began)}
	if exceeded {
		e.Words = fmt.Sprintf("its process and what it had started took more than %d MiB of the driver's memory "+
			"(--job-memory of the driver)", w.d.cfg.mostMemory()>>20)
	}
	var exit *exec.ExitError
	if err != nil {
		e.Why, e.Lost = err.Error(), errors.As(err, &exit) && exit.ExitCode() == wire.ExitLost
	}
	return e
}

// prepared returns a process of the job that can be started.
func (w *jobHandle) prepared(s *LifeStart) (cmd *exec.Cmd, stdout *printed, err error) {
	if err = w.d.gather(w.d.ctx, w.info.Id); err != nil {
		return nil, nil, err
	}
	w.d.copier.filesChanged(w.info.Id)
	if cmd, err = w.command(); err != nil {
		return nil, nil, err
	}
	identity, err := w.d.admission.ofJob(w.info.Id, "")
	if err != nil {
		return nil, nil, err
	}
	p := wire.Process{Role: wire.JobRole, Term: s.Term, JobDir: w.dir, Dir: w.info.Program.GetDir(), Job: w.info.Id,
		Driver: w.d.own(), Token: w.token, Identity: identity, Host: w.d.host(),
		Incarnation: s.Incarnation}
	cmd.Env = p.Environ(filepath.Join(w.dir, "cache"))
	cmd.Dir = w.dir
	stdout = &printed{}
	cmd.Stdout = stdout
	if w.info.Program != nil {
		cmd.Stdout = logWriter{w} // its output is for its user
	}
	cmd.Stderr = logWriter{w}
	cmd.WaitDelay = time.Second
	return cmd, stdout, nil
}

// begin starts a process, which may then be sent signals.
func (w *jobHandle) begin(cmd *exec.Cmd, s *LifeStart) (*memory.Bound, error) {
	b, err := w.d.groups.Start(cmd, s.Job, w.d.cfg.mostMemory())
	if err == nil {
		w.change(func() { w.process, w.present, w.incarnation = cmd.Process, s.Term, s.Incarnation })
	}
	return b, err
}

// signal sends a signal to the process of a term, if it runs.
func (w *jobHandle) signal(term uint32, s os.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process != nil && w.present == term {
		_ = w.process.Signal(s)
	}
}

// printed is what a bundled job's process prints: its result, up to resultMost bytes.
type printed struct {
	text []byte
	more bool
}

// resultMost bounds a job's printed result.
const resultMost = 16 << 20

func (p *printed) Write(b []byte) (int, error) {
	if p.more = p.more || len(p.text)+len(b) > resultMost; !p.more {
		p.text = append(p.text, b...)
	}
	return len(b), nil
}

// resultOf returns the printed result, or a note that it is too large to keep.
func (w *jobHandle) resultOf(p *printed) string {
	if p.more {
		w.append("log", []byte("the job's result is larger than 16 MiB and is not kept\n"))
		return ""
	}
	return strings.TrimSpace(string(p.text))
}

// logWriter appends to a job's log.
type logWriter struct{ w *jobHandle }

func (l logWriter) Write(p []byte) (int, error) {
	l.w.append("log", p)
	l.w.change(func() {})
	return len(p), nil
}

// lastWords returns the reason of the end of a process that has not reported it: its
// exit status, and the reason in its log from an offset on.
func (w *jobHandle) lastWords(err error, from int64) string {
	how := "exit status 0"
	if err != nil {
		how = err.Error()
	}
	how = "its process ended without a report (" + how + ")"
	if last := lastWords(filepath.Join(w.dir, "log"), from); last != "" {
		return how + "; its last words: " + last
	}
	return how
}

// End handles a job process's report of its end. A report of another process than the
// present one is refused.
func (d *Daemon) End(ctx context.Context, req *wire.EndRequest) (*wire.EndReply, error) {
	w, err := d.jobs.find(req.Job)
	if err != nil {
		return nil, err
	}
	if err := d.admitJob(ctx, w); err != nil {
		return nil, err
	}
	_, err = d.jobs.ask(ctx, func(from uint64) LifeEvent {
		said := &ProcessSaid{From: from, Incarnation: req.Incarnation, Code: req.Code, Why: req.Why}
		for _, f := range req.Files {
			said.Files = append(said.Files, MadeFile{Path: f.Path, Size: int64(f.Size),
				SHA256: plan.DigestFromBytes(f.Sha256)})
		}
		for _, s := range req.Saved {
			said.Saved = append(said.Saved, Saved{Dir: s.Dir, Rows: s.Rows})
		}
		return LifeEvent{Process: &ProcessEvent{Job: req.Job, Said: said}}
	})
	return &wire.EndReply{}, err
}

// Work serves the connection of a job's process.
func (d *Daemon) Work(stream wire.Cluster_WorkServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	h := first.GetHello()
	if h == nil {
		return status.Error(codes.InvalidArgument, "the first message of a job process must be Hello")
	}
	w, err := d.jobs.find(h.Name)
	if err != nil {
		return err
	}
	if err := d.admitJob(stream.Context(), w); err != nil {
		return err
	}
	if _, err := agreed("the job's program", h.Side()); err != nil {
		return err
	}
	broken := make(chan error, 1)
	out := wire.NewOutbox(stream.Send, func(err error) { broken <- err })
	defer out.Stop()
	link, err := d.jobs.processConnected(w, &arrival{out: out, direct: h.Direct}, h.Incarnation)
	if err != nil {
		return err
	}
	defer w.disconnect(link)
	ended := make(chan error, 1)
	go func() { ended <- w.receive(stream, link) }()
	select {
	case err = <-ended:
		return err
	case err = <-broken:
		if status.Code(err) == codes.Unavailable || stream.Context().Err() != nil {
			return <-ended // it has closed the connection, and reports its end itself
		}
		d.jobs.step(LifeEvent{Link: &LinkEvent{Job: h.Name, Link: link, Deaf: err.Error()}})
		return status.Errorf(codes.Unavailable, "messages to this process wait for too long: %v", err)
	}
}

// processConnected admits the connection of a job's process, or refuses it.
func (t *jobTable) processConnected(w *jobHandle, a *arrival, incarnation string) (link uint64, err error) {
	link = t.link()
	_, err = t.arrive(context.Background(), a, func(from uint64) LifeEvent {
		return LifeEvent{Link: &LinkEvent{Job: w.info.Id, Link: link,
			Connected: &LinkConnected{From: from, Incarnation: incarnation}}}
	})
	return link, err
}

// connect takes the connection of the job's process over.
func (w *jobHandle) connect(a *arrival, link uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out, w.direct, w.link, w.previous, w.heard, w.busy, w.rows = a.out, a.direct, link, nil, time.Now(), false, 0
}

// disconnect handles the end of a connection.
func (w *jobHandle) disconnect(link uint64) {
	w.change(func() {
		if w.link == link { // else another process is connected by now
			w.out = nil
		}
	})
	w.d.jobs.step(LifeEvent{Link: &LinkEvent{Job: w.info.Id, Link: link, HungUp: true}})
}

// hear handles the messages of the job's process, until it ends.
func (w *jobHandle) receive(stream wire.Cluster_WorkServer, link uint64) error {
	for {
		f, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		w.handling(link, true)
		w.take(f, link)
		w.handling(link, false)
	}
}

// take handles a message of the job's process. One for an executor waits for queue space:
// only this process is blocked.
func (w *jobHandle) take(f *wire.FromJob, link uint64) {
	ev := &LinkEvent{Job: w.info.Id, Link: link}
	switch b := f.Body.(type) {
	case *wire.FromJob_Relay:
		if m := w.d.members.get(b.Relay.Peer); m != nil {
			_ = m.out.Await(&wire.ForExecutor{Body: &wire.ForExecutor_Relay{Relay: &wire.Relay{Peer: w.info.Id,
				Data: b.Relay.Data}}}, wire.Patience)
		}
		return
	case *wire.FromJob_Commit:
		c := b.Commit
		w.d.metrics.committed(w.lastCommit(c), c)
		w.trace(c)
		ev.Commit = &Record{Step: plan.StepID(c.Step), Epoch: plan.Epoch(c.Epoch),
			Params: plan.DigestFromBytes(c.Params)}
	case *wire.FromJob_Drained:
		ev.Drained = b.Drained.Name
	case *wire.FromJob_Exclusion:
		if b.Exclusion.Why != "" {
			w.d.metrics.exclusion.Inc()
		}
		ev.Exclusion = &driver.Exclusion{Executor: plan.ExecutorID(b.Exclusion.Executor), Why: b.Exclusion.Why}
	case *wire.FromJob_Trouble:
		ev.Trouble = &b.Trouble.What
	case *wire.FromJob_Beat:
		w.d.extend(w, b.Beat.SentNs)
		w.stands(b.Beat)
		return
	default:
		return
	}
	w.d.jobs.step(LifeEvent{Link: ev})
}

// handling notes that a message of the job's process is being handled, or has
// been: while that waits for a disk, the process is not silent.
func (w *jobHandle) handling(link uint64, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.link == link { // else another process has replaced it
		w.busy, w.heard = on, time.Now()
	}
}

// lastCommit returns the commit before this one of the same process.
func (w *jobHandle) lastCommit(c *wire.Commit) *wire.Commit {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.previous
	w.previous, w.rows = c, w.rows+c.Rows
	if last == nil {
		last = &wire.Commit{}
	}
	return last
}
