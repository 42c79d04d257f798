package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// lived is a lifecycle in virtual time, whose journal answers as a test says.
type lived struct {
	t      *testing.T
	life   *Life
	now    time.Time
	state  State
	refuse bool // the journal has no room
	cmds   []LifeCommand
}

func newLived(t *testing.T) *lived {
	v := &lived{t: t, life: NewLife(LifeConfig{Restarts: 2, Keep: KeepAll}, State{}), now: time.Unix(1_700_000_000, 0)}
	v.step(LifeEvent{Began: true})
	return v
}

// step lets the lifecycle see an event. Directories and processes come to be at once.
func (v *lived) step(ev LifeEvent) {
	cmds := v.life.Step(ev, v.now)
	v.cmds = append(v.cmds, cmds...)
	for _, c := range cmds {
		switch {
		case c.MakeDir != "":
			v.step(LifeEvent{Made: &LifeMade{Job: c.MakeDir}})
		case c.Write != nil:
			v.write(c.Write)
		case c.Start != nil:
			v.step(LifeEvent{Process: &ProcessEvent{Job: c.Start.Job, Term: c.Start.Term, Started: true}})
		}
	}
}

func (v *lived) write(c *LifeWrite) {
	ev := &LifeWritten{ID: c.ID}
	if v.refuse {
		ev.Outcome, ev.Why = NotApplied, "no space left on device"
	} else {
		for _, r := range c.Records {
			v.state.Apply(r)
		}
	}
	v.step(LifeEvent{Written: ev})
}

// running is a job whose process is connected.
func (v *lived) running() string {
	v.step(LifeEvent{Ask: &LifeRequest{Submit: &JobSpec{Kind: "logistic"}}})
	v.connect("job-000001", 1)
	return "job-000001"
}

func (v *lived) connect(job string, link uint64) {
	incarnation := fmt.Sprintf("%s.%d", job, v.state.Jobs[plan.JobID(job)].Term)
	v.step(LifeEvent{Link: &LinkEvent{Job: job, Link: link, Connected: &LinkConnected{Incarnation: incarnation}}})
}

func (v *lived) exit(job string) {
	v.step(LifeEvent{Process: &ProcessEvent{Job: job, Term: v.state.Jobs[plan.JobID(job)].Term,
		Exited: &ProcessExited{Why: "signal: killed", Words: "signal: killed"}}})
}

func (v *lived) member(name string, change func(*MemberEvent)) {
	ev := &MemberEvent{Executor: name, Link: 1}
	change(ev)
	v.step(LifeEvent{Member: ev})
}

func (v *lived) join(name string) {
	v.member(name, func(ev *MemberEvent) { ev.Joined = &MemberJoined{Incarnation: name} })
}

// since returns what was said since the last call that a function picks.
func (v *lived) since(pick func(LifeCommand) bool) (out []LifeCommand) {
	out = slices.DeleteFunc(v.cmds, func(c LifeCommand) bool { return !pick(c) })
	v.cmds = nil
	return out
}

func opens(c LifeCommand) bool { return c.Open != nil }

// TestTheLateEndOfARunnerIsNotThatOfTheNext: it is not asked for again, and its job goes on
// where it is.
func TestTheLateEndOfARunnerIsNotThatOfTheNext(t *testing.T) {
	v := newLived(t)
	v.join("e1")
	job := v.running()
	first := v.since(opens)[0].Open.ID
	ended := func(id uint64) []LifeCommand {
		v.member("e1", func(ev *MemberEvent) {
			ev.Ended = &LifeRunner{Executor: "e1", Job: job, ID: id,
				Why: "it was killed"}
		})
		return v.since(func(c LifeCommand) bool { return c.Open != nil || c.Tell != nil || c.Kill != nil })
	}
	if got := ended(first); len(got) != 2 || got[1].Open == nil {
		t.Fatalf("the end of a runner: %+v", got)
	}
	for range 2 * maxRunners {
		if got := ended(first); len(got) > 0 {
			t.Fatalf("its late end: %+v", got)
		}
	}
}

