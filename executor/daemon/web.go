package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/web"
	"github.com/volley-engine/volley/internal/wire"
)

// What an executor shows over HTTP. Who may read it the driver knows: it has the read tokens, and which certificates
// were revoked.

const (
	// askWait bounds how long the driver is waited for that is to say who may read.
	askWait = 2 * time.Second
	// readsFor is how long who could read may go on to while the driver does not answer.
	readsFor = 10 * time.Minute
	// alive is where the executor says that it lives, whether or not the driver does.
	alive = "/healthz"
	// leastFree is how many bytes must be free where the executor keeps its packs, for it to be ready.
	leastFree = 64 << 20
)

// serveHTTP serves health and metrics, if they are asked for.
func (d *Daemon) serveHTTP() (stop func(), err error) {
	if d.cfg.HTTP == "" {
		return func() {}, nil
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(shown{d}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s, err := web.Serve(web.Config{Addr: d.cfg.HTTP, ID: d.cfg.Party.ID, Refusal: d.readers.refusal, Logger: d.log,
		Routes: []web.Route{{Path: alive, Serve: web.Alive}, {Path: "/readyz", Serve: d.ready},
			{Path: "/metrics", Serve: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP}}})
	if err != nil {
		return nil, err
	}
	d.web = s.Addr()
	return func() { _ = s.Close() }, nil
}

// HTTPAddr returns where health and metrics are served; empty where they are not.
func (d *Daemon) HTTPAddr() string { return d.web }

// ready answers whether runners can be started here.
func (d *Daemon) ready(w http.ResponseWriter, _ *http.Request) {
	var why []string
	if !d.connected.Load() {
		why = append(why, "it has no connection to the driver at "+d.cfg.Driver)
	}
	if unfit, _ := d.unfit.Load().(string); unfit != "" {
		why = append(why, unfit)
	}
	free, err := disk.Free(d.cfg.DataDir)
	switch {
	case err != nil:
		why = append(why, "the data directory cannot be looked at: "+err.Error())
	case free < leastFree:
		why = append(why, fmt.Sprintf("%d MiB are free in the data directory, less than %d", free>>20, leastFree>>20))
	}
	web.Ready(w, why, map[string]any{"driver": d.cfg.Driver})
}

// readers are who may read what an executor shows.
type readers struct {
	ask func(context.Context, *wire.ReadsRequest) (*wire.ReadsReply, error)
	now func() time.Time

	mu    sync.Mutex
	could map[[sha256.Size]byte]time.Time // when the driver last said so, by what was shown
}

// refusal returns why a request may not be answered.
func (r *readers) refusal(req *http.Request) (code int, why string) {
	asked := &wire.ReadsRequest{Token: web.BearerOf(req)}
	if asked.Token == "" && req.TLS != nil {
		if p, ok := trust.PeerOf(*req.TLS); ok {
			asked.Name, asked.Serial, asked.IssuedUnixNs = p.Name.String(), p.Serial, p.Issued.UnixNano()
		}
	}
	if asked.Token == "" && asked.Serial == "" {
		return http.StatusUnauthorized, web.Unauthenticated
	}
	return r.mayRead(req.Context(), asked, req.URL.Path == alive)
}

// mayRead returns why who shows something may not read; harmless says no more than that the executor answers.
func (r *readers) mayRead(ctx context.Context, asked *wire.ReadsRequest, harmless bool) (code int, why string) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	reply, err := r.ask(ctx, asked)
	key := sha256.Sum256([]byte(asked.Token + "\n" + asked.Serial))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && reply.May:
		r.note(key)
		return 0, ""
	case err == nil:
		delete(r.could, key)
		return http.StatusUnauthorized, web.Unauthenticated
	case status.Code(err) == codes.Unimplemented:
		return http.StatusServiceUnavailable, "the driver is of an earlier version, and does not say who may read: " +
			"upgrade it"
	case r.now().Sub(r.could[key]) < readsFor || harmless:
		return 0, ""
	}
	return http.StatusServiceUnavailable, "the driver does not answer, which knows who may read: " +
		status.Convert(err).Message()
}

// readersMost bounds how many are remembered.
const readersMost = 1000

