package daemon

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/storytest"
)

// TestLifeStories runs the stories in testdata/life: what becomes of jobs that have ended, in virtual time. Any
// command may have at=D, the time from the story's beginning on; jobs are named by their numbers. What is shown,
// and when the driver wants to be woken, is left out of what is said.
//
//	life [finished=N] [maxjobs=N]     a driver, with jobs that have ended, a minute one after the other
//	journal applies | refuses | unknown | waits; answer applies | refuses | unknown    the oldest entry that waits
//	submit [pool=P] [owner=U] [priority=N] [timeout=D] [restarts=N]; connect N; hangup N; exit N; cancel N; beyond N; closing; tick
//	queue                             what each job waits for
//	remove N from=N; resume N from=N [gone]; giveup N; read N from=N; done N
//	prune from=N [count=N] [age=D] [bytes=N] [grace=D]; measured N=BYTES...; gone N... [bytes=N]
func TestLifeStories(t *testing.T) {
	datadriven.Walk(t, "testdata/life", func(t *testing.T, path string) {
		s := &lifeStory{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.Args = storytest.Args{T: t, D: d}
			s.out.Reset()
			if s.Has("at") {
				s.now = lifeBegins.Add(s.Duration("at", 0))
			}
			s.do()
			return s.out.String()
		})
	})
}

var lifeBegins = time.Unix(1_700_000_000, 0)

type lifeStory struct {
	storytest.Args
	life    *Life
	now     time.Time
	state   State
	journal string   // how it answers
	waiting []uint64 // entries without an answer
	entries map[uint64][]Record
	out     strings.Builder
}

// number is Int of what is counted in 64 bits.
func (s *lifeStory) number(key string, other int64) int64 { return int64(s.Int(key, int(other))) }

// jobs are those named by their numbers, with what is said of each.
func (s *lifeStory) jobs() (ids []string, values []int64) {
	for _, a := range s.D.CmdArgs {
		if n, err := strconv.Atoi(a.Key); err == nil {
			ids, values = append(ids, jobName(n)), append(values, s.number(a.Key, 0))
		}
	}
	return ids, values
}

// restarts are those of a submission, if it says any.
func (s *lifeStory) restarts() *uint32 {
	if !s.Has("restarts") {
		return nil
	}
	n := uint32(s.Int("restarts", 0))
	return &n
}

func (s *lifeStory) job() string {
	ids, _ := s.jobs()
	return ids[0]
}

func (s *lifeStory) begin() {
	s.now, s.journal, s.waiting, s.entries = lifeBegins, "applies", nil, map[uint64][]Record{}
	s.state = State{}
	for n := range s.number("finished", 0) {
		id := plan.JobID(jobName(int(n + 1)))
		at := lifeBegins.Add(time.Duration(n+1)*time.Minute - 24*time.Hour).UnixNano()
		s.state.Apply(Record{Kind: JobSubmitted, Job: id, Spec: &JobSpec{Kind: "logistic"}, At: at})
		s.state.Apply(Record{Kind: JobEnded, Job: id, State: JobFailed, At: at})
	}
	s.life = NewLife(LifeConfig{Restarts: 2, Keep: KeepAll, MaxJobs: s.Int("maxjobs", 0)}, s.state.Clone())
	s.step(LifeEvent{Began: true})
}

func (s *lifeStory) do() {
	from := uint64(s.number("from", 0))
	switch s.D.Cmd {
	case "life":
		s.begin()
	case "journal":
		s.journal = s.D.CmdArgs[0].Key
	case "answer":
		s.answer(s.D.CmdArgs[0].Key)
	case "tick":
		s.step(LifeEvent{})
	case "closing":
		s.step(LifeEvent{Closing: true})
	case "submit":
		s.step(LifeEvent{Ask: &LifeRequest{From: from, Submit: &JobSpec{Kind: "logistic", Pool: s.Text("pool", ""),
			Owner: s.Text("owner", ""), Priority: int32(s.Int("priority", 0)), Timeout: s.Duration("timeout", 0),
			Restarts: s.restarts()}}})
	case "queue":
		for _, j := range s.life.live {
			if j.phase == lifeQueued {
				fmt.Fprintf(&s.out, "job %d: %s\n", j.number, j.why)
			}
		}
	case "remove":
		s.step(LifeEvent{Ask: &LifeRequest{From: from, Remove: s.job()}})
	case "connect":
		incarnation := fmt.Sprintf("%s.%d", s.job(), s.state.Jobs[plan.JobID(s.job())].Term)
		s.step(LifeEvent{Link: &LinkEvent{Job: s.job(), Link: 1, Connected: &LinkConnected{Incarnation: incarnation}}})
	case "hangup":
		s.step(LifeEvent{Link: &LinkEvent{Job: s.job(), Link: 1, HungUp: true}})
	case "exit":
		s.step(LifeEvent{Process: &ProcessEvent{Job: s.job(), Term: s.state.Jobs[plan.JobID(s.job())].Term,
			Exited: &ProcessExited{Why: "signal: killed", Words: "signal: killed"}}})
	case "beyond":
		s.step(LifeEvent{Beyond: &LifeBeyond{Job: s.job(), Why: "it takes too much"}})
	case "cancel":
		s.step(LifeEvent{Ask: &LifeRequest{From: from, Cancel: s.job()}})
	case "resume":
		a := &LifeRequest{From: from, Resume: s.job()}
		if s.D.HasArg("gone") {
			a.Gone = "it was moved"
		}
		s.step(LifeEvent{Ask: a})
	case "giveup":
		who, _ := strconv.ParseUint(s.D.CmdArgs[0].Key, 10, 64)
		s.step(LifeEvent{Ask: &LifeRequest{GiveUp: who}})
	default:
		s.files(from)
	}
}

