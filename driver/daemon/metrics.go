package daemon

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/volley-engine/volley/internal/wire"
)

// metrics are a driver's metrics for Prometheus.
type metrics struct {
	registry  *prometheus.Registry
	steps     prometheus.Counter
	cut       prometheus.Counter
	share     prometheus.Histogram
	neff      prometheus.Gauge
	took      prometheus.Histogram
	wait      prometheus.Histogram
	bytes     prometheus.Counter
	exchanges prometheus.Counter
	dropped   *prometheus.CounterVec
	rows      prometheus.Counter
	states    states
}

// states counts jobs and executors by state, at each request.
type states struct {
	jobs, executors *prometheus.Desc
	look            func() (jobs, executors map[string]int)
}

// Describe names the metrics.
func (s states) Describe(out chan<- *prometheus.Desc) {
	out <- s.jobs
	out <- s.executors
}

// Collect implements prometheus.Collector.
func (s states) Collect(out chan<- prometheus.Metric) {
	jobs, executors := s.look()
	for state, n := range jobs {
		out <- prometheus.MustNewConstMetric(s.jobs, prometheus.GaugeValue, float64(n), state)
	}
	for state, n := range executors {
		out <- prometheus.MustNewConstMetric(s.executors, prometheus.GaugeValue, float64(n), state)
	}
}

func newMetrics(look func() (jobs, executors map[string]int)) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "volley_" + name, Help: help})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "volley_" + name, Help: help, Buckets: buckets})
	}
	byState := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("volley_"+name, help, []string{"state"}, nil)
	}
	seconds := prometheus.ExponentialBuckets(0.001, 2, 18)
	m := &metrics{
		registry: prometheus.NewRegistry(),
		steps:    counter("steps_total", "Training steps committed."),
		cut:      counter("steps_cut_total", "Training steps that ended before every row was processed."),
		share: histogram("step_share", "Share of all rows that a step merged.",
			prometheus.LinearBuckets(0.1, 0.1, 10)),
		neff: prometheus.NewGauge(prometheus.GaugeOpts{Name: "volley_step_neff",
			Help: "Effective sample size of the last step."}),
		took:      histogram("step_seconds", "Duration of a step.", seconds),
		wait:      histogram("step_wait_seconds", "Part of a step after its first finisher.", seconds),
		bytes:     counter("step_bytes_total", "Bytes of parameters and partial results."),
		exchanges: counter("exchanges_total", "Splits that changed executor by exchange."),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "volley_dropped_reports_total",
			Help: "Reports and results that did not become part of a step, by reason."}, []string{"reason"}),
		rows:   counter("dropped_rows_total", "Rows folded whose result was not merged."),
		states: states{byState("jobs", "Jobs by state."), byState("executors", "Executors by state."), look},
	}
	m.registry.MustRegister(m.steps, m.cut, m.share, m.neff, m.took, m.wait, m.bytes, m.exchanges, m.dropped, m.rows,
		m.states,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, reason := range []string{"stale", "late", "mismatched"} {
		m.dropped.WithLabelValues(reason)
	}
	return m
}

// committed counts a step; last is the job's commit before it, whose sums are
// counted already.
func (m *metrics) committed(last, c *wire.Commit) {
	m.steps.Inc()
	if c.Cut {
		m.cut.Inc()
	}
	m.share.Observe(c.Share)
	m.neff.Set(c.NEff)
	m.took.Observe(time.Duration(c.TookNs).Seconds())
	m.wait.Observe(time.Duration(c.WaitNs).Seconds())
	m.bytes.Add(float64(c.Bytes))
	m.exchanges.Add(more(last.Moves, c.Moves))
	m.dropped.WithLabelValues("stale").Add(more(last.StaleReports, c.StaleReports))
	m.dropped.WithLabelValues("late").Add(more(last.LateResults, c.LateResults))
	m.dropped.WithLabelValues("mismatched").Add(more(last.Mismatched, c.Mismatched))
	m.rows.Add(more(last.DroppedRows, c.DroppedRows))
}

func more(before, now uint64) float64 {
	if now < before {
		return float64(now)
	}
	return float64(now - before)
}
