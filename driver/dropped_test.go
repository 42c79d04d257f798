package driver

import (
	"fmt"
	"testing"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// stepper is a job with a pack under way, in virtual time.
type stepper struct {
	t      *testing.T
	job    *Job
	now    plan.Time
	tasks  map[plan.SplitID]*wire.Assignment // latest by split
	on     map[plan.SplitID]plan.ExecutorID  // who has it
	leases map[plan.ExecutorID][]*wire.Leases
	report *StepReport
	failed error
}

// steppingJob is a job with executors of one slot, and splits of 1000 rows in four
// pieces that have been placed on them in turn.
func steppingJob(t *testing.T, cfg JobConfig, splits int) *stepper {
	s := &stepper{t: t, tasks: map[plan.SplitID]*wire.Assignment{}, on: map[plan.SplitID]plan.ExecutorID{},
		leases: map[plan.ExecutorID][]*wire.Leases{}}
	cfg.ID = "job"
	s.job = NewJob(cfg, 0)
	for i := range cfg.Executors {
		s.join(plan.ExecutorID(fmt.Sprint("e", i+1)))
	}
	info := &PackInfo{Rows: make([]int64, splits), Bytes: make([]int64, splits), SHA256: make([]plan.Digest, splits)}
	for i := range info.Rows {
		info.Rows[i], info.Bytes[i] = 1000, 1000
	}
	s.step(Event{Pack: info})
	return s
}

func (s *stepper) join(id plan.ExecutorID) {
	s.step(Event{Joined: &Joined{Executor: id, Slots: 1}})
	s.hear(id, &wire.ToDriver{Body: &wire.ToDriver_Prepared{Prepared: &wire.Prepared{Job: "job",
		Fingerprint: make([]byte, 32)}}})
}

// step lets the job see an event. An executor that is to hold a split holds it at once.
func (s *stepper) step(ev Event) {
	var held []Message
	for _, c := range s.job.Step(ev, s.now) {
		switch {
		case c.Send != nil && c.Send.Body.GetHold() != nil:
			h := c.Send.Body.GetHold()
			held = append(held, Message{From: c.Send.To, Body: &wire.ToDriver{Body: &wire.ToDriver_Holding{
				Holding: &wire.Holding{Job: "job", Pack: h.Pack, Split: h.Split, Sha256: h.Sha256}}}})
		case c.Send != nil && c.Send.Body.GetStartStep() != nil:
			for _, a := range c.Send.Body.GetStartStep().Tasks {
				s.tasks[plan.SplitID(a.Split)], s.on[plan.SplitID(a.Split)] = a, c.Send.To
			}
		case c.Send != nil && c.Send.Body.GetLeases() != nil:
			s.leases[c.Send.To] = append(s.leases[c.Send.To], c.Send.Body.GetLeases())
		case c.StepDone != nil:
			s.report = c.StepDone
		case c.Failed != nil:
			s.failed = c.Failed
		}
	}
	for i := range held {
		s.step(Event{Message: &held[i]})
	}
}

func (s *stepper) hear(from plan.ExecutorID, m *wire.ToDriver) {
	s.now += time.Millisecond
	s.step(Event{Message: &Message{From: from, Body: m}})
}

// says reports how many rows of a split an executor has folded under an assignment.
func (s *stepper) says(from plan.ExecutorID, a *wire.Assignment, rows uint64) {
	s.hear(from, &wire.ToDriver{Body: &wire.ToDriver_Progress{Progress: &wire.Progress{Job: "job", Step: 1,
		Counts: []*wire.Count{{Split: a.Split, Attempt: a.Attempt, Epoch: a.Epoch, Processed: rows}}}}})
}

// hands sends the result of one.
func (s *stepper) hands(from plan.ExecutorID, a *wire.Assignment, rows uint64) {
	s.hear(from, &wire.ToDriver{Body: &wire.ToDriver_Result{Result: &wire.Result{Job: "job", Step: 1,
		Coverage: []*wire.Coverage{{Split: a.Split, Attempt: a.Attempt, Epoch: a.Epoch, Count: rows, Folded: rows}}}}})
}

func (s *stepper) lose(id plan.ExecutorID) {
	s.step(Event{Lost: &Lost{Executor: id, Why: "gone"}})
}

// dropped fails unless the given number of rows is counted as folded in vain.
func (s *stepper) dropped(want int64, when string) {
	s.t.Helper()
	if got := s.job.Counters().DroppedRows; got != want {
		s.t.Errorf("%s: %d rows are counted, %d were folded in vain", when, got, want)
	}
}

// TestRowsOfATaskHandedOutAgainAreItsOwn: what an attempt has reported that was given up
// is not what the next one has folded.
func TestRowsOfATaskHandedOutAgainAreItsOwn(t *testing.T) {
	s := steppingJob(t, JobConfig{Executors: 4, Sync: abss.Config{Policy: abss.ABSP, Ratio: 0.6}}, 4)
	s.step(Event{Step: &plan.StepRequest{Train: true}})
	slow, first := s.on[0], s.tasks[0]
	s.says(slow, first, 300)
	s.says(s.on[1], s.tasks[1], 100)
	s.hands(s.on[2], s.tasks[2], 1000)
	s.hands(s.on[3], s.tasks[3], 1000)
	s.now += time.Second // half of the rows do not come, which is too much
	s.step(Event{})
	if s.tasks[0] == first || s.report != nil {
		t.Fatalf("split 0 is not handed out again: %v", s.failed)
	}
	s.lose(slow)
	s.dropped(400, "the second attempts are under way")
	s.hands(slow, first, 600)
	s.dropped(700, "the first result comes late")
}

// TestRowsThatALostExecutorReportsAreCounted: its messages may still arrive, and its
// result never.
func TestRowsThatALostExecutorReportsAreCounted(t *testing.T) {
	s := steppingJob(t, JobConfig{Executors: 4, Sync: abss.Config{Policy: abss.ABSP, Ratio: 0.9, MaxMissing: 0.3}}, 4)
	s.step(Event{Step: &plan.StepRequest{Train: true}})
	gone, task := s.on[3], s.tasks[3]
	s.says(gone, task, 200)
	s.lose(gone)
	s.says(gone, task, 450)
	for i := range plan.SplitID(3) {
		s.hands(s.on[i], s.tasks[i], 1000)
	}
	if s.report == nil || len(s.report.Missing) != 1 {
		t.Fatalf("the step goes on, or nothing is missing: %+v", s.report)
	}
	s.dropped(450, "it goes on without them")
	s.hands(gone, task, 600)
	s.dropped(600, "its result comes late")
	s.hands(gone, task, 600)
	s.dropped(600, "it comes twice")
}

// TestLeasesFoldedInVainAreCounted: of an executor that is lost.
func TestLeasesFoldedInVainAreCounted(t *testing.T) {
	s := steppingJob(t, JobConfig{Executors: 2, Sync: abss.Config{Policy: abss.Steal}}, 2)
	s.step(Event{Step: &plan.StepRequest{Train: true, Pieces: []int{4, 4}}})
	m := s.leases["e1"][0]
	var rows int64
	for _, l := range m.Leases[:2] {
		_, n := plan.VisitedOf(1000, 0, 1000, int(l.Parts), int(l.Part))
		rows += n
		s.hear("e1", &wire.ToDriver{Body: &wire.ToDriver_PiecesFolded{PiecesFolded: &wire.PiecesFolded{Job: "job",
			Step: 1, Epoch: m.Epoch, Ids: []uint32{l.Id}}}})
	}
	s.lose("e1")
	s.dropped(rows, "the executor is lost")
}