// files are the commands on what jobs have made.
func (s *lifeStory) files(from uint64) {
	ids, values := s.jobs()
	switch s.D.Cmd {
	case "read":
		s.step(LifeEvent{Ask: &LifeRequest{From: from, Read: ids[0]}})
	case "done":
		s.step(LifeEvent{Ask: &LifeRequest{Done: ids[0]}})
	case "prune":
		age, err := time.ParseDuration(s.Text("age", "-1ns"))
		grace, err2 := time.ParseDuration(s.Text("grace", "0s"))
		if err != nil || err2 != nil {
			s.D.Fatalf(s.T, "%v, %v", err, err2)
		}
		s.step(LifeEvent{Ask: &LifeRequest{From: from, Prune: &LifePrune{Grace: grace,
			Keep: Keep{Count: int(s.number("count", -1)), Age: age, Bytes: s.number("bytes", -1)}}}})
	case "measured":
		sizes := map[string]int64{}
		for i, id := range ids {
			sizes[id] = values[i]
		}
		s.step(LifeEvent{Measured: sizes})
	case "gone":
		s.step(LifeEvent{Gone: &LifeGone{Jobs: ids, Bytes: s.number("bytes", 0)}})
	default:
		s.D.Fatalf(s.T, "unknown command")
	}
}

// step lets the lifecycle see an event. Directories and processes come to be at once; the journal answers as it
// was told to.
func (s *lifeStory) step(ev LifeEvent) {
	var answered []uint64
	for _, c := range s.life.Step(ev, s.now) {
		s.say(c)
		switch {
		case c.MakeDir != "":
			s.step(LifeEvent{Made: &LifeMade{Job: c.MakeDir}})
		case c.Start != nil:
			s.step(LifeEvent{Process: &ProcessEvent{Job: c.Start.Job, Term: c.Start.Term, Started: true}})
		case c.Write != nil:
			s.entries[c.Write.ID], s.waiting = c.Write.Records, append(s.waiting, c.Write.ID)
			answered = append(answered, c.Write.ID)
		}
	}
	if s.journal != "waits" {
		for range answered {
			s.answer(s.journal)
		}
	}
}

// answer is what becomes of the oldest entry that waits.
func (s *lifeStory) answer(how string) {
	if len(s.waiting) == 0 {
		s.D.Fatalf(s.T, "no entry waits")
	}
	id := s.waiting[0]
	s.waiting = s.waiting[1:]
	ev := &LifeWritten{ID: id}
	switch how {
	case "applies":
		for _, r := range s.entries[id] {
			s.state.Apply(r)
		}
	case "refuses":
		ev.Outcome, ev.Why = NotApplied, "no space left on device"
	case "unknown":
		ev.Outcome, ev.Why = Unknown, "nobody leads"
	default:
		s.D.Fatalf(s.T, "a journal does not answer %q", how)
	}
	s.step(LifeEvent{Written: ev})
}

// short is a list of jobs by their numbers.
func short(ids []string) string {
	var out []string
	for _, id := range ids {
		out = append(out, strconv.Itoa(jobNumber(id)))
	}
	if len(out) > 9 {
		out = slices.Concat(out[:4], []string{"..."}, out[len(out)-4:])
	}
	return fmt.Sprintf("[%s] (%d)", strings.Join(out, " "), len(ids))
}

var recordNames = map[RecordKind]string{JobSubmitted: "submitted", JobEnded: "ended", JobResumed: "resumed",
	JobRemoved: "removed", JobStarted: "started", JobBegun: "begun", JobRestarted: "started again"}

func (s *lifeStory) say(c LifeCommand) {
	line := ""
	switch {
	case c.Write != nil:
		line = "write " + s.records(c.Write.Records)
	case c.Start != nil:
		line = fmt.Sprintf("start job %d, term %d", jobNumber(c.Start.Job), c.Start.Term)
	case c.Kill != nil:
		line = fmt.Sprintf("kill job %d: %s", jobNumber(c.Kill.Job), c.Kill.Why)
	case c.Interrupt != nil:
		line = fmt.Sprintf("interrupt job %d", jobNumber(c.Interrupt.Job))
	case c.Renew != "":
		line = fmt.Sprintf("job %d goes on", jobNumber(c.Renew))
	case c.Over != nil:
		line = fmt.Sprintf("job %d is over", jobNumber(c.Over.Job))
	case c.Measure != nil:
		line = "measure " + short(c.Measure)
	case c.Remove != nil:
		line = "remove " + short(c.Remove)
	case c.Forget != nil:
		line = "forget " + short(c.Forget)
	case c.Reply != nil && c.Reply.Why != "":
		line = fmt.Sprintf("to %d: %v: %s", c.Reply.To, c.Reply.Code, c.Reply.Why)
	case c.Reply != nil && c.Reply.Job != "":
		line = fmt.Sprintf("to %d: job %d", c.Reply.To, jobNumber(c.Reply.Job))
	case c.Reply != nil:
		line = fmt.Sprintf("to %d: jobs %s, %d bytes", c.Reply.To, short(c.Reply.Jobs), c.Reply.Bytes)
	case c.Log != nil:
		line = fmt.Sprintf("log: %s %v", c.Log.Text, c.Log.Pairs)
	}
	if line != "" {
		fmt.Fprintln(&s.out, line)
	}
}

// records are those of an entry: how many of each kind, and of which jobs the first are.
func (s *lifeStory) records(rs []Record) string {
	var out []string
	for _, r := range rs[:min(4, len(rs))] {
		line := fmt.Sprintf("job %d %s", jobNumber(string(r.Job)), recordNames[r.Kind])
		if r.State != "" {
			line += ", " + r.State
		}
		out = append(out, line)
	}
	if more := len(rs) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, "; ")
}