// note remembers that a client could read; r.mu is held.
func (r *readers) note(key [sha256.Size]byte) {
	now := r.now()
	if len(r.could) >= readersMost {
		for k, at := range r.could {
			if now.Sub(at) >= readsFor {
				delete(r.could, k)
			}
		}
	}
	if len(r.could) < readersMost {
		r.could[key] = now
	}
}

// mayRead asks the driver.
func (d *Daemon) mayRead(ctx context.Context, req *wire.ReadsRequest) (*wire.ReadsReply, error) {
	d.mu.Lock()
	client := d.client
	d.mu.Unlock()
	switch {
	case client == nil || !d.connected.Load():
		return nil, errors.New("there is no connection")
	case !d.asksWhoReads():
		return nil, status.Error(codes.Unimplemented, "it is of an earlier version")
	}
	return client.Reads(ctx, req)
}

// asksWhoReads reports whether the driver can be asked who may read.
func (d *Daemon) asksWhoReads() bool {
	v := d.spoken.Load()
	return v != nil && version.AtLeast(*v, "volley/6")
}

// renewToServe renews a certificate by which nothing can be served, as those are that a driver of an earlier version
// has signed.
func (d *Daemon) renewToServe(ctx context.Context, client wire.ClusterClient) {
	if d.cfg.HTTP == "" && d.cfg.Flight == "" || d.cfg.Party.ID == nil || d.cfg.Party.ID.Serves() {
		return
	}
	if !d.asksWhoReads() {
		d.log.Warn("clients that check certificates cannot read what is served here before the driver is upgraded",
			"http", d.web, "flight", d.location)
		return
	}
	go d.renew(ctx, client)
}

// shown collects what is so when metrics are asked for.
type shown struct{ d *Daemon }

// shownMetrics are the metrics of shown, by name.
var shownMetrics = func() map[string]*prometheus.Desc {
	out := map[string]*prometheus.Desc{}
	for name, d := range map[string]struct {
		help   string
		labels []string
	}{
		"connected":           {"Whether the executor has a connection to the driver: 1, or 0.", nil},
		"fit":                 {"Whether runners can be started: 1, or 0.", nil},
		"slots":               {"Tasks at a time.", nil},
		"runners":             {"Processes of jobs that run.", nil},
		"splits":              {"Splits that the runners hold.", nil},
		"rows_per_second":     {"Speed of their last steps.", nil},
		"memory_bytes":        {"Resident memory of the executor and its runners.", nil},
		"disk_bytes":          {"Bytes of packs in the data directory.", nil},
		"disk_free_bytes":     {"Free bytes where the executor keeps its packs.", nil},
		"runner_starts_total": {"Processes of jobs that were started since the executor was.", nil},
		"build_info": {"Versions of the module, of the protocol and of Go; always 1.", []string{"version",
			"protocol", "go"}},
	} {
		out[name] = prometheus.NewDesc("volley_node_"+name, d.help, d.labels, nil)
	}
	return out
}()

// Describe names the metrics.
func (s shown) Describe(out chan<- *prometheus.Desc) {
	for _, d := range shownMetrics {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s shown) Collect(out chan<- prometheus.Metric) {
	gauge := func(name string, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(shownMetrics[name], prometheus.GaugeValue, v, labels...)
	}
	truth := func(name string, is bool) {
		if is {
			gauge(name, 1)
		} else {
			gauge(name, 0)
		}
	}
	b := s.d.state()
	truth("connected", s.d.connected.Load())
	truth("fit", b.Unfit == "")
	gauge("slots", float64(s.d.cfg.Slots))
	s.d.mu.Lock()
	runners := len(s.d.runners)
	s.d.mu.Unlock()
	gauge("runners", float64(runners))
	gauge("splits", float64(b.Splits))
	gauge("rows_per_second", b.RowsPerSecond)
	gauge("memory_bytes", float64(b.Memory))
	gauge("disk_bytes", float64(b.Disk))
	if free, err := disk.Free(s.d.cfg.DataDir); err == nil {
		gauge("disk_free_bytes", float64(free))
	}
	out <- prometheus.MustNewConstMetric(shownMetrics["runner_starts_total"], prometheus.CounterValue,
		float64(s.d.started.Load()))
	gauge("build_info", 1, version.Module, version.Newest, runtime.Version())
}
