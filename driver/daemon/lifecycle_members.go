package daemon

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
)

// maxRunners is how often in a row an executor is asked for a runner of one job
// before it is excluded for a while.
const (
	maxRunners = 5
	leftAlone  = 30 * time.Second
)

// journalEvery is the shortest time between two steps of a job that go to the
// journal; those between are in the job's own checkpoints or are recomputed.
const journalEvery = 100 * time.Millisecond

// lifeMember is a connected executor.
type lifeMember struct {
	name        string
	link        uint64
	incarnation string // which process of that name
	since       time.Time
	unfit       string // why it can start no runner
	draining    bool
	drained     bool
	leaving     bool              // it ends when it is drained
	excluded    map[string]string // jobs that give it no work for now, and why
	changed     bool
}

// lifeSlot is a job's runner on an executor.
type lifeSlot struct {
	runner  uint64
	opened  int       // runners in a row
	at      time.Time // the last of them
	readmit time.Time // time of the next request; zero while it is not excluded
}

// exclude notes why a job gives an executor no work for now, or, without a
// reason, that the exclusion has ended.
func (m *lifeMember) exclude(job, why string) {
	if m.excluded[job] == why {
		return
	}
	if m.changed = true; why == "" {
		delete(m.excluded, job)
		return
	}
	m.excluded[job] = why
}

// takesNoWork reports whether no runner may be started on the executor now.
func (m *lifeMember) takesNoWork() bool {
	return plantedIdle(m, m.draining || m.unfit != "")
}

// MemberEvent is something about an executor, by a connection of it.
type MemberEvent struct {
	Executor string
	Link     uint64
	Joined   *MemberJoined
	Left     bool
	Why      string  // it has left
	Unfit    *string // why it can start no runner, empty where it can
	Drain    bool    // drain request, which holds for any connection
	From     uint64  // request to reply to
	Leaving  bool    // it asks to shut down
	Ended    *LifeRunner
}

// MemberJoined is an executor that registers.
type MemberJoined struct {
	From        uint64 // request to reply to
	Incarnation string
}

func (l *Life) onMember(ev *MemberEvent) {
	if ev.Joined != nil {
		l.join(ev)
		return
	}
	m := l.members[ev.Executor]
	if ev.Drain && m == nil {
		l.refuse(ev.From, codes.NotFound, fmt.Sprintf("there is no executor %q", ev.Executor))
	}
	if m == nil || !ev.Drain && m.link != ev.Link {
		return // it is back already, and its jobs know
	}
	switch {
	case ev.Left:
		l.left(m, ev.Why)
	case ev.Unfit != nil:
		l.fitness(m, *ev.Unfit)
	case ev.Drain:
		l.drain(m)
		l.reply(&LifeReply{To: ev.From})
	case ev.Leaving:
		l.wantsToEnd(m)
	case ev.Ended != nil:
		l.runnerEnded(m, ev.Ended)
	}
}

// join admits an executor. One that registers again replaces its last connection.
func (l *Life) join(ev *MemberEvent) {
	old := l.members[ev.Executor]
	if old != nil && old.incarnation != ev.Joined.Incarnation {
		l.refuse(ev.Joined.From, codes.AlreadyExists,
			fmt.Sprintf("another executor named %s is here since %s", old.name, old.since.Format(time.DateTime)))
		return
	}
	if old != nil {
		l.do(LifeCommand{Drop: &LifeMember{Executor: old.name, Link: old.link, Why: "it registered again"}})
	}
	m := &lifeMember{name: ev.Executor, link: ev.Link, incarnation: ev.Joined.Incarnation, since: l.now,
		excluded: map[string]string{}, changed: true}
	l.members[m.name] = m
	l.do(LifeCommand{Admit: &LifeMember{Executor: m.name, Link: m.link}})
	l.reply(&LifeReply{To: ev.Joined.From})
	l.openAll(m)
	l.explain()
}

// openAll starts runners of the running jobs on an executor.
func (l *Life) openAll(m *lifeMember) {
	for _, j := range l.live {
		if j.connected() {
			delete(j.slots, m.name)
			l.openOn(j, m)
		}
	}
}

// connected reports whether the job has a process that needs runners: one that has reported
// its end does not.
func (j *lifeJob) connected() bool {
	return j.linkedNow() && j.said == nil
}

// linkedNow reports whether the connection is that of the present process, which runs.
func (j *lifeJob) linkedNow() bool {
	return j.link != 0 && j.linked == j.term && (j.phase == lifeStarting || j.phase == lifeRunning)
}

