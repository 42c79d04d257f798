package volley

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/prioritizer"
)

// EngineFlags are the flags of the engine, the same for every program.
type EngineFlags struct {
	executors, slots            int
	memory, disk, dataDir       string
	sync                        string
	ratio, minRatio             float64
	minShare, maxMissing        float64
	reportInterval, maxWait     time.Duration
	taskTimeout                 time.Duration
	cursor, exchange, weighting string
	exchangeThreshold           int64
	exchangeInterval            int
	batchFraction               float64
	pace, clock                 string
	paceRate                    float64
	eventLog, ui                string
	logLevel                    string
	others                      []string // values of --sync that the program itself carries out
}

// AllowSync adds values to those of --sync that the program itself carries out, with workers on tables; the steps that
// it has beside are whole. It is called before Register.
func (f *EngineFlags) AllowSync(names ...string) { f.others = append(f.others, names...) }

// own reports whether the program itself carries out what --sync says.
func (f *EngineFlags) own() bool { return slices.Contains(f.others, f.sync) }

// policy returns how steps are synchronized.
func (f *EngineFlags) policy() (abss.Policy, error) {
	if f.own() {
		return abss.Steal, nil
	}
	return abss.ParsePolicy(f.sync)
}

// Register declares the flags with their defaults.
func (f *EngineFlags) Register(fs *pflag.FlagSet) {
	fs.IntVar(&f.executors, "executors", 0, fmt.Sprintf(
		"number of executors (default: one per core, %d here, or what --pace defines)", runtime.GOMAXPROCS(0)))
	fs.IntVar(&f.slots, "slots", 0, "task slots per executor (default: 1, or what --pace defines)")
	fs.StringVar(&f.memory, "memory", "", "soft memory limit of this process, such as 4GiB (default: none)")
	fs.StringVar(&f.dataDir, "data-dir", "", "where packs are kept (default: "+DefaultDataDir()+")")
	fs.StringVar(&f.disk, "disk", "", "disk budget for packs, such as 20GiB (default: four fifths of the free space)")
	fs.StringVar(&f.sync, "sync", "auto", "synchronization: auto (chosen for each pass, of the others), bsp (every "+
		"row), steal (every row, by executors that are free), absp (Algorithm 1 of A-BSP) or deadline (cut at a "+
		"learned time); bsp and steal give the same bytes every time"+f.othersHelp())
	fs.Float64Var(&f.ratio, "sync-ratio", 0.5,
		"R_s: share of rows at which absp and deadline cut a step, and auto a sample, in (0, 1]; where auto's ratio "+
			"by noise begins")
	fs.Float64Var(&f.minRatio, "min-ratio", 0.3, "lower bound of the ratio that auto chooses by noise, in (0, 1]")
	fs.Float64Var(&f.minShare, "min-share", 0.05, "share of a split below which it is not cut")
	fs.Float64Var(&f.maxMissing, "max-missing", 0.2,
		"share of rows that a step may go on without; at least the largest share that one executor holds")
	fs.DurationVar(&f.reportInterval, "report-interval", 0,
		"how often executors report (default: a twentieth of a step, 2ms to 1s)")
	fs.StringVar(&f.cursor, "cursor", "on", "start a split where the last step left it (on) or at its first row (off)")
	fs.StringVar(&f.exchange, "exchange", "rate", "move splits between executors: rate, paper, paper-literal or off")
	fs.Int64Var(&f.exchangeThreshold, "exchange-threshold", 5, "P_t: difference of process times at which splits swap")
	fs.IntVar(&f.exchangeInterval, "exchange-interval", 1, "steps between two plans of the exchange")
	fs.StringVar(&f.weighting, "weighting", "split",
		"weight of partial results: each split's mean by its size (split), or by rows (rows)")
	fs.Float64Var(&f.batchFraction, "batch-fraction", 1, "share of each split that a step folds, in (0, 1]")
	fs.StringVar(&f.pace, "pace", "", "emulated speeds and links, as physical, multi-tenant:7 or "+
		"static:1,1,0.5+link:4MB/s; docs/guide.md lists the laws (default: the machine's own)")
	fs.Float64Var(&f.paceRate, "pace-rate", 10000, "rows per second of speed 1 on a slot")
	fs.StringVar(&f.clock, "clock", "real", "real, or virtual: real numerics and control in computed time (needs "+
		"--pace)")
	fs.DurationVar(&f.maxWait, "max-wait", 10*time.Minute, "longest wait for executors, splits and recovery")
	fs.DurationVar(&f.taskTimeout, "task-timeout", 10*time.Minute,
		"time without progress (no row read, no byte moved) after which an action's task is retried elsewhere")
	fs.StringVar(&f.eventLog, "event-log", "", "file for the event log (volley verify, volley replay)")
	fs.StringVar(&f.ui, "ui", "", "show the run on a page while it goes on, at this HOST:PORT of this machine; "+
		"alone it chooses a port")
	fs.Lookup("ui").NoOptDefVal = "127.0.0.1:0"
	fs.StringVar(&f.logLevel, "log-level", "warn", "trace, debug, info, warn or error, to stderr")
}