// TestAnEndIsToldWhenItIsWrittenDown: a driver that dies before would have the job run again.
func TestAnEndIsToldWhenItIsWrittenDown(t *testing.T) {
	v := newLived(t)
	job := v.running()
	v.step(LifeEvent{Process: &ProcessEvent{Job: job, Said: &ProcessSaid{Incarnation: job + ".1"}}})
	v.since(opens)
	v.refuse = true
	v.exit(job)
	over := func(c LifeCommand) bool { return c.Over != nil || c.Start != nil }
	for range 20 {
		v.now = v.now.Add(startWaitMost)
		v.step(LifeEvent{})
	}
	if got := v.since(over); len(got) > 0 {
		t.Fatalf("without a journal: %+v", got)
	}
	v.refuse = false
	v.now = v.now.Add(startWaitMost)
	v.step(LifeEvent{})
	if got := v.since(over); len(got) != 1 || v.state.Jobs["job-000001"].State != JobDone {
		t.Errorf("once there is one: %+v, and it has %+v", got, v.state.Jobs["job-000001"])
	}
}

// TestARestartIsWrittenDownWithItsProcess: where the journal had no room for the restart, it is
// written down with the next process that is.
func TestARestartIsWrittenDownWithItsProcess(t *testing.T) {
	v := newLived(t)
	job := v.running()
	v.refuse = true
	v.exit(job)
	v.refuse = false
	v.now = v.now.Add(time.Second)
	v.step(LifeEvent{})
	if j := v.state.Jobs["job-000001"]; j.Term != 3 || j.Restarts != 1 {
		t.Errorf("the journal has %+v", j)
	}
}

// TestANewProcessLeavesADrainingExecutor: where the connection of the process before has not
// ended yet, its runner there is ended.
func TestANewProcessLeavesADrainingExecutor(t *testing.T) {
	v := newLived(t)
	v.join("e1")
	v.join("e2")
	job := v.running()
	v.member("e1", func(ev *MemberEvent) { ev.Drain = true })
	v.exit(job)
	v.since(opens)
	v.connect(job, 2)
	closed, drained := false, false
	for _, c := range v.since(func(LifeCommand) bool { return true }) {
		closed = closed || c.Close != nil && c.Close.Executor == "e1"
		drained = drained || c.Executor != nil && c.Executor.Executor == "e1" && c.Executor.Drained
	}
	if !closed || !drained {
		t.Errorf("its runner is ended: %v; it is drained: %v", closed, drained)
	}
}

