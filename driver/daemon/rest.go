package daemon

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/web"
	"github.com/volley-engine/volley/internal/wire"
)

// route is one address of the REST interface.
type route struct {
	path string
	// does is what a POST does at the driver that leads, which only those may send who may make the call.
	does func(d *Daemon, w http.ResponseWriter, r *http.Request)
	call string
	// leads serves it at the driver that leads, to which the others pass it on; own at each for itself.
	leads func(d *Daemon, w http.ResponseWriter, r *http.Request)
	own   func(r *Replica, w http.ResponseWriter, req *http.Request)
}

// routes are all of them; docs/openapi.yaml describes them.
var routes = []route{
	{path: "/api/v1/jobs", leads: (*Daemon).getJobs, does: (*Daemon).postJob,
		call: wire.Cluster_Submit_FullMethodName},
	{path: "/api/v1/jobs/{id}", leads: (*Daemon).getJob},
	{path: "/api/v1/jobs/{id}/cancel", does: (*Daemon).postCancel, call: wire.Cluster_Cancel_FullMethodName},
	{path: "/api/v1/jobs/{id}/resume", does: (*Daemon).postResume, call: wire.Cluster_Resume_FullMethodName},
	{path: "/api/v1/jobs/{id}/log", leads: (*Daemon).getLog},
	{path: "/api/v1/jobs/{id}/events", leads: (*Daemon).getEvents},
	{path: "/api/v1/jobs/{id}/event-log", leads: (*Daemon).getEventLog},
	{path: "/api/v1/executors", leads: (*Daemon).getExecutors},
	{path: "/healthz", own: (*Replica).getHealth},
	{path: "/readyz", own: (*Replica).getReady},
	{path: "/metrics", own: (*Replica).getMetrics},
}

// serveHTTP opens the REST interface, if one is configured.
func (r *Replica) serveHTTP() (err error) {
	if r.openConsole(); r.cfg.HTTP == "" {
		return nil
	}
	cfg := web.Config{Addr: r.cfg.HTTP, ID: r.admission.self.ID, Refusal: r.refusal, Logger: r.log,
		Login: web.EnterPath}
	for _, at := range routes {
		cfg.Routes = append(cfg.Routes, r.routed(at))
	}
	cfg.Routes = append(cfg.Routes, r.console.Routes()...)
	if r.web, err = web.Serve(cfg); err == nil {
		r.webAddr = r.web.Addr()
	}
	return err
}

// routed returns what is served at an address.
func (r *Replica) routed(at route) web.Route {
	out := web.Route{Path: at.path}
	if at.leads != nil || at.own != nil {
		out.Serve = func(w http.ResponseWriter, req *http.Request) { r.answer(at, w, req) }
	}
	if at.does != nil {
		out.Do = func(w http.ResponseWriter, req *http.Request) { r.carryOut(at, w, req) }
	}
	return out
}

// HTTPAddr returns where REST and metrics are served; empty where they are not.
func (r *Replica) HTTPAddr() string { return r.webAddr }

// refusal returns why a request may not be answered.
func (r *Replica) refusal(req *http.Request) (code int, why string) {
	if r.console.Open(req) && !ofPrograms(req.URL.Path) || r.mayRead(req) {
		return 0, ""
	}
	r.audit.refused(auditLine{From: req.RemoteAddr, Call: req.Method + " " + req.URL.Path,
		Refused: "neither a read token nor a certificate that may read"})
	return http.StatusUnauthorized, web.Unauthenticated
}

// ofPrograms reports whether a path is of what programs ask for: a browser's session is not for it.
func ofPrograms(path string) bool {
	return slices.ContainsFunc(routes, func(at route) bool {
		fixed, _, _ := strings.Cut(at.path, "{")
		return path == at.path || fixed != at.path && strings.HasPrefix(path, fixed)
	})
}

// mayRead reports whether a request has a read token, or shows a certificate that lets its holder read.
func (r *Replica) mayRead(req *http.Request) bool {
	if req.TLS != nil {
		p, ok := trust.PeerOf(*req.TLS)
		if ok && r.admission.knows(p) && slices.Contains(readers, p.Name.Role) {
			return true
		}
		if serial := req.Header.Get(serialHeader); ok && p.Name.Role == trust.Driver && serial != "" {
			revoked := false
			r.admission.read(func(a *Access) { revoked = a.revoked(serial) })
			return r.admission.knows(p) && !revoked
		}
	}
	return r.admission.mayRead(web.BearerOf(req))
}

func (d *Daemon) jobViews() []JobView {
	out := []JobView{}
	for _, w := range d.jobs.shown() {
		out = append(out, ViewJob(w.described()))
	}
	return out
}

func (d *Daemon) executorViews() []ExecutorView {
	out := []ExecutorView{}
	for _, m := range d.members.known() {
		out = append(out, ViewExecutor(m.info()))
	}
	return out
}

func (d *Daemon) getJobs(w http.ResponseWriter, _ *http.Request) { web.Answer(w, d.jobViews()) }

func (d *Daemon) getJob(w http.ResponseWriter, r *http.Request) {
	job, err := d.jobs.find(r.PathValue("id"))
	if err != nil {
		web.Refuse(w, http.StatusNotFound, status.Convert(err).Message())
		return
	}
	web.Answer(w, ViewJob(job.described()))
}

func (d *Daemon) getExecutors(w http.ResponseWriter, _ *http.Request) {
	web.Answer(w, d.executorViews())
}

func (r *Replica) getHealth(w http.ResponseWriter, req *http.Request) { web.Alive(w, req) }

// leastFree is how many bytes must be free where the driver keeps its data, for it to be ready.
const leastFree = 64 << 20

// getReady reports whether the driver takes jobs in. How many executors are fit it says, and that none is is no reason
// not to be ready: they reach it only where it is.
func (r *Replica) getReady(w http.ResponseWriter, _ *http.Request) {
	says := map[string]any{}
	if d := r.present.Load(); d == nil {
		says["leader"] = r.journal.Leader().Address
	} else {
		says["executors"] = d.members.states()["alive"]
	}
	web.Ready(w, r.unready(), says)
}

// unready returns why the driver takes no jobs in: its journal does not answer, or its disk has no room.
func (r *Replica) unready() (why []string) {
	d := r.present.Load()
	switch {
	case d == nil && r.journal.Leader().Address == "":
		why = append(why, "no driver leads: a majority of "+strings.Join(r.drivers(), ", ")+" does not answer, or "+
			"cannot lead")
	case d != nil && d.ctx.Err() != nil:
		why = append(why, "the driver is going down")
	}
	if unable := r.unable.Load(); unable != nil && d == nil {
		why = append(why, "this driver cannot lead: "+*unable)
	}
	if late := r.journal.Late(); late > 0 {
		why = append(why, fmt.Sprintf("the journal has not answered for %v", late.Round(time.Second)))
	}
	free, err := disk.Free(r.cfg.DataDir)
	if err != nil {
		why = append(why, "the data directory cannot be looked at: "+err.Error())
	} else if free < leastFree {
		why = append(why, fmt.Sprintf("%d MiB are free in the data directory, less than %d", free>>20, leastFree>>20))
	}
	return why
}

func (r *Replica) getMetrics(w http.ResponseWriter, req *http.Request) {
	promhttp.HandlerFor(r.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP(w, req)
}