// othersHelp returns what --help says of values that the program itself carries out.
func (f *EngineFlags) othersHelp() string {
	if len(f.others) == 0 {
		return ""
	}
	return ". Workers on parameter tables, which see of each other's updates what the model lets them: " +
		strings.Join(f.others, ", ")
}

// usage returns a usage error about a flag.
func usage(flag, format string, args ...any) error {
	return fault.Newf(fault.Usage, "use", "--"+flag, format, args...).WithHint("see --help")
}

// Within checks that a flag's number is in [lo, hi], or in (lo, hi] where open
// is set.
func Within(flag string, v, lo, hi float64, open bool) error {
	if v < lo || v > hi || open && v == lo || math.IsNaN(v) {
		if hi == math.MaxFloat64 && lo == 0 {
			return usage(flag, "%v is not %s", v, map[bool]string{true: "above 0", false: "0 or more"}[open])
		}
		return usage(flag, "%v is not in %s%v, %v]", v, map[bool]string{true: "(", false: "["}[open], lo, hi)
	}
	return nil
}

// OneOf checks that a flag's value is one of those allowed.
func OneOf(flag, v string, allowed ...string) error {
	for _, a := range allowed {
		if v == a {
			return nil
		}
	}
	return usage(flag, "%q is not one of %s", v, strings.TrimSpace(strings.Join(allowed, " ")))
}

// FirstError returns the first of some errors that is not nil.
func FirstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// validate checks every option by itself and against the others.
func (f *EngineFlags) validate() error {
	err := FirstError(
		Within("executors", float64(f.executors), 0, 10000, false), Within("slots", float64(f.slots), 0, 1000, false),
		Within("sync-ratio", f.ratio, 0, 1, true), Within("min-ratio", f.minRatio, 0, 1, true),
		Within("min-share", f.minShare, 0, 1, false),
		Within("max-missing", f.maxMissing, 0, 1, false), Within("batch-fraction", f.batchFraction, 0, 1, true),
		Within("pace-rate", f.paceRate, 0, math.MaxFloat64, true),
		Within("exchange-threshold", float64(f.exchangeThreshold), 0, 1e9, true),
		Within("exchange-interval", float64(f.exchangeInterval), 0, 1e9, true),
		Within("report-interval", float64(f.reportInterval), 0, math.MaxInt64, false),
		Within("max-wait", float64(f.maxWait), 0, math.MaxInt64, true),
		Within("task-timeout", float64(f.taskTimeout), 0, math.MaxInt64, true),
		OneOf("cursor", f.cursor, "on", "off"), OneOf("weighting", f.weighting, "split", "rows"),
		OneOf("clock", f.clock, "real", "virtual"),
	)
	switch {
	case err != nil:
		return err
	case f.clock == "virtual" && f.pace == "":
		return usage("clock", "virtual time needs --pace, from which it is computed")
	case f.batchFraction < 1 && f.own():
		return usage("batch-fraction", "it is of steps, and --sync %s has workers on tables; --batch sets the rows of "+
			"theirs, and --wpc how much of its split each processes in a clock", f.sync)
	case f.batchFraction < 1 && !f.whole() && !f.auto():
		return usage("batch-fraction", "it is for --sync auto, bsp and steal and cannot be cut by %s", f.sync)
	}
	return nil
}

// EventLog returns the file for the event log, if any.
func (f *EngineFlags) EventLog() string { return f.eventLog }

// Sync returns the name of the synchronization policy.
func (f *EngineFlags) Sync() string { return f.sync }

// MayCut reports whether steps may be cut whatever a program has them for.
func (f *EngineFlags) MayCut() bool { return !f.whole() && !f.auto() && f.ratio < 1 }

// MaySample reports whether programs are to have steps that may be of less than all rows.
func (f *EngineFlags) MaySample() bool { return f.MayCut() || f.auto() || f.Batches() }

func (f *EngineFlags) auto() bool { return f.sync == abss.Automatic.String() }

