package daemon

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// How long to wait before a process is restarted that ended through no fault of its job,
// or could not be started: longer each time, up to a bound.
const (
	startWait     = 100 * time.Millisecond
	startWaitMost = 10 * time.Second
)

// cancelGrace is how long a cancelled job may take to reach the end of a step.
const cancelGrace = 3 * time.Second

// startsSoon begins the reason why a job waits whose process is about to be restarted.
const startsSoon = "its process is started again soon: "

// notPresent is the error for a process that is not the job's present one.
const notPresent = "this is not the job's present process"

// lifePhase is the phase of a job's process.
type lifePhase uint8

const (
	lifeEntering lifePhase = iota // its submission is not in the journal yet
	lifeQueued                    // it waits for its turn
	lifeNoting                    // its next process is being journaled
	lifeStarting                  // which is being started
	lifeRunning
	lifePausing // it is restarted after a delay
	lifeEnding  // its end is being journaled
	lifeOver
	lifeHalted // it continues when the driver is started again
)

// lifeJob is a job of a driver.
type lifeJob struct {
	id        string
	number    int
	spec      *JobSpec
	state     string
	why       string
	step      uint64
	restarts  uint32
	term      uint32 // of the last process
	submitted int64
	ended     int64
	queued    int64 // when it was submitted, or last resumed: its turn
	begun     bool  // an earlier driver had started it
	shown     JobShown

	phase     lifePhase
	asked     uint64   // request that waits for its submission
	cancels   []uint64 // requests that have cancelled it, and wait until the journal has that
	cancelled bool
	kept      int64        // when it was cancelled, once the journal has that; 0 before
	failure   string       // why its process was killed, where that ends the job
	said      *ProcessSaid // of its end, by the present process
	owes      bool         // a restart that is not in the journal
	began     time.Time    // the present process
	first     time.Time    // when the first process was started, of this driver or an earlier one
	late      bool         // it has run longer than it may, and its process was killed
	wait      time.Duration
	at        time.Time // time of its restart
	killAt    time.Time // when a cancelled process is killed
	queue     []*lifeEntry

	link      uint64 // the connection of its process; 0 while there is none
	linked    uint32 // term of that process: the present one may not have connected yet
	trouble   string // what keeps its process from committing steps
	slots     map[string]*lifeSlot
	commit    *Record // the last step, where the journal does not have it
	journaled time.Time

	readers  int    // of its files
	leaving  bool   // it is being removed
	resuming uint64 // request that waits until it continues
	waits    bool   // it waits for the connection of its last process to end
	bytes    int64
	sized    bool
}

// Adopt takes a job of the journal over.
func (l *Life) Adopt(id string, s JobState) {
	j := &lifeJob{id: id, number: jobNumber(id), spec: &s.Spec, state: s.State, why: s.Ended, step: uint64(s.Step),
		restarts: s.Restarts, term: plantedAdopted(s.Term),
		submitted: s.Submitted, ended: s.EndedAt, queued: max(s.Submitted, s.Resumed), phase: lifeQueued,
		first: started(s.Started),
		wait:  startWait, slots: map[string]*lifeSlot{}}
	j.begun = s.Term > 0
	if l.jobs[id] = j; j.state == "" {
		j.state = JobWaiting
	}
	if Over(j.state) {
		j.phase = lifeOver
		return
	}
	l.enter(j)
}

// LifeRequest is a request to the driver, which is answered.
type LifeRequest struct {
	From   uint64 // request to reply to
	Submit *JobSpec
	Cancel string // this job
	Resume string
	Gone   string // a resumed job's directory cannot be used, and why
	Read   string // read its files, until Done
	Done   string
	Prune  *LifePrune
	Remove string // this job, which has ended
	GiveUp uint64 // the client of this request has given up
}

func (l *Life) onAsk(a *LifeRequest) {
	switch {
	case a.Submit != nil:
		l.onSubmit(a)
	case a.Cancel != "":
		l.onCancel(a)
	case a.Resume != "":
		l.onResume(a)
	case a.Read != "":
		l.onRead(a)
	case a.Done != "":
		if j := l.jobs[a.Done]; j != nil {
			j.readers--
		}
	case a.Prune != nil:
		l.pruneNow(&pruning{to: a.From, keep: a.Prune.Keep, grace: a.Prune.Grace})
	case a.Remove != "":
		l.onRemove(a)
	case a.GiveUp != 0:
		l.onGiveUp(a.GiveUp)
	}
}

// goingDown is the error of requests to a driver that shuts down.
const goingDown = "the driver is going down"

// onSubmit admits a job.
func (l *Life) onSubmit(a *LifeRequest) {
	if l.closing {
		l.refuse(a.From, codes.Unavailable, goingDown)
		return
	}
	j := &lifeJob{spec: a.Submit, state: JobWaiting, submitted: l.now.UnixNano(), queued: l.now.UnixNano(),
		asked: a.From, wait: startWait, slots: map[string]*lifeSlot{}}
	l.name(j)
}