// openOn asks an executor for a runner.
func (l *Life) openOn(j *lifeJob, m *lifeMember) {
	if m.takesNoWork() {
		return
	}
	s := j.slots[m.name]
	if s == nil {
		s = &lifeSlot{}
		j.slots[m.name] = s
	}
	l.runners++
	s.opened, s.at, s.runner, s.readmit = s.opened+1, l.now, l.runners, time.Time{}
	l.do(LifeCommand{Open: &LifeRunner{Executor: m.name, Job: j.id, ID: s.runner}})
}

// left notifies running jobs of the loss of an executor.
func (l *Life) left(m *lifeMember, why string) {
	delete(l.members, m.name)
	for _, j := range l.live {
		delete(j.slots, m.name)
		l.tell(j, LifeNotice{Left: m.name, Why: why})
	}
	l.explain()
}

// tell sends a message to the job's process, if there is one.
func (l *Life) tell(j *lifeJob, t LifeNotice) {
	if j.link != 0 {
		t.Job, t.Link = j.id, j.link
		l.do(LifeCommand{Tell: &t})
	}
}

// fitness starts runners on an executor that is fit again, and ends those on one that no
// longer is: the jobs' other executors take over.
func (l *Life) fitness(m *lifeMember, why string) {
	if m.unfit == why {
		return
	}
	before := m.unfit
	if m.unfit = why; why == "" {
		l.log(LogInfo, "executor is fit again", "executor", m.name)
		l.openAll(m)
		l.explain()
		return
	}
	if before == "" {
		l.log(LogError, "executor is unfit", "executor", m.name, "why", why)
	}
	for _, j := range l.live {
		runs := j.runsOn(m.name)
		if delete(j.slots, m.name); runs {
			l.closeOn(j, m, why)
			l.tell(j, LifeNotice{Left: m.name, Why: why})
		}
	}
	l.noteDrained(m)
	l.explain()
}

// closeOn ends a job's runner on an executor.
func (l *Life) closeOn(j *lifeJob, m *lifeMember, why string) {
	delete(j.slots, m.name)
	l.do(LifeCommand{Close: &LifeRunner{Executor: m.name, Job: j.id, Why: why}})
}

// wantsToEnd drains an executor that asks to shut down, unless no other executor can
// take its work.
func (l *Life) wantsToEnd(m *lifeMember) {
	m.leaving = true
	for _, o := range l.members {
		if o != m && !o.draining {
			l.drain(m)
			return
		}
	}
	l.log(LogWarn, "the last executor leaves", "executor", m.name)
	l.do(LifeCommand{Goodbye: m.name})
}

// drain makes every running job move off an executor.
func (l *Life) drain(m *lifeMember) {
	m.draining, m.changed = true, true
	l.log(LogInfo, "executor drains", "executor", m.name)
	for _, j := range l.live {
		if j.runsOn(m.name) {
			l.tell(j, LifeNotice{Drain: m.name})
		}
	}
	l.noteDrained(m)
}

// noteAllDrained marks all draining executors that have no work left.
func (l *Life) noteAllDrained() {
	for _, m := range l.byName() {
		l.noteDrained(m)
	}
}

// noteDrained marks a draining executor if no job has anything left on it.
func (l *Life) noteDrained(m *lifeMember) {
	busy := slices.ContainsFunc(l.live, func(j *lifeJob) bool { return j.runsOn(m.name) })
	if !m.draining || plantedBusy(busy) {
		return
	}
	if !m.drained {
		m.drained, m.changed = true, true
	}
	if m.leaving {
		m.leaving = false // it is notified once
		l.do(LifeCommand{Goodbye: m.name})
	}
}

// runsOn reports whether the job has a runner on an executor.
func (j *lifeJob) runsOn(executor string) bool {
	s := j.slots[executor]
	return j.link != 0 && s != nil && s.runner != 0
}

// byName returns the connected executors.
func (l *Life) byName() []*lifeMember {
	return slices.SortedFunc(maps.Values(l.members),
		func(a, b *lifeMember) int { return strings.Compare(a.name, b.name) })
}

// explain notes which running jobs wait for executors, and what keeps jobs from
// committing steps.
func (l *Life) explain() {
	if len(l.live) == 0 {
		return
	}
	missing := l.missing()
	for _, j := range l.live {
		if j.state == JobRunning && j.phase != lifeEnding {
			j.why = cmp.Or(missing, j.trouble)
		}
	}
}