// TestAnUnfitExecutorIsDrained: it has no runner left.
func TestAnUnfitExecutorIsDrained(t *testing.T) {
	v := newLived(t)
	v.join("e1")
	v.running()
	v.member("e1", func(ev *MemberEvent) { ev.Drain = true })
	v.since(opens)
	why := "its disk is gone"
	v.member("e1", func(ev *MemberEvent) { ev.Unfit = &why })
	if got := v.since(func(c LifeCommand) bool { return c.Executor != nil && c.Executor.Drained }); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestARunnerThatWasReplacedEndsLate, as its executor tells it.
func TestARunnerThatWasReplacedEndsLate(t *testing.T) {
	d := scriptedDaemon(t, "exec sleep 600")
	e := asExecutor(t, d, "e1")
	w := submitted(t, d)
	asProcess(t, d, w)
	next := func() uint64 {
		for {
			m, err := e.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if o := m.GetOpen(); o != nil {
				return o.Runner
			}
		}
	}
	ended := func(runner uint64) {
		closed := &wire.CloseJob{Job: w.info.Id, Runner: runner, Why: "it was killed"}
		if err := e.Send(&wire.FromExecutor{Body: &wire.FromExecutor_Closed{Closed: closed}}); err != nil {
			t.Fatal(err)
		}
	}
	first := next()
	ended(first)
	second := next()
	for range 2 * maxRunners {
		ended(first)
	}
	ended(second)
	if third := next(); first == second || third != second+1 {
		t.Errorf("runners %d, %d, %d", first, second, third)
	}
	if v := executorNamed(d, "e1"); strings.Contains(v.Why, "excluded") {
		t.Errorf("the executor is %+v", v)
	}
}

// TestAProcessThatHasSaidItsEndNeedsNoRunners: where they end before it has, its job is done.
func TestAProcessThatHasSaidItsEndNeedsNoRunners(t *testing.T) {
	v := newLived(t)
	v.join("e1")
	job := v.running()
	v.step(LifeEvent{Process: &ProcessEvent{Job: job, Said: &ProcessSaid{Incarnation: job + ".1"}}})
	for range 2 * maxRunners {
		for _, c := range v.since(opens) {
			v.member("e1", func(ev *MemberEvent) {
				ev.Ended = &LifeRunner{Executor: "e1", Job: job, ID: c.Open.ID, Why: "it was killed"}
			})
		}
	}
	v.exit(job)
	if j := v.state.Jobs["job-000001"]; j.State != JobDone {
		t.Errorf("the journal has %+v", j)
	}
}

// TestAJobIsCancelledBeforeItIsWrittenDown: it ends, or is not submitted, and the client that has
// cancelled it is answered.
func TestAJobIsCancelledBeforeItIsWrittenDown(t *testing.T) {
	for _, cancelFirst := range []bool{true, false} {
		for _, refuse := range []bool{false, true} {
			v := newLived(t)
			v.refuse = refuse
			v.life.Step(LifeEvent{Ask: &LifeRequest{From: 1, Submit: &JobSpec{Kind: "logistic"}}}, v.now)
			made, cancel := LifeEvent{Made: &LifeMade{Job: "job-000001"}},
				LifeEvent{Ask: &LifeRequest{From: 2, Cancel: "job-000001"}}
			if cancelFirst {
				v.step(cancel)
				v.step(made)
			} else {
				written := v.life.Step(made, v.now)
				v.step(cancel)
				for _, c := range written {
					if c.Write != nil {
						v.write(c.Write)
					}
				}
			}
			replies := v.since(func(c LifeCommand) bool { return c.Reply != nil })
			if j := v.state.Jobs["job-000001"]; len(replies) != 2 || len(v.life.live) != 0 ||
				refuse == (j.State == JobCancelled) {
				t.Errorf("cancelled first %v, no room %v: %d replies, %d live, the journal has %+v", cancelFirst,
					refuse, len(replies), len(v.life.live), j)
			}
		}
	}
}

// TestAJobIsNotRemovedBeforeItsRunnersHaveEnded: nobody would end them any more.
func TestAJobIsNotRemovedBeforeItsRunnersHaveEnded(t *testing.T) {
	v := newLived(t)
	v.join("e1")
	job := v.running()
	v.step(LifeEvent{Process: &ProcessEvent{Job: job, Said: &ProcessSaid{Incarnation: job + ".1"}}})
	v.exit(job)
	prune := func() []LifeCommand {
		v.step(LifeEvent{Ask: &LifeRequest{From: 1, Prune: &LifePrune{Keep: Keep{Count: 0, Age: -1, Bytes: -1}}}})
		return v.since(func(c LifeCommand) bool { return c.Remove != nil || c.Close != nil })
	}
	if got := prune(); len(got) > 0 {
		t.Fatalf("while its process is connected: %+v", got)
	}
	v.step(LifeEvent{Link: &LinkEvent{Job: job, Link: 1, HungUp: true}})
	if got := prune(); len(got) != 2 || got[0].Close == nil || got[1].Remove == nil {
		t.Errorf("after that: %+v", got)
	}
}

// TestWhatAJobHasMadeIsKnownBeforeItIsDone: a client that sees that it is may bring it at once.
func TestWhatAJobHasMadeIsKnownBeforeItIsDone(t *testing.T) {
	v := newLived(t)
	job := v.running()
	v.step(LifeEvent{Process: &ProcessEvent{Job: job,
		Said: &ProcessSaid{Incarnation: job + ".1", Files: []MadeFile{{Path: "out/model"}}}}})
	v.since(opens)
	v.exit(job)
	got := v.since(func(c LifeCommand) bool { return c.Over != nil || c.Shown != nil && Over(c.Shown.State) })
	if len(got) != 2 || got[0].Over == nil || len(got[0].Over.Files) != 1 || got[1].Shown == nil {
		t.Errorf("%+v", got)
	}
}

// TestAnExecutorThatIsBackIsNotMovedOff: that a job has moved off it is late word.
func TestAnExecutorThatIsBackIsNotMovedOff(t *testing.T) {
	v := newLived(t)
	v.join("e1")
	v.join("e2")
	job := v.running()
	movedOff := func() []LifeCommand {
		v.since(opens)
		v.step(LifeEvent{Link: &LinkEvent{Job: job, Link: 1, Drained: "e1"}})
		return v.since(func(c LifeCommand) bool { return c.Close != nil })
	}
	v.member("e1", func(ev *MemberEvent) { ev.Drain = true })
	v.join("e1")
	if got := movedOff(); len(got) > 0 {
		t.Errorf("after it has registered again: %+v", got[0].Close)
	}
	v.member("e1", func(ev *MemberEvent) { ev.Drain = true })
	if got := movedOff(); len(got) != 1 {
		t.Errorf("while it drains: %+v", got)
	}
}

// TestADriverThatEndsCancelsNothing, and does not say so: the job goes on with the next.
func TestADriverThatEndsCancelsNothing(t *testing.T) {
	v := newLived(t)
	job := v.running()
	v.step(LifeEvent{Closing: true})
	v.step(LifeEvent{Ask: &LifeRequest{From: 1, Cancel: job}})
	replies := v.since(func(c LifeCommand) bool { return c.Reply != nil })
	if len(replies) != 1 || replies[0].Reply.Code != codes.Unavailable || v.state.Jobs["job-000001"].State != "" {
		t.Errorf("%+v, and the journal has %+v", replies, v.state.Jobs["job-000001"])
	}
}

// TestASilentConnectionOfTheProcessBefore has the present one not killed, which is about to
// connect, and gets it no runners.
func TestASilentConnectionOfTheProcessBefore(t *testing.T) {
	v := newLived(t)
	job := v.running()
	v.exit(job)
	v.since(opens)
	v.step(LifeEvent{Link: &LinkEvent{Job: job, Link: 1, Silent: "2s"}})
	v.step(LifeEvent{Link: &LinkEvent{Job: job, Link: 1, Deaf: "too much waits"}})
	v.join("e1")
	if got := v.since(func(c LifeCommand) bool { return c.Kill != nil || c.Open != nil }); len(got) > 0 {
		t.Errorf("%d commands, first %+v", len(got), got[0])
	}
	v.connect(job, 2)
	if got := v.since(opens); len(got) != 1 {
		t.Errorf("%d runners once it is connected", len(got))
	}
}

// TestAResumedJobIsMeasuredAgain: how much it had before, while it goes on, says nothing.
func TestAResumedJobIsMeasuredAgain(t *testing.T) {
	v := newLived(t)
	job := v.running()
	end := func() {
		v.step(LifeEvent{Ask: &LifeRequest{Cancel: job}})
		v.exit(job)
		v.step(LifeEvent{Link: &LinkEvent{Job: job, Link: 1, HungUp: true}})
	}
	measured := func() int {
		v.since(opens)
		v.step(LifeEvent{Ask: &LifeRequest{From: 9, Prune: &LifePrune{Keep: Keep{Count: -1, Age: -1, Bytes: 1 << 30}}}})
		return len(v.since(func(c LifeCommand) bool { return slices.Equal(c.Measure, []string{job}) }))
	}
	end()
	if measured() != 1 {
		t.Fatal("a job that has ended is not measured")
	}
	v.step(LifeEvent{Ask: &LifeRequest{From: 1, Resume: job}})
	v.step(LifeEvent{Measured: map[string]int64{job: 5}})
	v.connect(job, 1)
	end()
	if s := v.state.Jobs[plan.JobID(job)]; s.State != JobCancelled || measured() != 1 {
		t.Errorf("%s after it was resumed, the job has the bytes that it had before", s.State)
	}
}
