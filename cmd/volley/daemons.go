package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	driverd "github.com/volley-engine/volley/driver/daemon"
	executord "github.com/volley-engine/volley/executor/daemon"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/pace"
)

// logFlags are the flags of what a daemon says on stderr.
type logFlags struct{ level, format string }

func (l *logFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&l.level, "log-level", "info", "trace, debug, info, warn, error or off")
	fs.StringVar(&l.format, "log-format", "text", "text, or json: an object a line")
}

// logger returns what a daemon logs to.
func (l *logFlags) logger(c *cobra.Command, name string) (hclog.Logger, error) {
	if l.format != "text" && l.format != "json" {
		return nil, usage(c, "log-format", "%q is neither text nor json", l.format)
	}
	return hclog.New(&hclog.LoggerOptions{Name: name, Level: hclog.LevelFromString(l.level), Output: os.Stderr,
		JSONFormat: l.format == "json"}), nil
}

func driverCommand() *cobra.Command {
	keep, restarts, most, quotas := driverd.DefaultKeep, uint32(0), 0, quotas{}
	cfg := driverd.Config{Keep: &keep, Restarts: &restarts, MaxJobs: &most}
	var config string
	var logs logFlags
	c := &cobra.Command{
		Use:   "driver",
		Short: "Serve a cluster: take jobs in and hand them to executors",
		Long: `Driver serves a cluster: this user's own, over a socket under VOLLEY_HOME (default
~/.volley) that no other user can use, or, on a data directory that volley init has
made, one over the network, where everything is mutual TLS. Started again on its
data directory, it goes on with the jobs it had. It prints one JSON line when it
is ready, and ends on SIGTERM.`,
		Example: "  volley driver --data-dir /var/lib/volley/driver",
		Args:    exactArgs(0, "no arguments beside flags"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fillFlags(c); err != nil {
				return err
			}
			if cfg.DataDir == "" {
				cfg.DataDir = filepath.Join(volley.DefaultDataDir(), "driver")
			}
			var err error
			if err = quotas.read(&cfg); err != nil {
				return err
			}
			if cfg.Logger, err = logs.logger(c, "driver"); err != nil {
				return err
			}
			d, err := driverd.Start(c.Context(), cfg)
			if err != nil {
				return err
			}
			ready := map[string]string{"listening": d.Addr()}
			if cfg.HTTP != "" {
				ready["http"], ready["page"] = d.HTTPAddr(), d.PageLink()
			}
			if err := printJSON(ready); err != nil {
				return err
			}
			<-c.Context().Done()
			return ended(d.Close())
		},
	}
	fs := c.Flags()
	fs.StringVar(&cfg.Listen, "listen", "", "unix:PATH of a socket, or HOST:PORT (default: the address of volley "+
		"init, or else this user's socket, $VOLLEY_HOME/driver.sock)")
	fs.StringVar(&cfg.Advertise, "advertise", "", "HOST:PORT by which the others reach it (default: that of "+
		"volley init, or else --listen)")
	fs.StringVar(&cfg.HTTP, "http", "", "address for the page, REST and Prometheus metrics, loopback only "+
		"without certificates; none without it")
	fs.StringVar(&cfg.Datasets, "datasets", "", "where Arrow clients save datasets by name: a directory, or a name of "+
		"objects, that all drivers and executors see (default: in --data-dir on a cluster of one user, else none)")
	fs.StringVar(&cfg.Traces, "traces", "", "URL of a collector of OpenTelemetry, such as http://localhost:4318, "+
		"which is told of jobs and their steps (OTLP over HTTP)")
	fs.StringVar(&cfg.DataDir, "data-dir", "",
		"directory for jobs, results and certificates (default: $XDG_CACHE_HOME/volley/driver)")
	fs.DurationVar(&cfg.Suspicion, "suspicion", 2*time.Second,
		"silence after which an executor, a runner or a job's process is taken for lost; heartbeats come three times "+
			"as often")
	fs.DurationVar(&cfg.Drain, "drain", 5*time.Second, "how long a shutdown waits for job processes and executors")
	fs.Uint32Var(&restarts, "restarts", driverd.DefaultRestarts,
		"how often a job's process is started again that was killed or ended without a report; volley job resume "+
			"begins anew")
	fs.IntVar(&most, "max-jobs", driverd.DefaultMaxJobs, "how many jobs run at a time; the others wait for their "+
		"turn, by --priority of submit, users' shares and age; 0 is no limit")
	quotas.register(fs)
	fs.Var((*keepValue)(&keep), "keep", aboutKeep)
	logs.register(fs)
	fs.StringVar(&config, "config", "", "YAML file with values for flags")
	return c
}

// ended returns the error of a daemon's end; a requested shutdown is no error.
func ended(err error) error {
	if err != nil {
		return err
	}
	return errEnded
}

