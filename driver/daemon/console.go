package daemon

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/console"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/web"
	"github.com/volley-engine/volley/internal/wire"
)

// openConsole makes what browsers and terminals are shown. A pasted token lets a browser read.
func (r *Replica) openConsole() {
	r.sessions = web.NewSessions("volley_driver", func(token string) (web.Grant, bool) {
		if r.admission.maySubmit(token) {
			return web.Grant{Change: true, Holds: func() bool { return r.admission.maySubmit(token) }}, true
		}
		holds := func() bool { return r.admission.mayRead(token) }
		return web.Grant{Holds: holds}, holds()
	})
	r.console = console.New(console.Config{Name: "Volley", Sessions: r.sessions, Away: r.whereLed, Known: r.certified,
		May: r.mayRead,
		Source: func() console.Source {
			if d := r.present.Load(); d != nil {
				return shown{d}
			}
			return nil
		}})
}

// whereLed returns where what is not shown here is.
func (r *Replica) whereLed() string {
	if leader := r.journal.Leader().Address; leader != "" {
		return fmt.Sprintf("this driver does not lead: the page is at the one at %s, under its own --http", leader)
	}
	return "no driver leads now"
}

// PageLink returns a link to the page, which works once. On a cluster of one user its reader is this user, who may do
// what is done there; on others who has it may read.
func (r *Replica) PageLink() string {
	if r.webAddr == "" {
		return ""
	}
	scheme := "https://"
	if r.admission.self.ID == nil {
		scheme = "http://"
	}
	return scheme + r.webAddr + r.sessions.Link(web.Grant{Change: r.admission.self.ID == nil})
}

// certified lets a browser in that shows a certificate, and reports whether it does.
func (r *Replica) certified(req *http.Request) (web.Grant, bool) {
	if req.TLS == nil {
		return web.Grant{}, false
	}
	p, ok := trust.PeerOf(*req.TLS)
	if !ok || !r.admission.knows(p) || !slices.Contains(readers, p.Name.Role) {
		return web.Grant{}, false
	}
	return web.Grant{Change: p.Name.Role != trust.Read, Holds: func() bool { return r.admission.knows(p) }}, true
}

// shown is a driver that leads, as its page shows it.
type shown struct{ d *Daemon }

func (s shown) Jobs() (all []*wire.JobInfo) {
	for _, w := range s.d.jobs.shown() {
		info, _ := w.snapshot()
		all = append(all, info)
	}
	return all
}

func (s shown) Job(id string) (*wire.JobInfo, error) {
	w, err := s.d.jobs.find(id)
	if err != nil {
		return nil, err
	}
	info, _ := w.snapshot()
	return info, nil
}

func (s shown) Executors() (all []*wire.ExecutorInfo) {
	for _, m := range s.d.members.known() {
		all = append(all, m.info())
	}
	return all
}

func (s shown) Alarms() []string { return s.d.unready() }

func (s shown) EventLog(job string) (string, error) {
	w, err := s.d.jobs.find(job)
	if err != nil {
		return "", err
	}
	return filepath.Join(w.dir, driver.EventsName), nil
}

func (s shown) Output(job, executor string, most int64) (out []byte, err error) {
	w, err := s.d.jobs.find(job)
	if err != nil {
		return nil, err
	}
	path, err := s.d.logOf(s.d.ctx, w, executor)
	if err != nil {
		return nil, err
	}
	_, err = readLog(path, max(0, logEnd(path)-most), func(part []byte, _ int64) error {
		out = append(out, part...)
		return nil
	})
	return out, err
}

// Stacks asks a job's processes, as a call of a client would, under the same rules.
func (s shown) Stacks(r *http.Request, job string) ([]*wire.Inspection, error) {
	all := &gatheredStacks{ctx: callerContext(r)}
	if err := s.d.allowed(wire.CallerOf(all.ctx), wire.Cluster_Inspect_FullMethodName); err != nil {
		return nil, err
	}
	err := s.d.Inspect(&wire.InspectRequest{Id: job}, all)
	return all.got, err
}

// gatheredStacks is a stream of answers that ends here.
type gatheredStacks struct {
	grpc.ServerStream
	ctx context.Context
	got []*wire.Inspection
}

func (g *gatheredStacks) Context() context.Context { return g.ctx }

// Send keeps an answer.
func (g *gatheredStacks) Send(a *wire.Inspection) error {
	g.got = append(g.got, a)
	return nil
}

// Act does what a call of a client would, under the same rules and as noted.
func (s shown) Act(r *http.Request, do console.Action, job string) (err error) {
	ctx := callerContext(r)
	method := map[console.Action]string{console.Cancel: wire.Cluster_Cancel_FullMethodName,
		console.Resume: wire.Cluster_Resume_FullMethodName}[do]
	if err := s.d.allowed(wire.CallerOf(ctx), method); err != nil {
		return err
	}
	switch do {
	case console.Cancel:
		_, err = s.d.Cancel(ctx, &wire.CancelRequest{Id: job})
	case console.Resume:
		_, err = s.d.Resume(ctx, &wire.ResumeRequest{Id: job})
	}
	s.d.did(ctx, shortMethod(method), job, err)
	return err
}

// Page returns a link to the page: who may read by a call may do so in a browser.
func (d *Daemon) Page(context.Context, *wire.PageRequest) (*wire.PageReply, error) {
	link := d.PageLink()
	if link == "" {
		return nil, status.Error(codes.FailedPrecondition, "the driver that leads has no page: start it with --http")
	}
	return &wire.PageReply{Link: link}, nil
}

// Look shows how a job goes, in characters.
func (d *Daemon) Look(_ context.Context, req *wire.LookRequest) (*wire.LookReply, error) {
	run, err := d.console.Run(shown{d}, req.Id)
	switch {
	case fault.KindOf(err) == fault.Corrupt:
		return nil, status.Error(codes.DataLoss, err.Error())
	case err != nil:
		return nil, err
	case !run.Shows():
		return &wire.LookReply{}, nil
	}
	return &wire.LookReply{Text: run.Text(int(min(req.Columns, mostColumns)))}, nil
}

// mostColumns is how wide a terminal is taken to be at most.
const mostColumns = 400

// callerContext returns the context of a call by who has sent a request: of a certificate, or on loopback of the user
// whose driver it is.
func callerContext(r *http.Request) context.Context {
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // the server's own
	p := &peer.Peer{Addr: net.TCPAddrFromAddrPort(from), AuthInfo: wire.SameUser{}}
	if r.TLS != nil {
		p.AuthInfo = credentials.TLSInfo{State: *r.TLS}
	}
	return peer.NewContext(r.Context(), p)
}