// name gives a job the next number, and requests its directory: it is never another
// job's.
func (l *Life) name(j *lifeJob) {
	l.last++
	j.number, j.id = l.last, jobName(l.last)
	l.jobs[j.id] = j
	l.enter(j)
	l.show(j)
	l.do(LifeCommand{MakeDir: j.id})
}

// drop removes a job whose submission failed.
func (l *Life) drop(j *lifeJob) {
	delete(l.jobs, j.id)
	l.leave(j)
	l.do(LifeCommand{Forget: []string{j.id}})
}

func (l *Life) onMade(ev *LifeMade) {
	j := l.jobs[ev.Job]
	switch {
	case j == nil || j.phase != lifeEntering:
	case plantedTaken(ev.Taken): // by the files of a failed submission
		l.drop(j)
		l.name(j)
	case ev.Failed != "" && !ev.Taken:
		l.notKept(j, ev.Failed)
	default:
		r := l.record(j, Record{Kind: JobSubmitted, Spec: j.spec})
		r.At = j.submitted
		l.write(&lifeEntry{kind: submission, job: j, records: []Record{r}})
	}
}

// notKept refuses a submission.
func (l *Life) notKept(j *lifeJob, why string) {
	l.refuse(j.asked, codes.ResourceExhausted, "the job cannot be kept: "+why)
	l.abandon(j)
}

// abandon forgets a submission that the journal has not confirmed.
func (l *Life) abandon(j *lifeJob) {
	l.drop(j)
	l.answerCancels(j, &LifeReply{})
	l.nextTurns()
}

// answerCancels answers the requests that have cancelled a job.
func (l *Life) answerCancels(j *lifeJob, as *LifeReply) {
	for _, who := range j.cancels {
		l.reply(&LifeReply{To: who, Job: j.id, Code: as.Code, Why: as.Why})
	}
	j.cancels = nil
}

// submitted continues once a submission is in the journal.
func (l *Life) submitted(w *lifeEntry, ev *LifeWritten) {
	j := w.job
	if ev.Outcome == Applied {
		l.reply(&LifeReply{To: j.asked, Job: j.id})
		j.phase = lifeQueued
		if len(j.cancels) > 0 {
			l.cancel(j)
		}
		l.nextTurns()
		return
	}
	if ev.Outcome == NotApplied {
		l.notKept(j, ev.Why)
		return
	}
	l.refuse(j.asked, codes.Aborted, "it is not known whether the job is kept ("+ev.Why+"): look for it with volley "+
		"jobs before you submit it again")
	l.abandon(j) // it may be journaled later: then so is this, after it
	r := l.record(j, Record{Kind: JobEnded, State: JobCancelled, Reason: "it could not be kept in time"})
	l.write(&lifeEntry{kind: settlement, job: j, records: []Record{r}})
}

// start journals the job's next process, which is started then.
func (l *Life) start(j *lifeJob) {
	if j.cancelled || l.closing {
		return
	}
	j.phase, j.began, j.at, j.said = lifeNoting, l.now, time.Time{}, nil
	if j.first.IsZero() {
		j.first = l.now
	}
	j.term = plantedTerm(j.term + 1)
	var records []Record
	if j.owes {
		records = append(records, l.record(j, Record{Kind: JobRestarted}))
	}
	records = append(records, l.record(j, Record{Kind: JobStarted, Term: j.term}))
	l.write(&lifeEntry{kind: startOfProcess, job: j, records: records})
	plantedStart(l, j)
}

// noted continues once a process is in the journal.
func (l *Life) noted(j *lifeJob, ev *LifeWritten) {
	if j.phase != lifeNoting {
		return
	}
	if ev.Outcome != NotApplied {
		j.owes = false
	}
	switch {
	case j.cancelled:
		l.toEnd(j, JobCancelled, "cancelled")
	case l.closing:
		j.phase = lifeHalted
	case ev.Outcome != Applied:
		l.startLater(j, "it was not started: "+ev.Why)
	default:
		l.launch(j)
	}
}

func (l *Life) launch(j *lifeJob) {
	j.phase = lifeStarting
	l.do(LifeCommand{Start: &LifeStart{Job: j.id, Term: j.term, Incarnation: j.incarnation()}})
}

// incarnation returns a name that no other process of any job has.
func (j *lifeJob) incarnation() string { return fmt.Sprintf("%s.%d", j.id, j.term) }

