package host

import (
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/rdd"
)

// Config configures how a program runs embedded. The zero value of a field
// takes its default.
type Config struct {
	Executors      int    // default: one a core
	Slots          int    // default 1
	Memory         int64  // soft limit of the process in bytes; 0 is none
	TaskMemory     int64  // bytes that a task sorts in memory; 0 is 256 MiB, or a part of Memory
	DataDir        string // default $XDG_CACHE_HOME/volley
	DiskBudget     int64  // bytes of packs kept; 0 chooses from the free space
	Job            driver.JobConfig
	Pace           *pace.Law // emulated speeds; nil is none
	Virtual        bool      // virtual time; needs a Pace
	EventLog       string
	UI             string // HOST:PORT on loopback where a page shows the run; empty shows none
	Checkpoints    string // directory; empty keeps none
	CheckpointEach int    // iterations between checkpoints; default 10
	Resume         bool
	Identity       string // what a checkpoint must agree on to be resumed; default: the arguments
	OutDir         string
	Program        string // identity of user code; default: the digest of this executable
	Progress       func(rdd.Progress)
	Observer       func(*driver.StepReport)
	Logger         hclog.Logger
	Losses         []Loss // executors that are lost, for tests; not in virtual time
}

// Passes counts a job's passes over its data, steps among them, by how they were made.
type Passes struct {
	Whole  int   `json:"whole"`         // each executor folded its own splits
	Leased int   `json:"leased"`        // whole, too: pieces went to executors that were free
	Cut    int   `json:"cut"`           // rows were left out
	Rows   int64 `json:"training_rows"` // in all of them, without evaluations and what comes before training
}

// Outcome is the engine's summary of a finished run.
type Outcome struct {
	Load       time.Duration // on the wall clock
	Train      time.Duration // on the job's clock, evaluation left out
	Evaluation time.Duration
	Counters   driver.Counters
	Splits     int
	Executors  int
	Passes     Passes
	StoppedBy  string
	LogDigest  string // SHA-256 of the event log; empty where none was written
}

// ensureDefaults fills in the fields left zero.
func (c Config) ensureDefaults() Config {
	if c.Executors == 0 {
		c.Executors = runtime.GOMAXPROCS(0)
	}
	if c.Slots == 0 {
		c.Slots = 1
	}
	if c.CheckpointEach == 0 {
		c.CheckpointEach = 10
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.DataDir == "" {
		c.DataDir = DefaultDataDir()
	}
	return c
}

// DefaultDataDir returns the default directory of packs.
func DefaultDataDir() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "volley")
	}
	return filepath.Join(os.TempDir(), "volley")
}
