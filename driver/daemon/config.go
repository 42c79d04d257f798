package daemon

import (
	"cmp"
	"net"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/memory"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/storage/input/files"
)

// Config configures a driver daemon. The zero value of a field takes its
// default.
type Config struct {
	// Listen is unix:PATH, or HOST:PORT with the certificates of Init; default: as Init was told, or
	// wire.DefaultDriver.
	Listen string
	// Advertise is where the others reach it, over the network; default Listen.
	Advertise string
	Traces    string // URL of a collector of OpenTelemetry, which is told of steps; empty is none
	HTTP      string // address of REST and metrics; empty serves none
	// Datasets is where Arrow clients save datasets by name: a directory, or a name of objects, that all executors and
	// drivers see; default: a directory of DataDir on a cluster of one user, nowhere else.
	Datasets string
	DataDir  string // jobs, journal and certificates
	Program  string // the executable that job processes run; default: this one
	// Suspicion is the silence after which an executor, a runner or a job's
	// process is taken for lost; default 2 s. Heartbeats come three times as
	// often.
	Suspicion time.Duration
	Drain     time.Duration // how long a shutdown waits for job processes and executors; default 5 s
	// Restarts is how often a job's process is restarted that ended without a report;
	// default DefaultRestarts.
	Restarts *uint32
	MaxJobs  *int // how many jobs run at a time, the others wait; 0 is no limit; default DefaultMaxJobs
	// Bytes that a job may take here while it runs: its directory, its event log, after which it fails (0 is no
	// limit), and what each of its processes prints, of which only the end is kept (default DefaultJobLog).
	JobDisk, JobEvents, JobLog int64
	// JobMemory is how many bytes a job's process and all it starts may take; 0 is nine tenths of the machine's.
	JobMemory int64
	Keep      *Keep // which of the jobs that have ended are kept; default DefaultKeep
	Logger    hclog.Logger

	moved bool // Advertise was given, and may be another address than before
}

// EnsureDefaults fills in the fields left zero.
func (c Config) EnsureDefaults() Config {
	if c.Suspicion == 0 {
		c.Suspicion = 2 * time.Second
	}
	if c.Drain == 0 {
		c.Drain = 5 * time.Second
	}
	if c.Restarts == nil {
		most := uint32(DefaultRestarts)
		c.Restarts = &most
	}
	if c.JobLog == 0 {
		c.JobLog = DefaultJobLog
	}
	if c.MaxJobs == nil {
		most := DefaultMaxJobs
		c.MaxJobs = &most
	}
	if c.Keep == nil {
		c.Keep = &DefaultKeep
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}

// whereInit serves where volley init was told, if it made the data directory.
func (c *Config) whereInit(dir string) error {
	c.moved = c.Advertise != ""
	address, err := addressOf(dir)
	if err != nil {
		return err
	}
	if address != "" && (c.Listen == "" || samePort(c.Listen, address)) {
		c.Listen, c.Advertise = cmp.Or(c.Listen, address), cmp.Or(c.Advertise, address)
	}
	c.Listen = cmp.Or(c.Listen, wire.DefaultDriver())
	return nil
}

// whereDatasets keeps the datasets of clients in the data directory where all processes are on this machine.
func (c *Config) whereDatasets() {
	if _, socket := wire.SocketPath(c.Listen); socket && c.Datasets == "" {
		c.Datasets = filepath.Join(c.DataDir, "datasets")
	}
	if c.Datasets != "" {
		c.Datasets = files.Absolute(c.Datasets)
	}
}

// samePort reports whether two addresses have one port: one may be how the other is reached.
func samePort(a, b string) bool {
	_, x, err := net.SplitHostPort(a)
	_, y, err2 := net.SplitHostPort(b)
	return err == nil && err2 == nil && x == y
}

// minSuspicion is the shortest silence that may be configured.
const minSuspicion = 30 * time.Millisecond

// mostMemory returns how many bytes a job's process and all it starts may take.
func (c *Config) mostMemory() uint64 {
	if c.JobMemory > 0 {
		return uint64(c.JobMemory)
	}
	return memory.MostOfMachine()
}

// validate refuses what cannot be.
func (c Config) validate() error {
	if c.Suspicion < minSuspicion {
		return fault.Newf(fault.Usage, "use", "--suspicion", "%v is less than %v", c.Suspicion, minSuspicion)
	}
	if *c.MaxJobs < 0 {
		return fault.Newf(fault.Usage, "use", "--max-jobs", "%d is negative", *c.MaxJobs)
	}
	for _, size := range []struct {
		flag  string
		bytes int64
	}{{"--job-disk", c.JobDisk}, {"--job-events", c.JobEvents}, {"--job-memory", c.JobMemory}} {
		if size.bytes < 0 {
			return fault.Newf(fault.Usage, "use", size.flag, "%d is negative", size.bytes)
		}
	}
	if c.JobLog < leastJobLog {
		return fault.Newf(fault.Usage, "use", "--job-log", "%d bytes are less than %d", c.JobLog, leastJobLog)
	}
	if c.Drain < 0 {
		return fault.Newf(fault.Usage, "use", "--drain", "%v is negative", c.Drain)
	}
	return nil
}

// beat returns the time between two heartbeats.
func (c Config) beat() time.Duration { return c.Suspicion / wire.Missed }
