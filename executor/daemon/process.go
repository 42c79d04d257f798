package daemon

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/memory"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/scheduler"
)

// runnerProcess is a process that runs a job's functions on this executor.
type runnerProcess struct {
	job    string
	id     atomic.Uint64        // as the driver requested it
	what   string               // its program, with the arguments
	link   atomic.Pointer[link] // by which the driver is told of it
	alone  atomic.Int64         // since when its job's process is gone, as heard is counted; 0 is that it has one
	key    string               // distinguishes it from an earlier runner of the job
	weight float64
	cmd    *exec.Cmd
	bound  *memory.Bound
	frames *wire.Framed
	in     *wire.Outbox[[]byte] // to the runner: one that does not read must not block others
	ended  chan struct{}
	waits  atomic.Bool  // it has said that it waits for its job's next process, and nothing since
	quiet  atomic.Bool  // it was asked to end
	held   atomic.Bool  // it waits for queue space
	heard  atomic.Int64 // time of the last heartbeat, in nanoseconds since the daemon started
	stats  struct {
		sync.Mutex
		splits map[uint64]bool
		rate   float64
	}
}

// startGrace is how much longer a runner may take for its first heartbeat than
// for later ones.
const startGrace = 10 * time.Second

// startRunner starts a job's program as a runner. Messages go over a socket
// that only the two have; its output goes to the driver.
func (d *Daemon) startRunner(o *wire.OpenJob, program string, args []string,
	l *link) (*runnerProcess, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	p := wire.Process{Role: wire.RunnerRole, Job: o.Job, Token: o.Token, Identity: o.Identity, Host: d.host(),
		Executor: d.cfg.Name, Slots: int(o.Slots),
		Pace: d.cfg.Pace, PaceRate: d.cfg.PaceRate,
		Driver: d.cfg.Driver, Direct: o.Direct, Incarnation: o.Incarnation, Beat: l.beat,
		Dir: o.Program.GetDir(), Unreachable: d.cfg.Unreachable}
	cmd := exec.Command(program, args...)
	cmd.Env = p.Environ(d.cfg.DataDir)
	if d.cfg.Memory != "" {
		cmd.Env = append(cmd.Env, "VOLLEY_MEMORY="+d.cfg.Memory)
	}
	if d.cfg.Disk != "" {
		cmd.Env = append(cmd.Env, "VOLLEY_DISK="+d.cfg.Disk)
	}
	cmd.Dir = filepath.Join(d.cfg.DataDir, "runners")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.WaitDelay = time.Second
	printed := d.newRunnerLog(o.Job)
	logs := &lineWriter{put: printed.put}
	cmd.Stdout, cmd.Stderr = logs, logs
	bound, err := d.groups.Start(cmd, o.Job, d.cfg.mostMemory())
	if err != nil {
		ours.Close()
		printed.close()
		return nil, fault.New(fault.NoResources, "start a runner of", o.Job, err)
	}
	d.started.Add(1)
	limit(cmd.Process.Pid)
	r := &runnerProcess{job: o.Job, what: whatOf(o), weight: float64(max(1, o.Weight)), cmd: cmd, bound: bound,
		frames: wire.NewFramed(ours), ended: make(chan struct{})}
	r.id.Store(o.Runner)
	r.link.Store(l)
	r.stats.splits = map[uint64]bool{}
	r.key = fmt.Sprintf("%s/%d", o.Job, cmd.Process.Pid)
	r.heard.Store(int64(time.Since(d.began) + startGrace))
	r.in = wire.NewOutbox(r.frames.Write, func(error) { _ = cmd.Process.Kill() })
	go d.carry(r)
	go func() {
		err := cmd.Wait()
		exceeded := bound.Ended()
		r.frames.Close()
		r.in.Stop()
		d.mu.Lock() // none claims it from here on
		close(r.ended)
		id := r.id.Load()
		d.mu.Unlock()
		printed.close()
		if !r.quiet.Load() {
			why := fmt.Sprintf("its runner ended: %s: %s", howEnded(err), logs.why(bound.Most, exceeded))
			_ = r.link.Load().out.Put(closed(o.Job, id, why))
		}
	}()
	return r, nil
}

