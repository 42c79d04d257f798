package daemon

import (
	"fmt"
	"time"
)

// quotaEvery is the time between two looks at what running jobs keep on the driver's disk.
const quotaEvery = 2 * time.Second

// watchQuota fails jobs whose directories take more than they may: one that writes without end would take the journal's
// place, and with that all jobs.
func (d *Daemon) watchQuota() {
	if d.cfg.JobDisk == 0 {
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
			if size := directorySize(w.dir); size > d.cfg.JobDisk {
				d.jobs.step(LifeEvent{Beyond: &LifeBeyond{Job: w.info.Id, Why: beyondWhy(size, d.cfg.JobDisk)}})
			}
		}
	}
}

// beyondWhy returns why a job fails that has written so much.
func beyondWhy(size, most int64) string {
	return fmt.Sprintf("its logs, event log, checkpoints and results take %.1f MiB of the driver's disk, and may take "+
		"%.1f (--job-disk of the driver); volley job resume goes on from its last checkpoint, where that is raised",
		float64(size)/(1<<20), float64(most)/(1<<20))
}
