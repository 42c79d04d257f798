package host

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/console"
	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/web"
	"github.com/volley-engine/volley/internal/wire"
)

// page shows an embedded run while it goes on.
type page struct {
	server *web.Server
	log    string // path of its event log
	own    bool   // the log is the page's own, and goes with it

	mu    sync.Mutex
	info  wire.JobInfo
	rates []float64 // of executors
	holds []uint64  // splits of executors, as their placement was told last
	slots int
	job   *Job // nil until there is one
}

// runID is how the one run of a process is called on its page.
const runID = "run"

// openPage shows the run of a program, and returns the configuration under which it is shown.
func openPage(cfg Config, program Program) (*page, Config, error) {
	p := &page{log: cfg.EventLog, slots: cfg.Slots, rates: make([]float64, cfg.Executors)}
	p.info.Id, p.info.Job, p.info.State, p.info.SubmittedUnixNs = runID, program.Name, "running", time.Now().UnixNano()
	p.info.Args = os.Args[1:]
	removeLeft(cfg.DataDir)
	if p.log == "" {
		if err := disk.MkdirAll(cfg.DataDir, 0o755); err != nil {
			return nil, cfg, fault.New(fault.NoResources, "show", "the run", err)
		}
		p.log, p.own = filepath.Join(cfg.DataDir, fmt.Sprintf("page-%d.log", os.Getpid())), true
		cfg.EventLog = p.log
	}
	sessions := web.NewSessions("volley_run", nil)
	c := console.New(console.Config{Name: program.Name, Sessions: sessions,
		Source: func() console.Source { return p }})
	var err error
	p.server, err = web.Serve(web.Config{Addr: cfg.UI, Routes: c.Routes(), Login: web.EnterPath, Logger: cfg.Logger,
		Refusal: func(r *http.Request) (int, string) {
			if c.Open(r) {
				return 0, ""
			}
			return http.StatusUnauthorized, "open the link that the run has printed; it works once"
		}})
	if err != nil {
		return nil, cfg, err
	}
	before := cfg.Observer
	cfg.Observer = func(r *driver.StepReport) {
		p.saw(r)
		if before != nil {
			before(r)
		}
	}
	fmt.Fprintf(os.Stderr, "volley: the run is shown at http://%s%s (the link works once; the page goes when the run "+
		"ends: --event-log keeps it for volley history)\n", p.server.Addr(), sessions.Link(web.Grant{Change: true}))
	return p, cfg, nil
}

// removeLeft removes logs of pages whose processes were killed.
func removeLeft(dir string) {
	for _, path := range disk.Glob(dir, "page-*.log") {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(path), "page-%d.log", &pid); err == nil &&
			errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.Remove(path)
		}
	}
}

// close ends the page.
func (p *page) close() {
	_ = p.server.Close()
	if p.own {
		_ = os.Remove(p.log)
	}
}

func (p *page) saw(r *driver.StepReport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info.Step = uint64(max(0, r.Number))
	p.rates = append(p.rates[:0], r.Rates...)
	if r.Placement != nil {
		p.holds = make([]uint64, len(r.Executors))
		for _, e := range r.Placement {
			if e >= 0 {
				p.holds[e]++
			}
		}
	}
}

// Jobs returns the one run.
func (p *page) Jobs() []*wire.JobInfo {
	i, err := p.Job(runID)
	if err != nil {
		return nil
	}
	return []*wire.JobInfo{i}
}

// Job returns the one run.
func (p *page) Job(id string) (*wire.JobInfo, error) {
	if id != runID {
		return nil, status.Errorf(codes.NotFound, "there is no job %q: this page is of one, %s", id, runID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := &wire.JobInfo{Id: p.info.Id, Job: p.info.Job, State: p.info.State, Step: p.info.Step, Args: p.info.Args,
		SubmittedUnixNs: p.info.SubmittedUnixNs}
	if p.job != nil {
		i.Actions, i.Standing = actionsOf(p.job.cluster.Running()), p.job.stands.now()
	}
	return i, nil
}

// follow shows how a job stands.
func (p *page) follow(j *Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.job = j
}

// Executors returns those of this process.
func (p *page) Executors() (all []*wire.ExecutorInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e, rate := range p.rates {
		splits := uint64(0)
		if e < len(p.holds) {
			splits = p.holds[e]
		}
		all = append(all, &wire.ExecutorInfo{Name: fmt.Sprintf("executor-%d", e), State: "alive",
			Slots: uint32(p.slots), Splits: splits, RowsPerSecond: rate, SinceUnixNs: p.info.SubmittedUnixNs})
	}
	return all
}

// Alarms returns none: what goes wrong in a process ends it.
func (p *page) Alarms() []string { return nil }

// EventLog returns the path of the run's log.
func (p *page) EventLog(id string) (string, error) {
	if _, err := p.Job(id); err != nil {
		return "", err
	}
	return p.log, nil
}

// Output returns where it is: what a process prints is on its own terminal.
func (p *page) Output(string, string, int64) ([]byte, error) {
	return []byte("What this run prints is where it was started.\n"), nil
}

// Stacks returns those of this process.
func (p *page) Stacks(_ *http.Request, id string) ([]*wire.Inspection, error) {
	if _, err := p.Job(id); err != nil {
		return nil, err
	}
	return []*wire.Inspection{{Data: stacks()}}, nil
}

// Act cancels the run, as ctrl-C does.
func (p *page) Act(_ *http.Request, do console.Action, id string) error {
	if _, err := p.Job(id); err != nil {
		return err
	}
	if do != console.Cancel {
		return status.Error(codes.FailedPrecondition, "the run goes on: start it again with --resume once it has ended")
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return self.Signal(os.Interrupt)
}
