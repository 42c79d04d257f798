package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/volley-engine/volley/driver"
)

// quotaEvery is the time between two looks at what running jobs keep on the driver's disk.
const quotaEvery = 2 * time.Second

// watchQuota fails jobs whose directories take more than they may: one that writes without end would take the journal's
// place, and with that all jobs.
func (d *Daemon) watchQuota() {
	if d.cfg.JobDisk == 0 && d.cfg.JobEvents == 0 {
		return
	}
	ticker := time.NewTicker(quotaEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-d.ctx.Done():
			return
		}
		for _, w := range d.jobs.running() {
			if why := d.cfg.beyond(w.dir); why != "" {
				d.jobs.step(LifeEvent{Beyond: &LifeBeyond{Job: w.info.Id, Why: why}})
			}
		}
	}
}

// beyond returns why a job fails that has written too much into its directory; empty where it has not.
func (c *Config) beyond(dir string) string {
	if info, err := os.Stat(filepath.Join(dir, driver.EventsName)); err == nil && beyond(info.Size(), c.JobEvents) {
		return beyondWhy("its event log takes", "--job-events", info.Size(), c.JobEvents)
	}
	if c.JobDisk == 0 {
		return ""
	}
	if size := directorySize(dir); beyond(size, c.JobDisk) {
		return beyondWhy("its logs, event log, checkpoints and results take", "--job-disk", size, c.JobDisk)
	}
	return ""
}

func beyond(size, most int64) bool { return most > 0 && size > most }

// beyondWhy returns why a job fails that has written so much.
func beyondWhy(what, flag string, size, most int64) string {
	return fmt.Sprintf("%s %.1f MiB of the driver's disk, and may take %.1f (%s of the driver); volley job resume "+
		"goes on from its last checkpoint, where that is raised",
		what, float64(size)/(1<<20), float64(most)/(1<<20), flag)
}