// missing returns why jobs wait for executors; empty where there is a fit one.
func (l *Life) missing() string {
	var unfit []string
	for _, m := range l.byName() {
		switch {
		case m.unfit != "":
			unfit = append(unfit, m.name+" is unfit: "+m.unfit)
		case m.drained:
			unfit = append(unfit, m.name+" is drained: start it again, or another")
		default:
			return ""
		}
	}
	if len(unfit) == 0 {
		return "it waits for an executor: none is connected"
	}
	return "it waits for an executor: " + strings.Join(unfit, "; ")
}

// showMembers publishes the executors whose visible state has changed.
func (l *Life) showMembers() {
	var changed []*lifeMember
	for _, m := range l.members {
		if m.changed {
			changed = append(changed, m)
		}
	}
	slices.SortFunc(changed, func(a, b *lifeMember) int { return cmp.Compare(a.name, b.name) })
	for _, m := range changed {
		m.changed = false
		l.do(LifeCommand{Executor: &ExecutorShown{Executor: m.name, Draining: m.draining, Drained: m.drained,
			Excluded: m.exclusions()}})
	}
}

// exclusions returns the jobs that give the executor no work, and why.
func (m *lifeMember) exclusions() string {
	var out []string
	for _, job := range slices.Sorted(maps.Keys(m.excluded)) {
		out = append(out, fmt.Sprintf("excluded from %s: %s", job, m.excluded[job]))
	}
	return strings.Join(out, "; ")
}

// runnerEnded notifies a job of the end of its runner on an executor, and requests
// another. A report on another runner than the last one requested is stale.
func (l *Life) runnerEnded(m *lifeMember, r *LifeRunner) {
	j := l.jobs[r.Job]
	if j == nil {
		return
	}
	s := j.slots[m.name]
	if s == nil || plantedEarlier(s.runner != r.ID) {
		return
	}
	l.tell(j, LifeNotice{Left: m.name, Why: r.Why})
	switch {
	case m.draining:
		delete(j.slots, m.name)
		l.noteDrained(m)
	case !j.connected() || m.unfit != "": // which is not the job's fault; it is asked again when it is fit
		delete(j.slots, m.name)
	default:
		l.another(j, m, s, r.Why)
	}
}

// another requests another runner of an executor, or excludes it for a while.
func (l *Life) another(j *lifeJob, m *lifeMember, s *lifeSlot, why string) {
	if l.now.Sub(s.at) > leftAlone {
		s.opened = 1 // it was well for a while
	}
	if plantedAgain(s.opened < maxRunners) {
		l.log(LogWarn, "runner ended", "executor", m.name, "job", j.id, "why", why)
		l.openOn(j, m)
		return
	}
	s.runner = 0
	m.exclude(j.id, fmt.Sprintf("%d runners ended, the last because %s", maxRunners, why))
	l.log(LogError, "executor excluded from a job", "executor", m.name, "job", j.id, "why", why, "runners ended",
		maxRunners)
	if plantedHopeless(l.hopeless(j)) {
		j.failure = fmt.Sprintf("its runners ended on every executor, the last because %s", why)
		l.kill(j, j.failure)
		return
	}
	s.readmit = plantedReadmit(l.now.Add(leftAlone))
}

// hopeless reports whether there is no executor left on which the job's runners have not
// ended too often.
func (l *Life) hopeless(j *lifeJob) bool {
	some := false
	for _, m := range l.members {
		if m.draining {
			continue
		}
		s := j.slots[m.name]
		if some = true; s == nil || s.runner != 0 || s.opened < maxRunners {
			return false
		}
	}
	return some
}

// readmitDue asks executors again whose exclusion has ended.
func (l *Life) readmitDue(j *lifeJob) {
	for _, name := range slices.Sorted(maps.Keys(j.slots)) {
		s, m := j.slots[name], l.members[name]
		if s.readmit.IsZero() || l.now.Before(s.readmit) {
			continue
		}
		delete(j.slots, name)
		if m != nil {
			m.exclude(j.id, "")
		}
		if m != nil && j.connected() {
			l.openOn(j, m)
		}
	}
}

// LinkEvent is something about the connection of a job's process.
type LinkEvent struct {
	Job       string
	Link      uint64
	Connected *LinkConnected
	HungUp    bool
	Deaf      string // why it counts as hung
	Silent    string // time since its last heartbeat
	Commit    *Record
	Drained   string // its last split has moved off this executor
	Exclusion *driver.Exclusion
	Trouble   *string
}

// LinkConnected is a process that connects.
type LinkConnected struct {
	From        uint64 // request to reply to
	Incarnation string
}

