package daemon

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/version"
)

// present collects what is so when metrics are asked for: jobs, executors, the disk, the build.
type present struct{ r *Replica }

// presentMetrics are the metrics of present, by name.
var presentMetrics = func() map[string]*prometheus.Desc {
	out := map[string]*prometheus.Desc{}
	for name, d := range map[string]struct {
		help   string
		labels []string
	}{
		"jobs":                     {"Jobs by state.", []string{"state"}},
		"executors":                {"Executors by state.", []string{"state"}},
		"job_steps":                {"Training steps that a job which has not ended has committed.", []string{"job"}},
		"job_rows":                 {"Rows that the steps of a job's present process have merged.", []string{"job"}},
		"executor_slots":           {"Slots of a connected executor.", []string{"executor"}},
		"executor_splits":          {"Splits that its runners hold.", []string{"executor"}},
		"executor_rows_per_second": {"Speed of its last steps.", []string{"executor"}},
		"executor_memory_bytes":    {"Resident memory of it and its runners.", []string{"executor"}},
		"executor_disk_bytes":      {"Bytes of packs in its data directory.", []string{"executor"}},
		"disk_free_bytes":          {"Free bytes where the driver keeps its data.", nil},
		"journal_level":            {"Version of the protocol that all drivers are known to speak.", nil},
		"driver_leads":             {"Whether this driver leads: 1, or 0.", nil},
		"build_info": {"Versions of the module, of the protocol and of Go; always 1.", []string{"version",
			"protocol", "go"}},
	} {
		out[name] = prometheus.NewDesc("volley_"+name, d.help, d.labels, nil)
	}
	return out
}()

// Describe names the metrics.
func (p present) Describe(out chan<- *prometheus.Desc) {
	for _, d := range presentMetrics {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (p present) Collect(out chan<- prometheus.Metric) {
	gauge := func(name string, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(presentMetrics[name], prometheus.GaugeValue, v, labels...)
	}
	leads := 0.0
	if d := p.r.present.Load(); d != nil {
		leads = 1
		p.leading(d, gauge)
	}
	gauge("driver_leads", leads)
	gauge("journal_level", float64(version.Number(p.r.journal.fsm.level())))
	if free, err := disk.Free(p.r.cfg.DataDir); err == nil {
		gauge("disk_free_bytes", float64(free))
	}
	gauge("build_info", 1, version.Module, version.Newest, runtime.Version())
}

// leading collects what only the driver that leads knows.
func (p present) leading(d *Daemon, gauge func(name string, v float64, labels ...string)) {
	for state, n := range d.jobs.states() {
		gauge("jobs", float64(n), state)
	}
	for state, n := range d.members.states() {
		gauge("executors", float64(n), state)
	}
	for _, w := range d.jobs.running() {
		w.mu.Lock()
		id, step, rows := w.info.Id, w.info.Step, w.rows
		w.mu.Unlock()
		gauge("job_steps", float64(step), id)
		gauge("job_rows", float64(rows), id)
	}
	for _, m := range d.members.all() {
		i := m.info()
		gauge("executor_slots", float64(i.Slots), i.Name)
		gauge("executor_splits", float64(i.Splits), i.Name)
		gauge("executor_rows_per_second", i.RowsPerSecond, i.Name)
		gauge("executor_memory_bytes", float64(i.Memory), i.Name)
		gauge("executor_disk_bytes", float64(i.Disk), i.Name)
	}
}
