package daemon

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
)

// route is one address of the REST interface.
type route struct {
	path  string
	serve func(d *Daemon, w http.ResponseWriter, r *http.Request)
}

// routes are all of them, each by GET; docs/openapi.yaml describes them.
var routes = []route{
	{"/api/v1/jobs", (*Daemon).getJobs},
	{"/api/v1/jobs/{id}", (*Daemon).getJob},
	{"/api/v1/executors", (*Daemon).getExecutors},
	{"/healthz", (*Daemon).getHealth},
	{"/readyz", (*Daemon).getReady},
	{"/metrics", (*Daemon).getMetrics},
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
func (d *Daemon) serveHTTP() error {
	if d.cfg.HTTP == "" {
		return nil
	}
	if err := wire.OnlyLoopback("listen on", d.cfg.HTTP); err != nil {
		return err
	}
	l, err := net.Listen("tcp", d.cfg.HTTP)
	if err != nil {
		return fault.New(fault.NoResources, "listen on", d.cfg.HTTP, err).WithHint("choose another --http")
	}
	d.webAddr = l.Addr().String()
	listener := wire.NewListener(l)
	d.web = &http.Server{Handler: d.handler(listener), ReadTimeout: requestWait, WriteTimeout: answerWait,
		IdleTimeout: idleWait, MaxHeaderBytes: headerMost}
	d.wg.Go(func() { _ = d.web.Serve(listener) })
	return nil
}

// HTTPAddr returns where REST and metrics are served; empty where they are not.
func (d *Daemon) HTTPAddr() string { return d.webAddr }

// handler refuses requests without a token before it looks at the route.
func (d *Daemon) handler(listener *wire.Listener) http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc("GET "+r.path, func(w http.ResponseWriter, req *http.Request) { r.serve(d, w, req) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) { refuseRoute(mux, w, req) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case !local(r.Host) || r.Header.Get("Origin") != "":
			refuse(w, http.StatusForbidden, "this interface is not for pages of other sites")
		case subtle.ConstantTimeCompare([]byte(token), []byte(d.token)) != 1:
			refuse(w, http.StatusUnauthorized, "the token is missing or not this driver's: send it as Authorization: "+
				"Bearer TOKEN")
		default:
			listener.Authenticated(r.RemoteAddr)
			mux.ServeHTTP(w, r)
		}
	})
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

func (d *Daemon) getHealth(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]string{"status": "ok"})
}

// getReady reports whether jobs would run.
func (d *Daemon) getReady(w http.ResponseWriter, _ *http.Request) {
	if d.ctx.Err() != nil {
		refuse(w, http.StatusServiceUnavailable, "the driver is going down")
		return
	}
	answer(w, map[string]any{"status": "ok", "executors": len(d.members.all())})
}

func (d *Daemon) getMetrics(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(d.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}