// howEnded returns how a process has ended.
func howEnded(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// runnerFiles is how many files a runner may have open, for its splits and peers; core dumps, which would hold data, it
// may not make.
const runnerFiles = 65536

// mostMemory returns how many bytes a runner may ever take: well beyond its soft
// limit, or most of the machine's.
func (c *Config) mostMemory() uint64 {
	if soft := c.MemoryBytes; soft > 0 {
		return uint64(max(2*soft, soft+1<<30))
	}
	return memory.MostOfMachine()
}

// limit sets the limits, beside that of memory, that the system allows.
func limit(pid int) {
	_ = unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	var files unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &files) == nil {
		files.Cur = min(files.Max, runnerFiles)
		_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &files, nil)
	}
}

// socketPair makes two connected sockets, the second as a file for the child.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fault.New(fault.NoResources, "open", "a socket pair", err)
	}
	f := os.NewFile(uintptr(fds[0]), "runner")
	defer f.Close()
	conn, err := net.FileConn(f)
	theirs := os.NewFile(uintptr(fds[1]), "executor")
	if err != nil {
		theirs.Close()
		return nil, nil, fault.New(fault.NoResources, "open", "a socket pair", err)
	}
	return conn, theirs, nil
}

// carry takes the runner's messages to the driver; an empty one is a heartbeat.
func (d *Daemon) carry(r *runnerProcess) {
	for {
		raw, err := r.frames.Read()
		if err != nil {
			return
		}
		r.heard.Store(int64(time.Since(d.began)))
		if len(raw) == 0 {
			continue
		}
		if n := wire.NoteOf(raw); n != nil {
			d.note(r, n)
			continue
		}
		if len(raw) > wire.MostRelayed {
			d.mu.Lock() // none claims it from here on
			r.quiet.Store(true)
			id := r.id.Load()
			d.mu.Unlock()
			_ = r.link.Load().out.Put(closed(r.job, id, wire.TooLarge(len(raw))))
			_ = r.cmd.Process.Kill()
			return
		}
		if r.waits.Swap(false) { // it has said so of the process before the one that has it
			r.alone.Store(0)
		}
		r.held.Store(true) // it is not silent while the driver takes nothing
		l := r.link.Load()
		relay := &wire.Relay{Peer: r.job, Data: raw}
		err = l.out.Await(&wire.FromExecutor{Body: &wire.FromExecutor_Relay{Relay: relay}}, wire.Patience)
		r.heard.Store(int64(time.Since(d.began)))
		if r.held.Store(false); err != nil && !(d.outlives() && l.over()) {
			_ = r.cmd.Process.Kill()
			return
		}
	}
}

// note records what the daemon needs of a runner: the slots that it uses, and the state that heartbeats carry.
func (d *Daemon) note(r *runnerProcess, n *wire.Note) {
	r.stats.Lock()
	if n.Held {
		r.stats.splits[uint64(n.Pack)<<32|uint64(n.Split)] = true
	}
	if n.BusyNs > 0 {
		r.stats.rate = float64(n.Rows) / time.Duration(n.BusyNs).Seconds()
	}
	r.stats.Unlock()
	if n.Orphaned {
		r.waits.Store(true)
		r.alone.Store(int64(time.Since(d.began)))
	}
	if n.Began > 0 {
		d.turns(func(s *scheduler.Shares, now plan.Time) { s.Began(r.key, int(n.Began), now) })
	}
	if n.Ended {
		d.turns(func(s *scheduler.Shares, now plan.Time) { s.Ended(r.key, now) })
	}
}