func executorCommand() *cobra.Command {
	cfg := executord.Config{}
	var config, join string
	var logs logFlags
	var labels []string
	c := &cobra.Command{
		Use:   "executor",
		Short: "Work for a cluster",
		Long: `Executor joins the cluster of a driver and runs its jobs' functions, each job
in a process of its own. Over the network it gets its certificate by a token,
keeps it in its data directory, and renews it itself. It prints one JSON line when
it has registered, looks for a driver that is gone for --max-wait, and ends on
SIGTERM.`,
		Example: "  volley executor --slots 4\n  volley executor --join TOKEN --name a --slots 4 --data-dir " +
			"/var/lib/volley/executor",
		Args: exactArgs(0, "no arguments beside flags"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fillFlags(c); err != nil {
				return err
			}
			if err := volley.Within("slots", float64(cfg.Slots), 0, 4096, true); err != nil {
				return err
			}
			law, err := pace.Parse(cfg.Pace, cfg.PaceRate)
			if err = errors.Join(err, law.Alone()); err != nil {
				return usage(c, "pace", "%v", err)
			}
			if cfg.DataDir == "" {
				cfg.DataDir = filepath.Join(volley.DefaultDataDir(), "executor")
			}
			cfg.Labels = map[string]string{}
			for _, l := range labels {
				k, v, ok := strings.Cut(l, "=")
				if !ok || k == "" {
					return usage(c, "labels", "%q is not KEY=VALUE", l)
				}
				cfg.Labels[k] = v
			}
			if err := member(c, &cfg, join); err != nil {
				return err
			}
			if cfg.Logger, err = logs.logger(c, "executor"); err != nil {
				return err
			}
			var once sync.Once
			var d *executord.Daemon
			cfg.Ready = func(addr string) {
				once.Do(func() { _ = printJSON(registered(addr, cfg.Name, d.HTTPAddr(), d.FlightLocation())) })
				if cfg.Party.ID != nil {
					keepLearned(filepath.Join(cfg.DataDir, "trust", cfg.Name), addr)
				}
			}
			bytes, err := volley.ParseBytes(cfg.Memory)
			if err != nil {
				return fault.New(fault.Usage, "use", "--memory", err)
			}
			cfg.MemoryBytes = bytes
			if d, err = executord.New(cfg); err != nil {
				return err
			}
			return ended(d.Run(c.Context()))
		},
	}
	executorFlags(c.Flags(), &cfg, &labels, &join, &config, &logs)
	return c
}

// registered returns what an executor says when it has joined.
func registered(driver, name, http, flight string) map[string]string {
	out := map[string]string{"registered": driver, "name": name}
	if flight != "" {
		out["flight"] = flight
	}
	if http != "" {
		out["http"] = http
	}
	return out
}

func executorFlags(fs *pflag.FlagSet, cfg *executord.Config, labels *[]string, join, config *string,
	logs *logFlags) {
	fs.StringVar(&cfg.Driver, "driver", "", "the driver: HOST:PORT, or unix:PATH of a socket (default: that of "+
		"the token, or else this user's own)")
	fs.StringVar(join, "join", "", "token of a cluster to join (volley token create --role executor); one that "+
		"has joined needs none")
	fs.StringVar(&cfg.Flight, "flight", "", "HOST:PORT, or unix:PATH of this user's, where datasets are served to "+
		"Arrow clients that the driver sends here; none without it")
	fs.StringVar(&cfg.Host, "host", "", "name or address by which other machines reach this one's runners "+
		"(default: this machine's towards the driver)")
	fs.StringVar(&cfg.HTTP, "http", "", "address for health and Prometheus metrics, loopback only without "+
		"certificates; none without it")
	fs.StringVar(&cfg.Name, "name", "", "name of this executor, unique in its cluster (default: HOST-PID)")
	fs.StringVar(&cfg.DataDir, "data-dir", "",
		"directory for packs; executors of one machine may share it (default: $XDG_CACHE_HOME/volley/executor)")
	fs.IntVar(&cfg.Slots, "slots", 1, "tasks at a time")
	fs.StringVar(&cfg.Memory, "memory", "", "soft limit of a runner's memory, such as 2GiB; at twice that, and at "+
		"least 1 GiB more, a program is ended (default: none, and nine tenths of the machine's)")
	fs.StringVar(&cfg.Disk, "disk", "", "budget of packs on disk, such as 50GiB")
	fs.StringVar(&cfg.Pace, "pace", "", "emulated speed: rate:N rows per second of a slot, disrupter:2s[:SEED], "+
		"disrupted:PERCENT[:20s[:SEED]], trace:FILE, link:4MB/s of what it is sent, or several joined by +")
	fs.Float64Var(&cfg.PaceRate, "pace-rate", 10000, "rows per second of speed 1 on a slot")
	fs.BoolVar(&cfg.Unreachable, "unreachable", false,
		"other executors cannot reach this one: blocks, and the messages of its jobs, go through the driver")
	fs.StringSliceVar(labels, "labels", nil, "KEY=VALUE pairs shown by volley executors")
	fs.DurationVar(&cfg.MaxWait, "max-wait", 10*time.Minute, "how long to look for a driver that is gone")
	fs.DurationVar(&cfg.Drain, "drain", 5*time.Second,
		"how long a shutdown waits until running jobs have moved their splits elsewhere")
	logs.register(fs)
	fs.StringVar(config, "config", "", "YAML file with values for flags")
}