// startLater restarts, after a delay, a process that ended through no fault of its job.
func (l *Life) startLater(j *lifeJob, why string) {
	if l.now.Sub(j.began) > startWaitMost {
		j.wait = startWait // it ran well for a while
	}
	l.log(LogWarn, "a job's process is started again after a while", "job", j.id, "why", why, "after", j.wait)
	j.phase, j.state, j.why = lifePausing, JobWaiting, startsSoon+why
	j.at, j.wait = l.now.Add(j.wait), min(2*j.wait, startWaitMost)
	plantedPause(l, j)
}

// due returns the time of the job's next timeout; zero is never.
func (j *lifeJob) due() time.Time {
	at := sooner(j.killAt, j.deadline())
	if j.phase == lifePausing && !j.cancelled {
		at = sooner(at, j.at)
	}
	for _, s := range j.slots {
		at = sooner(at, s.readmit)
	}
	return at
}

// jobDue handles the timeouts of a job that are due.
func (l *Life) jobDue(j *lifeJob) {
	if j.phase == lifePausing && !l.now.Before(j.at) {
		l.start(j)
	}
	if !j.killAt.IsZero() && !l.now.Before(j.killAt) {
		l.kill(j, "it was cancelled and did not stop in time")
	}
	l.overdue(j)
	l.readmitDue(j)
}

// ProcessEvent is something about a job's process, which its term names: it runs, could not
// be started, has ended, or reports its end.
type ProcessEvent struct {
	Job     string
	Term    uint32
	Started bool
	Failed  *ProcessFailed
	Exited  *ProcessExited
	Said    *ProcessSaid
}

// ProcessFailed is why a process could not be started. A passing failure may be retried.
type ProcessFailed struct {
	Why    string
	Words  string // the same, for users
	Passes bool
	Never  bool
}

// ProcessExited is how a process has ended.
type ProcessExited struct {
	Why   string // its exit status
	Lost  bool   // it has lost the driver
	Words string // what is known of the reason
}

// ProcessSaid is a process's report of its end.
type ProcessSaid struct {
	From        uint64 // request to reply to
	Incarnation string
	Code        uint32 // 0 is success
	Why         string
	Files       []MadeFile
	Saved       []Saved
}

func (l *Life) onProcess(ev *ProcessEvent) {
	j := l.jobs[ev.Job]
	if j == nil {
		return
	}
	switch {
	case ev.Said != nil:
		l.onSaid(j, ev.Said)
	case j.term != ev.Term || j.phase != lifeStarting && j.phase != lifeRunning:
	case ev.Started:
		l.started(j)
	case ev.Failed != nil:
		l.ended(j, lifeEnd{passing: ev.Failed.Passes, never: neverWhy(ev.Failed)}, ev.Failed.Why, ev.Failed.Words)
	case ev.Exited != nil:
		l.ended(j, lifeEnd{lost: ev.Exited.Lost}, ev.Exited.Why, ev.Exited.Words)
	}
}

func neverWhy(f *ProcessFailed) string {
	if f.Never {
		return f.Why
	}
	return ""
}

func (l *Life) started(j *lifeJob) {
	j.phase, j.state = lifeRunning, JobRunning
	if strings.HasPrefix(j.why, startsSoon) {
		j.why = ""
	}
	switch {
	case j.cancelled || l.closing:
		l.kill(j, "the job is cancelled")
	case plantedBeyond(j.late, j.failure != ""): // it has run for too long, or taken too much, before
		l.kill(j, j.failure)
	}
}

// onSaid handles a process's report of its end. A report of another process than the present
// one is refused.
func (l *Life) onSaid(j *lifeJob, s *ProcessSaid) {
	present := plantedPresent(s.Incarnation == j.incarnation())
	if !present || j.phase != lifeStarting && j.phase != lifeRunning {
		l.refuse(s.From, codes.FailedPrecondition, notPresent)
		return
	}
	j.said = s
	l.reply(&LifeReply{To: s.From, Job: j.id})
}

// restartsMost returns how often the job's process is started again.
func (j *lifeJob) restartsMost(others uint32) uint32 {
	if j.spec.Restarts != nil {
		return *j.spec.Restarts
	}
	return others
}

// ended decides what follows from the end of a process, or from its failure to start.
func (l *Life) ended(j *lifeJob, e lifeEnd, how, words string) {
	e.cancelled, e.failure, e.closing, e.restarts, e.most = j.cancelled, j.failure, l.closing, j.restarts,
		j.restartsMost(l.cfg.Restarts)
	if j.said != nil {
		e.said, e.code, e.why = true, j.said.Code, j.said.Why
		if j.late {
			e.failure = "" // it has come to its end after all
		}
	}
	plantedEnd(&e)
	j.killAt = time.Time{}
	switch v, why := e.judge(); v {
	case jobGoesOn:
		j.phase = lifeHalted
	case jobIsDone:
		l.toEnd(j, JobDone, "")
	case jobIsCancelled:
		l.toEnd(j, JobCancelled, why)
	case jobHasFailed:
		if why == "" {
			why = words
		}
		l.toEnd(j, JobFailed, why)
	case startAgain:
		l.startAgain(j, how)
	case startLater:
		l.startLater(j, how)
	}
}

