package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

const (
	// supportTail is how many bytes of a log are sent, its last.
	supportTail = 1 << 20
	// supportFailed is of how many jobs that have failed logs are sent, and supportJobs how many jobs are described.
	supportFailed = 3
	supportJobs   = 500
)

// aboutDriver is what a driver says of itself in a support bundle. It has no secrets.
type aboutDriver struct {
	Version  string            `json:"version"`
	Protocol string            `json:"protocol"`
	Level    string            `json:"level"` // of the journal
	Go       string            `json:"go"`
	OS       string            `json:"os"`
	Arch     string            `json:"arch"`
	CPUs     int               `json:"cpus"`
	At       time.Time         `json:"at"`
	ID       string            `json:"id"`
	Term     uint64            `json:"term"`
	Address  string            `json:"address"`
	HTTP     string            `json:"http,omitempty"`
	DataDir  string            `json:"data_dir"`
	Free     uint64            `json:"free_bytes"`
	MaxJobs  int               `json:"max_jobs"`
	Restarts uint32            `json:"restarts"`
	Keep     Keep              `json:"keep"`
	Jobs     map[string]int    `json:"jobs"`
	Journal  map[string]string `json:"journal"`
}

// Support sends what is needed to find out what is wrong, a file after the other: of this driver, of the others and the
// executors what this one knows, of a job its logs.
func (d *Daemon) Support(req *wire.SupportRequest, stream wire.Cluster_SupportServer) error {
	jobs, err := d.supported(req.Job)
	if err != nil {
		return err
	}
	d.did(stream.Context(), "Support", req.Job, nil)
	send := func(name string, raw []byte) {
		for first := true; err == nil && (first || len(raw) > 0); first = false {
			n := min(len(raw), 256<<10)
			err = stream.Send(&wire.FilePart{Path: name, Data: raw[:n]})
			raw = raw[n:]
		}
	}
	encode := func(name string, v any) {
		raw, failed := json.MarshalIndent(v, "", "  ")
		if failed != nil {
			raw = []byte(failed.Error())
		}
		send(name, append(raw, '\n'))
	}
	encode("driver.json", d.about())
	if others, failed := d.Drivers(stream.Context(), &wire.DriversRequest{}); failed == nil {
		encode("drivers.json", others.Drivers)
	}
	encode("executors.json", d.executorViews())
	all := d.jobViews()
	encode("jobs.json", all[max(0, len(all)-supportJobs):])
	send("metrics.txt", d.metricsText())
	send("stacks.txt", profileText("goroutine", 2))
	send("heap.pprof", profileText("heap", 0))
	audit := filepath.Join(d.cfg.DataDir, auditName)
	if err := checkSealed(audit); err != nil && !errors.Is(err, fs.ErrNotExist) {
		send(auditName+".damaged", []byte(err.Error()+"\n"))
	}
	send(auditName, tailOf(audit))
	for _, w := range jobs {
		for _, name := range supportLogs(w.dir) {
			send(path.Join("jobs", w.info.Id, name), tailOf(filepath.Join(w.dir, name)))
		}
	}
	return err
}

// supported returns the jobs whose logs are sent: one, or those that have failed last.
func (d *Daemon) supported(id string) (out []*jobHandle, err error) {
	if id != "" {
		w, err := d.jobs.find(id)
		return []*jobHandle{w}, err
	}
	for _, w := range slices.Backward(d.jobs.shown()) {
		if info, _ := w.snapshot(); info.State == JobFailed && len(out) < supportFailed {
			out = append(out, w)
		}
	}
	return out, nil
}

// about returns what this driver says of itself.
func (d *Daemon) about() aboutDriver {
	free, _ := disk.Free(d.cfg.DataDir) // 0 says enough
	return aboutDriver{Version: version.Module, Protocol: version.Newest, Level: d.journal.fsm.level(),
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), At: time.Now(),
		ID: d.self.ID, Term: d.term, Address: d.Addr(), HTTP: d.webAddr, DataDir: d.cfg.DataDir, Free: free,
		MaxJobs: *d.cfg.MaxJobs, Restarts: *d.cfg.Restarts, Keep: *d.cfg.Keep, Jobs: d.jobs.states(),
		Journal: d.journal.raft.Stats()}
}

// metricsText returns the metrics as Prometheus reads them.
func (d *Daemon) metricsText() []byte {
	var out bytes.Buffer
	families, err := d.metrics.registry.Gather()
	if err != nil {
		out.WriteString("# " + err.Error() + "\n")
	}
	for _, f := range families {
		_, _ = expfmt.MetricFamilyToText(&out, f) // a buffer takes everything
	}
	return out.Bytes()
}

// profileText returns a profile of this process.
func profileText(name string, debug int) []byte {
	var out bytes.Buffer
	if err := pprof.Lookup(name).WriteTo(&out, debug); err != nil {
		return []byte(err.Error())
	}
	return out.Bytes()
}

// supportLogs returns the logs in a job's directory.
func supportLogs(dir string) (out []string) {
	for _, pattern := range []string{"log.*", "runner-*", driver.EventsName} {
		for _, f := range disk.Glob(dir, pattern) {
			out = append(out, filepath.Base(f))
		}
	}
	return out
}

// tailOf returns the end of a file, from the beginning of a line on; why there is none, where there is none.
func tailOf(file string) []byte {
	f, err := os.Open(file)
	if err != nil {
		return []byte(err.Error() + "\n")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return []byte(err.Error() + "\n")
	}
	from := max(0, info.Size()-supportTail)
	raw, err := io.ReadAll(io.NewSectionReader(f, from, supportTail))
	if err != nil {
		return []byte(err.Error() + "\n")
	}
	if _, rest, cut := bytes.Cut(raw, []byte("\n")); from > 0 && cut {
		return rest
	}
	return raw
}
