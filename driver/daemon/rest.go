package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// route is one address of the REST interface.
type route struct {
	path string
	// leads serves it at the driver that leads, to which the others pass it on; own at each for itself.
	leads func(d *Daemon, w http.ResponseWriter, r *http.Request)
	own   func(r *Replica, w http.ResponseWriter, req *http.Request)
}

// routes are all of them, each by GET; docs/openapi.yaml describes them.
var routes = []route{
	{path: "/api/v1/jobs", leads: (*Daemon).getJobs},
	{path: "/api/v1/jobs/{id}", leads: (*Daemon).getJob},
	{path: "/api/v1/executors", leads: (*Daemon).getExecutors},
	{path: "/healthz", own: (*Replica).getHealth},
	{path: "/readyz", own: (*Replica).getReady},
	{path: "/metrics", own: (*Replica).getMetrics},
}

// What a client of the REST interface may take: to send its request, to take its answer,
// and between two requests; and how large a request's headers may be.
const (
	requestWait = 10 * time.Second
	answerWait  = time.Minute
	idleWait    = time.Minute
	headerMost  = 16 << 10
)

// serveHTTP opens the REST interface, if one is configured.
func (r *Replica) serveHTTP() error {
	if r.cfg.HTTP == "" {
		return nil
	}
	secure := r.admission.self.ID != nil
	if err := wire.OnlyLoopback("listen on", r.cfg.HTTP); err != nil && !secure {
		return err
	}
	l, err := wire.Listen(r.cfg.HTTP)
	if err != nil {
		return err
	}
	r.webAddr = l.Addr().String()
	r.web = &http.Server{Handler: r.handler(), ReadTimeout: requestWait, WriteTimeout: answerWait,
		IdleTimeout: idleWait, MaxHeaderBytes: headerMost, ErrorLog: r.log.Named("http").StandardLogger(
			&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{},
				c)
		}}
	if !secure {
		r.tasks.Go(func() { _ = r.web.Serve(l) })
		return nil
	}
	r.web.TLSConfig = r.admission.self.ID.Server([]string{"h2", "http/1.1"})
	r.tasks.Go(func() { _ = r.web.ServeTLS(l, "", "") })
	return nil
}

// connKey is the key of a request's connection.
type connKey struct{}

// HTTPAddr returns where REST and metrics are served; empty where they are not.
func (r *Replica) HTTPAddr() string { return r.webAddr }

// handler refuses requests of unauthenticated clients before it looks at the route.
func (r *Replica) handler() http.Handler {
	mux := http.NewServeMux()
	for _, at := range routes {
		mux.HandleFunc("GET "+at.path, func(w http.ResponseWriter, req *http.Request) { r.answer(at, w, req) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) { refuseRoute(mux, w, req) })
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.TLS == nil && !local(req.Host) || req.Header.Get("Origin") != "":
			refuse(w, http.StatusForbidden, "this interface is not for pages of other sites")
		case !r.mayRead(req):
			r.audit.refused(auditLine{From: req.RemoteAddr, Call: req.Method + " " + req.URL.Path,
				Refused: "neither a read token nor a certificate that may read"})
			refuse(w, http.StatusUnauthorized, "this needs a read token of this driver, as Authorization: Bearer "+
				"TOKEN; volley token create --role read makes one")
		default:
			if c, ok := req.Context().Value(connKey{}).(net.Conn); ok {
				wire.Authenticated(c)
			}
			mux.ServeHTTP(w, req)
		}
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
	given, err := trust.ParseToken(strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "))
	if err != nil {
		return false
	}
	good := false
	r.admission.read(func(a *Access) {
		t, ok := a.token(given.Secret, time.Now())
		good = ok && t.Bearer
	})
	return good
}

// local reports whether a Host header names this machine, which defeats DNS
// rebinding by pages of other sites.
func local(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// refuseRoute answers a request that matches no route with the reason.
func refuseRoute(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	get := r.Clone(r.Context())
	get.Method = http.MethodGet
	if _, pattern := mux.Handler(get); pattern != "/" {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "this interface only shows: use GET")
		return
	}
	var there []string
	for _, r := range routes {
		there = append(there, r.path)
	}
	refuse(w, http.StatusNotFound, fmt.Sprintf("there is no %s: there are %s", r.URL.Path, strings.Join(there, ", ")))
}

func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (d *Daemon) jobViews() []JobView {
	out := []JobView{}
	for _, w := range d.jobs.all() {
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

func (d *Daemon) getJobs(w http.ResponseWriter, _ *http.Request) { answer(w, d.jobViews()) }

func (d *Daemon) getJob(w http.ResponseWriter, r *http.Request) {
	job, err := d.jobs.find(r.PathValue("id"))
	if err != nil {
		refuse(w, http.StatusNotFound, status.Convert(err).Message())
		return
	}
	answer(w, ViewJob(job.described()))
}

func (d *Daemon) getExecutors(w http.ResponseWriter, _ *http.Request) { answer(w, d.executorViews()) }

func (r *Replica) getHealth(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]string{"status": "ok"})
}

// leastFree is how many bytes must be free where the driver keeps its data, for it to be ready.
const leastFree = 64 << 20

// getReady reports whether the driver takes jobs in: whether its journal answers, and its disk has room. How many
// executors are fit it says, and that none is is no reason not to be ready: they reach it only where it is.
func (r *Replica) getReady(w http.ResponseWriter, _ *http.Request) {
	var why []string
	d := r.present.Load()
	switch {
	case d == nil && r.journal.Leader().Address == "":
		why = append(why, "no driver leads: a majority of "+strings.Join(r.drivers(), ", ")+" does not answer")
	case d != nil && d.ctx.Err() != nil:
		why = append(why, "the driver is going down")
	}
	if late := r.journal.Late(); late > 0 {
		why = append(why, fmt.Sprintf("the journal has not answered for %v", late.Round(time.Second)))
	}
	free, err := freeBytes(r.cfg.DataDir)
	if err != nil {
		why = append(why, "the data directory cannot be looked at: "+err.Error())
	} else if free < leastFree {
		why = append(why, fmt.Sprintf("%d MiB are free in the data directory, less than %d", free>>20, leastFree>>20))
	}
	if len(why) > 0 {
		refuse(w, http.StatusServiceUnavailable, strings.Join(why, "; "))
		return
	}
	if d == nil {
		answer(w, map[string]any{"status": "ok", "leader": r.journal.Leader().Address})
		return
	}
	answer(w, map[string]any{"status": "ok", "executors": d.members.states()["alive"]})
}

func (r *Replica) getMetrics(w http.ResponseWriter, req *http.Request) {
	promhttp.HandlerFor(r.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP(w, req)
}
