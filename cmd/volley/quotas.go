package main

import (
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	driverd "github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/fault"
)

// quotas are the flags of a driver that bound what a job takes on its machine.
type quotas struct{ disk, events, log, memory string }

func (q *quotas) register(fs *pflag.FlagSet) {
	fs.StringVar(&q.disk, "job-disk", "", "how much the files of a job that runs may take here (logs, event log, "+
		"checkpoints, results), such as 20GiB; it fails beyond that (default: no limit)")
	fs.StringVar(&q.events, "job-events", "", "how much the event log of a job that runs may take here, such as "+
		"1GiB; it fails beyond that (default: no limit)")
	fs.StringVar(&q.log, "job-log", "32MiB", "how much is kept of what each process of a job prints: the end")
	fs.StringVar(&q.memory, "job-memory", "", "how much memory a job's process and all that it starts may take here, "+
		"such as 4GiB; it is ended beyond that (default: nine tenths of the machine's)")
}

// read reads the flags into a configuration.
func (q *quotas) read(cfg *driverd.Config) (err error) {
	for _, f := range []struct {
		flag, value string
		to          *int64
	}{
		{"--job-disk", q.disk, &cfg.JobDisk},
		{"--job-events", q.events, &cfg.JobEvents},
		{"--job-log", q.log, &cfg.JobLog},
		{"--job-memory", q.memory, &cfg.JobMemory},
	} {
		if *f.to, err = volley.ParseBytes(f.value); err != nil {
			return fault.New(fault.Usage, "use", f.flag, err)
		}
	}
	return nil
}
