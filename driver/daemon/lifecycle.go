package daemon

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// LifeConfig configures the lifecycle.
type LifeConfig struct {
	Restarts uint32 // how often a process is restarted that ended without a report
	MaxJobs  int    // how many jobs have a process at a time; 0 is no limit
	Keep     Keep
}

// Life is the lifecycle of a driver's jobs and executors: which processes and runners are
// started and ended, what goes to the journal first, and what is kept. It only decides; a
// shell feeds it events and carries out its commands.
type Life struct {
	cfg     LifeConfig
	now     time.Time
	jobs    map[string]*lifeJob
	live    []*lifeJob // those that have not ended, by number
	last    int        // the highest number that a job has had
	members map[string]*lifeMember
	runners uint64 // requested so far
	writes  map[uint64]*lifeEntry
	written uint64 // entries handed to the journal so far
	prunes  []*pruning
	pruneAt time.Time // zero before the driver has begun
	closing bool
	wakeAt  time.Time // requested of the shell
	out     []LifeCommand
	replies []*LifeReply
}

// NewLife returns the lifecycle of a driver from the state of its journal.
func NewLife(cfg LifeConfig, s State) *Life {
	l := &Life{cfg: cfg, jobs: map[string]*lifeJob{}, members: map[string]*lifeMember{},
		writes: map[uint64]*lifeEntry{}, last: s.Last}
	for id, j := range s.Jobs {
		l.Adopt(string(id), j)
	}
	return l
}

// LifeEvent is something that happened. Exactly one field is set; the zero event is the
// passing of time.
type LifeEvent struct {
	Began    bool // the driver has started
	Closing  bool // it shuts down: its jobs continue when it is started again
	Ask      *LifeRequest
	Made     *LifeMade
	Written  *LifeWritten
	Process  *ProcessEvent
	Link     *LinkEvent
	Member   *MemberEvent
	Measured map[string]int64 // bytes of jobs' directories
	Gone     *LifeGone
	Beyond   *LifeBeyond
}

// LifeBeyond says that a job takes more than it may: it fails.
type LifeBeyond struct{ Job, Why string }

// LifeMade answers MakeDir: the directory was made, is another's, or could not be made.
type LifeMade struct {
	Job    string
	Taken  bool
	Failed string
}

// Outcome is the outcome of an entry of the journal.
type Outcome uint8

// An entry whose outcome is unknown may be applied later.
const (
	Applied Outcome = iota
	NotApplied
	Unknown
)

// LifeWritten answers a Write.
type LifeWritten struct {
	ID      uint64
	Outcome Outcome
	Why     string // reason of another outcome than Applied
}

// LifeGone answers Remove.
type LifeGone struct {
	Jobs  []string
	Bytes int64 // that they had
}

// LifeCommand is something for the shell to do, in order. Exactly one field is set.
type LifeCommand struct {
	Write     *LifeWrite
	MakeDir   string // of this job
	Start     *LifeStart
	Kill      *LifeProcess
	Interrupt *LifeProcess
	Tell      *LifeNotice
	Open      *LifeRunner
	Close     *LifeRunner
	Admit     *LifeMember // admits it, and sends its welcome
	Drop      *LifeMember // ends its connection
	Goodbye   string      // shuts this executor down
	Shown     *JobShown
	Executor  *ExecutorShown
	Over      *LifeOver
	Renew     string   // this job, which had ended, continues
	Remove    []string // the directories of these jobs
	Forget    []string // these jobs were removed
	Measure   []string // the directories of these jobs
	Reply     *LifeReply
	WakeAt    time.Time
	Log       *LifeLog
}

// LifeWrite is an entry for the journal.
type LifeWrite struct {
	ID      uint64
	Job     string
	Records []Record
	Result  bool // the output of the job's process is kept first
}

// LifeStart starts a job's process.
type LifeStart struct {
	Job         string
	Term        uint32
	Incarnation string
}

// LifeProcess is a process of a job.
type LifeProcess struct {
	Job  string
	Term uint32
	Why  string
}

// LifeNotice is a message to a job's process, over a connection: welcome, with the number of
// executors; the loss of an executor; or a request to drain one.
type LifeNotice struct {
	Job         string
	Link        uint64
	Welcome     bool
	Executors   int
	Left, Drain string
	Why         string
}

// LifeRunner is a job's runner on an executor.
type LifeRunner struct {
	Executor string
	Job      string
	ID       uint64
	Why      string
}

// LifeMember is a connection of an executor.
type LifeMember struct {
	Executor string
	Link     uint64
	Why      string
}

// JobShown is a job as clients see it.
type JobShown struct {
	Job       string
	Spec      *JobSpec
	State     string
	Why       string
	Step      uint64
	Restarts  uint32
	Submitted int64
	Ended     int64
	Entering  bool // the journal does not have it: it is not shown yet, since it may never be there
}

// ExecutorShown is a connected executor as clients see it.
type ExecutorShown struct {
	Executor string
	Draining bool
	Drained  bool
	Excluded string // from which jobs, and why
}

