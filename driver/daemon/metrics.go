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
	ends      *prometheus.CounterVec
	restarts  prometheus.Counter
	exclusion prometheus.Counter
	runners   prometheus.Counter
	refused   prometheus.Counter
	journal   prometheus.Histogram
}

func newMetrics(present prometheus.Collector) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "volley_" + name, Help: help})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "volley_" + name, Help: help, Buckets: buckets})
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
		rows: counter("dropped_rows_total", "Rows folded whose result was not merged."),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "volley_jobs_ended_total",
			Help: "Jobs that have ended since the driver was started, by how."}, []string{"state"}),
		restarts: counter("job_restarts_total", "Processes of jobs that ended without a report and were started "+
			"again."),
		exclusion: counter("exclusions_total", "Times that a job gave an executor no more work for a while."),
		runners:   counter("runner_ends_total", "Runners that ended although their job had not."),
		refused:   counter("refused_total", "Calls, requests and connections that were not let in."),
		journal:   histogram("journal_seconds", "Time until an entry of the journal is on disk and applied.", seconds),
	}
	m.registry.MustRegister(m.steps, m.cut, m.share, m.neff, m.took, m.wait, m.bytes, m.exchanges, m.dropped, m.rows,
		m.ends, m.restarts, m.exclusion, m.runners, m.refused, m.journal, present,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, state := range []string{JobDone, JobFailed, JobCancelled} {
		m.ends.WithLabelValues(state)
	}
	for _, reason := range []string{"stale", "late", "mismatched"} {
		m.dropped.WithLabelValues(reason)
	}
	return m
}

// wrote counts an entry of the journal.
func (m *metrics) wrote(took time.Duration) {
	if m != nil { // a table may have none
		m.journal.Observe(took.Seconds())
	}
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