// startAgain restarts a process that ended without a report.
func (l *Life) startAgain(j *lifeJob, how string) {
	l.log(LogWarn, "job process ended without reporting its end; it is restarted", "job", j.id, "why", how)
	if plantedCounts() {
		j.restarts++
		j.owes = true
	}
	l.start(j)
}

// toEnd journals the end of a job, after its last step.
func (l *Life) toEnd(j *lifeJob, state, why string) {
	j.phase, j.at, j.killAt = lifeEnding, time.Time{}, time.Time{}
	if plantedFlushes() {
		l.flush(j)
	}
	r := Record{Kind: JobEnded, State: state, Reason: why}
	if j.said != nil && state == JobDone {
		r.Files, r.Saved = j.said.Files, j.said.Saved
	}
	l.write(&lifeEntry{kind: endOfJob, job: j, records: []Record{l.record(j, r)}, result: state == JobDone})
}

// over ends a job, once the journal has its end.
func (l *Life) over(j *lifeJob, end Record) {
	j.phase, j.state, j.why, j.ended = lifeOver, end.State, end.Reason, cmp.Or(j.kept, end.At)
	l.leave(j)
	l.answerCancels(j, &LifeReply{})
	for _, m := range l.byName() {
		m.exclude(j.id, "")
	}
	l.log(LogInfo, "job ended", "job", j.id, "state", j.state, "why", j.why)
	l.do(LifeCommand{Over: &LifeOver{Job: j.id, Files: end.Files, Saved: end.Saved}})
	l.show(j)
	l.noteAllDrained()
	l.nextTurns()
}

// onCancel ends a job's process at the end of a step, or at once after a timeout.
func (l *Life) onCancel(a *LifeRequest) {
	j := l.jobs[a.Cancel]
	switch {
	case j == nil:
		l.notThere(a.From, a.Cancel)
	case j.phase == lifeEntering: // the journal does not have the job yet
		j.cancels = append(j.cancels, a.From)
	default:
		j.cancels = append(j.cancels, a.From)
		l.cancel(j)
	}
}

// cancel journals the cancellation of a job first. Who has asked for it is answered when the journal has it: another
// driver that leads next knows of it then.
func (l *Life) cancel(j *lifeJob) {
	switch {
	case j.phase == lifeOver || j.kept != 0 || j.cancelled && !plantedWaited():
		l.answerCancels(j, &LifeReply{})
	case j.phase == lifeEnding || j.cancelled: // it is being written
	case l.closing:
		l.answerCancels(j, &LifeReply{Code: codes.Unavailable, Why: goingDown})
	default:
		j.cancelled = true
		r := l.record(j, Record{Kind: JobEnded, State: JobCancelled, Reason: "cancelled"})
		l.write(&lifeEntry{kind: cancellation, job: j, records: []Record{r}})
	}
}

// beingCancelled says why a job is still there that was cancelled.
const beingCancelled = "it is cancelled, and ends after its step"

// cancelNoted continues once a cancellation is in the journal, or cannot be: the end is journaled later, if this driver
// still leads then.
func (l *Life) cancelNoted(w *lifeEntry, ev *LifeWritten) {
	j := w.job
	if ev.Outcome == Applied {
		j.kept = w.records[0].At
		l.answerCancels(j, &LifeReply{})
	} else {
		l.answerCancels(j, &LifeReply{Code: codes.Aborted, Why: "the job is about to end, but the journal does not " +
			"have that, and it may go on under the next driver: cancel it again (" + ev.Why + ")"})
	}
	switch j.phase {
	case lifeQueued:
		if j.term == 0 && j.kept != 0 { // no process of it has left anything to be kept
			l.over(j, w.records[0])
			return
		}
		l.toEnd(j, JobCancelled, "cancelled")
	case lifePausing:
		l.toEnd(j, JobCancelled, "cancelled")
	case lifeStarting, lifeRunning:
		l.do(LifeCommand{Interrupt: &LifeProcess{Job: j.id, Term: j.term, Why: "it is cancelled"}})
		j.killAt = plantedKill(l.now.Add(cancelGrace))
	}
}

func (l *Life) kill(j *lifeJob, why string) {
	j.killAt = time.Time{}
	l.do(LifeCommand{Kill: &LifeProcess{Job: j.id, Term: j.term, Why: why}})
}

// notThere refuses requests for a job that does not exist, or was removed.
func (l *Life) notThere(to uint64, id string) {
	if l.Had(id) {
		l.refuse(to, codes.NotFound, notKeptWhy(id))
		return
	}
	l.refuse(to, codes.NotFound, fmt.Sprintf("there is no job %q", id))
}
