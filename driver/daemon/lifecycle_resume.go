package daemon

import (
	"time"

	"google.golang.org/grpc/codes"
)

// onResume resumes a job that has failed or was cancelled, once the connection of its last
// process has ended, which ends the runners of that process.
func (l *Life) onResume(a *LifeRequest) {
	j := l.jobs[a.Resume]
	if j == nil {
		l.notThere(a.From, a.Resume)
		return
	}
	if code, why := l.mayResume(j, a); code != codes.OK {
		l.refuse(a.From, code, why)
		return
	}
	j.resuming, j.waits = a.From, true
	l.resumeIfGone(j)
}

func (l *Life) mayResume(j *lifeJob, a *LifeRequest) (codes.Code, string) {
	switch {
	case l.closing:
		return codes.Unavailable, goingDown
	case a.Gone != "":
		return codes.NotFound, "its directory is gone: " + a.Gone
	case j.leaving:
		return codes.NotFound, notKeptWhy(j.id)
	case j.phase != lifeOver || j.resuming != 0:
		return codes.InvalidArgument, j.id + " has not ended"
	case plantedDone(j.state == JobDone):
		return codes.InvalidArgument, j.id + " is done"
	case len(j.queue) > 0:
		return codes.ResourceExhausted, "the job cannot be resumed: the journal has not answered yet"
	}
	return codes.OK, ""
}

func (l *Life) resumeIfGone(j *lifeJob) {
	if !j.waits || j.link != 0 {
		return
	}
	j.waits = false
	l.write(&lifeEntry{kind: resumption, job: j, to: j.resuming,
		records: []Record{j.end(), l.record(j, Record{Kind: JobResumed})}})
}

// onGiveUp drops the request of a client that waits for the end of a job's last process.
func (l *Life) onGiveUp(who uint64) {
	for _, j := range l.jobs {
		if j.waits && j.resuming == who {
			j.waits, j.resuming = false, 0
			l.refuse(who, codes.ResourceExhausted, "the job cannot be resumed: its last process is still connected")
		}
	}
}

// resumed continues a job once its resumption is in the journal. Where it may be journaled
// only later, its end is journaled again after it.
func (l *Life) resumed(w *lifeEntry, ev *LifeWritten) {
	j := w.job
	j.resuming = 0
	if ev.Outcome != Applied {
		l.refuse(w.to, codes.ResourceExhausted, "the job cannot be resumed: "+ev.Why)
		if ev.Outcome == Unknown {
			l.write(&lifeEntry{kind: settlement, job: j, records: []Record{j.end()}})
		}
		return
	}
	j.state, j.why, j.ended, j.restarts, j.owes, j.wait = JobWaiting, "", 0, 0, false, startWait
	j.cancelled, j.kept, j.failure, j.said, j.commit, j.trouble = false, 0, "", nil, nil, ""
	j.phase, j.queued, j.sized = lifeQueued, w.records[1].At, false
	j.first, j.late, j.begun = time.Time{}, false, false
	l.log(LogInfo, "job is resumed", "job", j.id)
	l.do(LifeCommand{Renew: j.id})
	l.enter(j)
	l.reply(&LifeReply{To: w.to, Job: j.id})
	l.nextTurns()
}