// Batches reports whether steps are to be of a share of each split.
func (f *EngineFlags) Batches() bool { return f.batchFraction < 1 }

// whole reports whether steps are never cut.
func (f *EngineFlags) whole() bool {
	p, err := f.policy()
	return err == nil && p.Whole()
}

// Config returns the configuration that the flags ask for; an option that is
// malformed, out of range or contradictory is a usage error naming the flag.
func (f *EngineFlags) Config() (Config, error) {
	var cfg Config
	if err := f.validate(); err != nil {
		return cfg, err
	}
	policy, err := f.policy()
	if err != nil {
		return cfg, usage("sync", "%v", err)
	}
	mode, err := prioritizer.ParseMode(f.exchange)
	if err != nil {
		return cfg, usage("exchange", "%v", err)
	}
	cfg.Job = driver.JobConfig{
		Sync: abss.Config{Policy: policy, Ratio: f.ratio, MinRatio: f.minRatio, MinShare: orNone(f.minShare),
			MaxMissing: orNone(f.maxMissing), StepTimeout: f.maxWait},
		Exchange: prioritizer.ExchangeConfig{Mode: mode, Threshold: f.exchangeThreshold,
			Interval: f.exchangeInterval},
		FixedCursors: f.cursor == "off", ByRows: f.weighting == "rows", BatchFraction: f.batchFraction,
		ReportInterval: f.reportInterval, MaxWait: f.maxWait, TaskTimeout: f.taskTimeout,
	}
	if cfg.Pace, err = pace.Parse(f.pace, f.paceRate); err != nil {
		return cfg, usage("pace", "%v", err)
	}
	cfg.Executors, cfg.Slots = f.shape(cfg.Pace)
	if err := cfg.Pace.Fits(cfg.Executors, cfg.Slots); err != nil {
		return cfg, usage("pace", "%v", err)
	}
	for flag, path := range map[string]string{"event-log": f.eventLog, "data-dir": f.dataDir} {
		if strings.Contains(path, "://") {
			return cfg, usage(flag, "%s is no path of this machine", path)
		}
	}
	if cfg.DiskBudget, err = ParseBytes(f.disk); err != nil {
		return cfg, usage("disk", "%v", err)
	}
	if cfg.Memory, err = ParseBytes(f.memory); err != nil {
		return cfg, usage("memory", "%v", err)
	}
	if cfg.Pace.Computed() && f.clock != "virtual" {
		return cfg, usage("pace", "latency, driver-link and handling need --clock virtual: no message waits on the "+
			"real clock")
	}
	level := hclog.LevelFromString(f.logLevel)
	if level == hclog.NoLevel {
		return cfg, usage("log-level", "%q is not a level", f.logLevel)
	}
	cfg.Virtual, cfg.DataDir, cfg.EventLog = f.clock == "virtual", f.dataDir, f.eventLog
	cfg.UI = f.ui
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Name: "volley", Level: level, Output: os.Stderr})
	return cfg, nil
}

// orNone returns, for an explicit zero, the value that means none in a
// configuration whose zero value means the default.
func orNone(v float64) float64 {
	if v == 0 {
		return -1
	}
	return v
}

// ParseConfig returns the configuration that some engine flags ask for, as
// ParseConfig("--sync", "absp").
func ParseConfig(args ...string) (Config, error) {
	f, fs := &EngineFlags{}, pflag.NewFlagSet("engine", pflag.ContinueOnError)
	f.Register(fs)
	if err := fs.Parse(args); err != nil {
		return Config{}, fault.New(fault.Usage, "read", "engine flags", err)
	}
	return f.Config()
}

// shape returns the number of executors and slots: what was asked for, else
// what the pace is for, else one executor a core.
func (f *EngineFlags) shape(law *pace.Law) (executors, slots int) {
	executors, slots = f.executors, f.slots
	if law != nil && executors == 0 && law.Executors > 0 {
		executors = law.Executors
		if slots == 0 {
			slots = law.Slots
		}
	}
	if executors == 0 {
		executors = runtime.GOMAXPROCS(0)
	}
	return executors, max(1, slots)
}

var byteUnits = []struct {
	suffix string
	size   float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// ParseBytes reads a size such as 4GiB; 0 of nothing.
func ParseBytes(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	for _, u := range byteUnits {
		if num, ok := strings.CutSuffix(s, u.suffix); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
			if err != nil || !(v*u.size >= 1 && v*u.size <= 1<<62) { // NaN is neither
				return 0, fmt.Errorf("%q is not a size such as 4GiB", s)
			}
			return int64(v * u.size), nil
		}
	}
	return 0, nil
}
