package daemon

// DefaultRestarts is how often a job's process is started again that was killed, or has
// ended without a word, unless the driver is told otherwise. One that says that it has
// failed has.
const DefaultRestarts = 5

// lifeEnd is how a process of a job came to its end, or why it never began.
type lifeEnd struct {
	cancelled bool   // somebody has cancelled the job
	failure   string // why the process was killed, where that ends the job
	closing   bool   // the driver is going down
	said      bool   // the process has told of its end, with this code and reason
	code      uint32
	why       string
	lost      bool   // it has lost the driver
	passing   bool   // it could not be started for want of something that there will be again
	never     string // why it can never be started
	restarts  uint32 // so far, that count
	most      uint32
}

// verdict is what follows from the end of a job's process.
type verdict uint8

// A job that goes on does so when the driver is started again. One that is started later
// is not to blame: that counts as no restart.
const (
	jobGoesOn verdict = iota
	jobIsDone
	jobIsCancelled
	jobHasFailed
	startAgain
	startLater
)

// judge returns what follows, and of a failure why; without a reason it is the process's last
// words.
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