// LifeOver announces the end of a job, once the journal has it.
type LifeOver struct {
	Job   string
	Files []MadeFile
	Saved []Saved
}

// LifeReply answers a request.
type LifeReply struct {
	To    uint64
	Job   string
	Jobs  []string
	Bytes int64
	Code  codes.Code // OK unless it is refused
	Why   string
}

// LifeLog is a line for the driver's log.
type LifeLog struct {
	Level LogLevel
	Text  string
	Pairs []any
}

// LogLevel is the severity of a line.
type LogLevel uint8

// The levels.
const (
	LogInfo LogLevel = iota
	LogWarn
	LogError
)

// Step takes an event and returns commands.
func (l *Life) Step(ev LifeEvent, now time.Time) []LifeCommand {
	l.now, l.out, l.replies = now, nil, nil
	l.take(ev)
	l.passTime()
	for _, j := range l.live {
		l.show(j)
	}
	l.showMembers()
	for _, r := range l.replies {
		l.do(LifeCommand{Reply: r})
	}
	l.askToWake()
	return l.out
}

func (l *Life) take(ev LifeEvent) {
	switch {
	case ev.Began:
		l.begin()
	case ev.Closing:
		l.close()
	case ev.Ask != nil:
		l.onAsk(ev.Ask)
	case ev.Made != nil:
		l.onMade(ev.Made)
	case ev.Written != nil:
		l.onWritten(ev.Written)
	case ev.Process != nil:
		l.onProcess(ev.Process)
	case ev.Link != nil:
		l.onLink(ev.Link)
	case ev.Member != nil:
		l.onMember(ev.Member)
	case ev.Measured != nil:
		l.onMeasured(ev.Measured)
	case ev.Gone != nil:
		l.onGone(ev.Gone)
	case ev.Beyond != nil:
		l.onBeyond(ev.Beyond)
	}
}

// Had reports whether there was a job of an id, which may have been removed.
func (l *Life) Had(id string) bool {
	n := jobNumber(id)
	return n > 0 && n <= l.last
}

// begin continues the jobs that had not ended.
func (l *Life) begin() {
	for _, j := range l.live {
		l.log(LogInfo, "job resumes", "job", j.id)
	}
	l.nextTurns()
	l.pruneAt = l.now
}

// close kills all processes; no job ends by that.
func (l *Life) close() {
	l.closing = true
	for _, j := range l.live {
		if j.phase == lifeStarting || j.phase == lifeRunning {
			l.kill(j, "the driver is going down")
		}
	}
}

// passTime does what is due.
func (l *Life) passTime() {
	if l.closing {
		return
	}
	for _, w := range l.writesDue() {
		l.emit(w)
	}
	for _, j := range slices.Clone(l.live) {
		l.jobDue(j)
	}
	if !l.pruneAt.IsZero() && !l.now.Before(l.pruneAt) {
		l.pruneAt = l.now.Add(pruneEvery)
		l.pruneNow(&pruning{keep: l.cfg.Keep, grace: pruneGrace})
	}
}

// askToWake requests a wake-up at the next time at which something is due, once.
func (l *Life) askToWake() {
	at := l.pruneAt
	for _, w := range l.writes {
		at = sooner(at, w.again)
	}
	for _, j := range l.live {
		at = sooner(at, j.due())
	}
	if at.IsZero() || l.closing || at.Equal(l.wakeAt) && l.wakeAt.After(l.now) {
		return
	}
	l.wakeAt = at
	l.do(LifeCommand{WakeAt: at})
}

// sooner returns the sooner of two times; zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (l *Life) do(c LifeCommand) { l.out = append(l.out, c) }

func (l *Life) reply(r *LifeReply) {
	if r.To != 0 {
		l.replies = append(l.replies, r)
	}
}

func (l *Life) refuse(to uint64, code codes.Code, why string) {
	l.reply(&LifeReply{To: to, Code: code, Why: why})
}

func (l *Life) log(level LogLevel, text string, pairs ...any) {
	l.do(LifeCommand{Log: &LifeLog{Level: level, Text: text, Pairs: pairs}})
}

// show publishes a job whose visible state has changed.
func (l *Life) show(j *lifeJob) {
	s := JobShown{Job: j.id, Spec: j.spec, State: j.state, Why: j.why, Step: j.step, Restarts: j.restarts,
		Submitted: j.submitted, Ended: j.ended, Entering: j.phase == lifeEntering}
	if j.kept != 0 && !Over(s.State) {
		s.Why = beingCancelled
	}
	if s != j.shown {
		j.shown = s
		l.do(LifeCommand{Shown: &s})
	}
}

// enter and leave keep the list of jobs that have not ended.
func (l *Life) enter(j *lifeJob) {
	at, _ := slices.BinarySearchFunc(l.live, j, byLifeNumber)
	l.live = slices.Insert(l.live, at, j)
}

func (l *Life) leave(j *lifeJob) {
	l.live = slices.DeleteFunc(l.live, func(o *lifeJob) bool { return o == j })
}

// byLifeNumber orders jobs by their numbers.
func byLifeNumber(a, b *lifeJob) int {
	return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.id, b.id))
}
