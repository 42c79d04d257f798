package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
)

// placedFlags are the flags of jobs that have no steps: where they run, and where their checkpoints are.
type placedFlags struct {
	engine      volley.EngineFlags
	out, config string
	checkpoints string
	every       int
	splits      int
	seed        uint64
	overwrite   bool
	resume      bool
	json        bool
	quiet       bool
}

// place are the flags of the engine that say where a job runs, and not how its steps end.
var place = []string{"executors", "slots", "pace", "pace-rate", "clock", "memory", "data-dir", "disk", "max-wait",
	"task-timeout", "event-log", "ui", "log-level"}

func (f *placedFlags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.splits, "splits", 8, "number of splits")
	fs.BoolVar(&f.json, "json", false, "print one JSON object with the result on stdout")
	fs.BoolVar(&f.quiet, "quiet", false, aboutQuiet)
	fs.StringVar(&f.config, "config", "", "YAML file with values for flags")
	all := pflag.NewFlagSet("engine", pflag.ContinueOnError)
	f.engine.Register(all)
	for _, name := range place {
		fs.AddFlag(all.Lookup(name))
	}
}

// registerCheckpoints declares the flags of jobs that go on from checkpoints.
func (f *placedFlags) registerCheckpoints(fs *pflag.FlagSet) {
	fs.StringVar(&f.checkpoints, "checkpoint-dir", "", "directory for checkpoints, or the name of one in a store")
	fs.IntVar(&f.every, "checkpoint-every", 10, "iterations between checkpoints")
	fs.BoolVar(&f.resume, "resume", false, "go on from the newest whole checkpoint, with the options of before")
}

// ready reads and checks the flags, before any data is read.
func (f *placedFlags) ready(c *cobra.Command, data []string) (cfg volley.Config, err error) {
	if err = fillFlags(c); err != nil {
		return cfg, err
	}
	if f.resume && f.checkpoints == "" {
		return cfg, usage(c, "resume", "it needs --checkpoint-dir")
	}
	err = volley.FirstError(volley.Within("splits", float64(f.splits), 1, 1e6, false),
		volley.Within("checkpoint-every", float64(f.every), 0, 1e9, false), notAnInput(c, "out", f.out, data))
	if err != nil {
		return cfg, err
	}
	cfg, err = f.engine.Config()
	cfg.Checkpoints, cfg.CheckpointEach, cfg.Resume = f.checkpoints, f.every, f.resume
	return cfg, err
}

// runs runs a job under a screen; one that was interrupted says so.
func (f *placedFlags) runs(c *cobra.Command, cfg volley.Config, do func(context.Context, volley.Config) (
	*volley.Outcome, error)) (*volley.Outcome, error) {
	screen := newScreen(f.json, f.quiet)
	cfg.Progress, cfg.Observer = screen.progress, screen.step
	out, err := do(c.Context(), cfg)
	screen.done()
	if err != nil && c.Context().Err() != nil {
		return nil, errInterrupted
	}
	return out, err
}

// trained returns how long a job without steps has taken by its clock, all and but for loading.
func trained(cfg volley.Config, out *volley.Outcome, began time.Time) (all, training float64) {
	if cfg.Virtual {
		return out.Train.Seconds(), out.Train.Seconds()
	}
	all = time.Since(began).Seconds()
	return all, max(0, all-out.Load.Seconds())
}

// placedJob is a job without steps, with its flags.
type placedJob interface {
	name() string
	command() *cobra.Command
	asked() asked
	ready(c *cobra.Command) (volley.Config, error)
	replayer
	// wants returns the flags that the job's process on a cluster gets beside its own.
	wants() []string
	// shows prints what a job on a cluster has come to, and writes what is not a model.
	shows(result []byte, files map[string][]byte) error
}

// placedJobs returns the jobs without steps, with fresh flags.
func placedJobs() []placedJob { return []placedJob{&mfFlags{}, &ldaFlags{}, &ranking{}, &connecting{}} }

func (f *placedFlags) asked() asked {
	return asked{f.out, f.engine.EventLog(), f.overwrite, f.json, f.quiet}
}

func (f *placedFlags) wants() []string { return nil }

// submitPlacedCommand submits a job without steps.
func submitPlacedCommand(j placedJob) *cobra.Command {
	s, c := &submitFlags{}, j.command()
	c.Short += " on a cluster"
	c.Long = "Submits the job that volley run " + j.name() + " describes; see there for the flags."
	c.Example = strings.ReplaceAll(c.Example, "volley run", "volley submit")
	c.RunE = func(c *cobra.Command, _ []string) error { return submitPlaced(c, j, s) }
	s.register(c.Flags())
	return c
}

func submitPlaced(c *cobra.Command, j placedJob, s *submitFlags) error {
	if _, err := j.ready(c); err != nil {
		return err
	}
	a := j.asked()
	_, model := j.(interface{ keepsModel() })
	if err := s.validate(c, a); err != nil {
		return err
	}
	var files map[string][]byte
	bring := a.brings(c.Context())
	if !model {
		bring = func(w *watcher) (err error) {
			if a.out != "" {
				files, err = w.files(c.Context())
			}
			return errors.Join(err, w.bring(c.Context(), "", false, a.eventLog))
		}
	}
	info, err := submit(c, j.name(), append(jobArgs(c), j.wants()...), s, a, bring)
	if err != nil || info == nil {
		return err
	}
	return j.shows([]byte(info.Result), files)
}