// turns takes an event that changes which jobs may use the slots, and notifies
// the runners.
func (d *Daemon) turns(note func(*scheduler.Shares, plan.Time)) {
	d.share.Lock()
	defer d.share.Unlock()
	now := time.Since(d.began)
	note(d.share.by, now)
	turns, again := d.share.by.Look(now)
	for _, t := range turns {
		d.share.of[t.Job].pause(t.Pause)
	}
	if again > 0 && !d.share.due {
		d.share.due = true
		time.AfterFunc(again, func() {
			d.turns(func(*scheduler.Shares, plan.Time) { d.share.due = false })
		})
	}
}

// setUp gives the runner its share of the slots, and takeDown takes it back.
func (d *Daemon) setUp(r *runnerProcess) {
	d.turns(func(s *scheduler.Shares, now plan.Time) {
		d.share.of[r.key] = r
		s.Open(r.key, r.weight, now)
	})
}

func (d *Daemon) takeDown(r *runnerProcess) {
	d.turns(func(s *scheduler.Shares, now plan.Time) {
		s.Close(r.key, now)
		delete(d.share.of, r.key)
	})
}

func (r *runnerProcess) pause(on bool) {
	raw, err := proto.Marshal(&wire.ToExecutor{Body: &wire.ToExecutor_Pause{Pause: &wire.Pause{On: on}}})
	if err == nil {
		r.send(raw)
	}
}

func (r *runnerProcess) progress() (splits int, rate float64) {
	r.stats.Lock()
	defer r.stats.Unlock()
	return len(r.stats.splits), r.stats.rate
}

func (r *runnerProcess) pid() int { return r.cmd.Process.Pid }

func (r *runnerProcess) send(raw []byte) { _ = r.in.Put(raw) } // its failure kills the runner

// stop ends the runner at once: what it holds can be recomputed.
func (r *runnerProcess) stop() {
	r.quiet.Store(true)
	if r.over() {
		return
	}
	r.kill()
	select {
	case <-r.ended:
	case <-time.After(killWait): // the kernel holds it until the disk answers
	}
}

// kill ends the runner's process and its children.
func (r *runnerProcess) kill() { r.bound.Kill() }

// killWait bounds the wait for a runner that was killed.
const killWait = 2 * time.Second

// lineWriter forwards a runner's output and remembers the last line.
type lineWriter struct {
	put  func([]byte)
	mu   sync.Mutex
	line string
	died string // the line that has the reason why the program died, if any
	rest []byte // an unfinished line
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.rest = append(w.rest, p...)
	for {
		line, rest, whole := bytes.Cut(w.rest, []byte{'\n'})
		if !whole {
			break
		}
		w.rest = rest
		w.note(string(line))
	}
	if len(w.rest) > longestLine {
		w.rest = w.rest[len(w.rest)-longestLine:]
	}
	w.mu.Unlock()
	w.put(append([]byte(nil), p...))
	return len(p), nil
}

// longestLine bounds what is kept of a line that does not end.
const longestLine = 4 << 10

// note remembers a line; w.mu is held.
func (w *lineWriter) note(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	w.line = line
	for _, start := range []string{"fatal error: ", "panic: ", "runtime: out of memory"} {
		if w.died == "" && strings.HasPrefix(line, start) {
			w.died = strings.TrimSpace(line)
		}
	}
}

// why returns the line in which the runner printed the reason of its end.
func (w *lineWriter) why(memory uint64, exceeded bool) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case exceeded:
		return fmt.Sprintf("the program and what it has started took more memory than the %d MiB that they may",
			memory>>20)
	case strings.Contains(w.died, "memory"):
		return fmt.Sprintf("the program took more memory than the %d MiB that it may (%s)", memory>>20, w.died)
	case w.died != "":
		return w.died
	case len(w.rest) > 0:
		return string(w.rest)
	}
	return w.line
}

// diskUsed returns the size of the packs of a data directory.
func diskUsed(dir string) uint64 {
	var total uint64
	for _, p := range disk.Glob(dir, "packs/*/split-*") {
		if info, err := os.Stat(p); err == nil {
			total += uint64(info.Size())
		}
	}
	return total
}
