package daemon

// DefaultRestarts is how often, by default, a job's process is restarted that was
// killed or ended without a report. One that reports a failure has failed.
const DefaultRestarts = 5

// DefaultMaxJobs is how many jobs have a process at a time, by default.
const DefaultMaxJobs = 32

// lifeEnd is how a process of a job ended, or why it never began.
type lifeEnd struct {
	cancelled bool   // the job was cancelled
	failure   string // why the process was killed, where that ends the job
	closing   bool   // the driver is going down
	said      bool   // the process has reported its end, with this code and reason
	code      uint32
	why       string
	lost      bool   // it has lost the driver
	passing   bool   // it could not be started for want of a resource, for now
	never     string // why it can never be started
	restarts  uint32 // so far, that count
	most      uint32
}

// verdict is the consequence of the end of a job's process.
type verdict uint8

// A job that continues does so when the driver is started again. One that is started
// later did not fail: that counts as no restart.
const (
	jobGoesOn verdict = iota
	jobIsDone
	jobIsCancelled
	jobHasFailed
	startAgain
	startLater
)

// judge returns the consequence, with the reason of a failure; without one it is the
// process's last words.
func (e lifeEnd) judge() (verdict, string) {
	switch {
	case e.cancelled:
		return jobIsCancelled, "cancelled"
	case e.failure != "":
		return jobHasFailed, e.failure
	case e.closing:
		return jobGoesOn, ""
	case e.said && e.code == 0:
		return jobIsDone, ""
	case e.said:
		return jobHasFailed, e.why
	case e.lost || e.passing:
		return startLater, ""
	case e.never != "":
		return jobHasFailed, e.never
	case e.restarts < e.most:
		return startAgain, ""
	}
	return jobHasFailed, ""
}