func (l *Life) onLink(ev *LinkEvent) {
	j := l.jobs[ev.Job]
	switch {
	case j == nil && ev.Connected != nil:
		l.notThere(ev.Connected.From, ev.Job)
	case j == nil:
	case ev.Connected != nil:
		l.connect(j, ev)
	case ev.Link != j.link: // another process has taken its place
	case ev.HungUp:
		l.hungUp(j)
	case ev.Commit != nil:
		l.committed(j, ev.Commit)
	default:
		l.heard(j, ev)
	}
}

// heard handles an event of a connected process.
func (l *Life) heard(j *lifeJob, ev *LinkEvent) {
	switch {
	case !j.linkedNow(): // an event of an earlier process does not concern the present one
	case ev.Deaf != "":
		l.log(LogWarn, "job process does not read; it is killed", "job", j.id, "why", ev.Deaf)
		l.killStuck(j) // it would wait for ever for the messages that it did not read
	case ev.Silent != "":
		l.log(LogWarn, "job process hangs; it is killed", "job", j.id, "silent for", ev.Silent)
		l.killStuck(j)
	case ev.Drained != "":
		l.movedOff(j, ev.Drained)
	case ev.Exclusion != nil:
		if m := l.members[string(ev.Exclusion.Executor)]; m != nil {
			m.exclude(j.id, ev.Exclusion.Why)
		}
	case ev.Trouble != nil:
		j.trouble = *ev.Trouble
		l.explain()
	}
}

// killStuck kills a process that hangs; it is restarted like others that were killed.
func (l *Life) killStuck(j *lifeJob) {
	l.kill(j, "it hangs")
	plantedKilled(l, j)
}

// connect takes a job's process over and starts runners everywhere.
func (l *Life) connect(j *lifeJob, ev *LinkEvent) {
	if ev.Connected.Incarnation != j.incarnation() || j.phase != lifeStarting && j.phase != lifeRunning {
		l.refuse(ev.Connected.From, codes.FailedPrecondition, notPresent)
		return
	}
	var members []*lifeMember
	for _, m := range l.byName() {
		if !m.takesNoWork() {
			members = append(members, m)
		} else if j.runsOn(m.name) { // of an earlier process, whose connection has not ended yet
			l.closeOn(j, m, "")
		}
	}
	j.link, j.linked, j.slots, j.trouble = ev.Link, j.term, map[string]*lifeSlot{}, ""
	l.reply(&LifeReply{To: ev.Connected.From, Job: j.id})
	l.tell(j, LifeNotice{Welcome: true, Executors: len(members)})
	for _, m := range members {
		m.exclude(j.id, "") // that was of an earlier process
		l.openOn(j, m)
	}
	l.noteAllDrained()
	j.why = l.missing()
}

// hungUp ends the runners of a process whose connection has ended.
func (l *Life) hungUp(j *lifeJob) {
	j.link, j.slots = 0, map[string]*lifeSlot{}
	for _, m := range l.byName() {
		l.do(LifeCommand{Close: &LifeRunner{Executor: m.name, Job: j.id}})
	}
	l.noteAllDrained()
	l.resumeIfGone(j)
}

// movedOff ends the runner of a drained executor. One that does not drain any more has
// registered again since, and has another runner by now.
func (l *Life) movedOff(j *lifeJob, executor string) {
	m := l.members[executor]
	if m == nil || !m.draining {
		return
	}
	l.log(LogInfo, "executor drained", "executor", executor, "job", j.id)
	l.closeOn(j, m, "")
	l.tell(j, LifeNotice{Left: executor, Why: "it was drained"})
	l.noteDrained(m)
}

// committed records a job's step. It goes to the journal at once where none has for a while.
func (l *Life) committed(j *lifeJob, c *Record) {
	j.step = uint64(c.Step)
	if j.cancelled || j.phase != lifeRunning && j.phase != lifeStarting {
		return // the journal has its end, or is about to
	}
	r := *c
	r.Kind, r.Job = StepCommitted, plan.JobID(j.id)
	j.commit = &r
	if l.now.Sub(j.journaled) >= journalEvery {
		j.journaled = l.now
		l.flush(j)
	}
}

// flush hands the last step to the journal, if it does not have it. Of waiting steps only
// the last counts.
func (l *Life) flush(j *lifeJob) {
	if j.commit == nil || j.cancelled {
		return
	}
	r := l.record(j, *j.commit)
	j.commit = nil
	if n := len(j.queue); n > 0 && j.queue[n-1].kind == committedStep && j.queue[n-1].id == 0 {
		j.queue[n-1].records = []Record{r}
		return
	}
	l.write(&lifeEntry{kind: committedStep, job: j, records: []Record{r}})
}
