package driver

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/prioritizer"
	"github.com/volley-engine/volley/scheduler"
)

// recorded is a job of two executors and two splits that is recorded.
type recorded struct {
	job *Job
	now plan.Time
}

func (r *recorded) step(ev Event) (done *StepReport) {
	r.now += time.Millisecond
	for _, c := range r.job.Step(ev, r.now) {
		if c.StepDone != nil {
			done = c.StepDone
		}
	}
	return done
}

func (r *recorded) message(from plan.ExecutorID, b any) *StepReport {
	m := &wire.ToDriver{}
	switch b := b.(type) {
	case *wire.Prepared:
		m.Body = &wire.ToDriver_Prepared{Prepared: b}
	case *wire.Holding:
		m.Body = &wire.ToDriver_Holding{Holding: b}
	case *wire.Progress:
		m.Body = &wire.ToDriver_Progress{Progress: b}
	case *wire.Result:
		m.Body = &wire.ToDriver_Result{Result: b}
	}
	return r.step(Event{Message: &Message{From: from, Body: m}})
}

var recordedConfig = JobConfig{Executors: 2, Record: true, Fingerprint: plan.Digest{7},
	Sync: abss.Config{Policy: abss.ABSP, MinRows: 1}}

// newRecorded is a job whose pack is open.
func newRecorded() *recorded {
	r := &recorded{job: NewJob(recordedConfig, 0)}
	for _, id := range []plan.ExecutorID{"a", "b"} {
		r.step(Event{Joined: &Joined{Executor: id, Slots: 1}})
		r.message(id, &wire.Prepared{Fingerprint: recordedConfig.Fingerprint[:]})
	}
	r.step(Event{Pack: &PackInfo{Rows: []int64{100, 100}, Bytes: []int64{800, 800}, SHA256: make([]plan.Digest, 2)}})
	r.message("a", &wire.Holding{Split: 0})
	r.message("b", &wire.Holding{Split: 1})
	return r
}

// train runs a step that is cut once b has folded a number of rows; b reports each of them.
func (r *recorded) train(rows int) *StepReport {
	r.step(Event{Step: &plan.StepRequest{Train: true, Param: []byte("w")}})
	s := r.job.step
	report := func(split int, n uint64) {
		a := s.assigned[split]
		r.message(plan.ExecutorID("ab"[split:split+1]),
			&wire.Progress{Step: s.key, Counts: []*wire.Count{{Split: uint32(split), Attempt: uint32(a.Attempt),
				Epoch: uint64(a.Epoch), Processed: n}}})
	}
	for n := range rows {
		report(1, uint64(n+1))
	}
	report(0, 100)
	var done *StepReport
	for split, n := range []uint64{100, uint64(rows)} {
		a := s.assigned[split]
		c := &wire.Coverage{Split: uint32(split), Attempt: uint32(a.Attempt), Epoch: uint64(a.Epoch),
			Cursor: uint64(a.Cursor), Count: n, Folded: n}
		done = r.message(plan.ExecutorID("ab"[split:split+1]),
			&wire.Result{Step: s.key, Coverage: []*wire.Coverage{c}, Parts: []*wire.Part{{Data: make([]byte, 16)}},
				BusyNs: 1e6})
	}
	return done
}

func retold(cfg JobConfig, reports ...[]byte) (last *StepReport, err error) {
	t := NewRetelling(cfg, false)
	t.Describe([]int64{100, 100}, nil, nil)
	for _, r := range reports {
		var steps []*StepReport
		if steps, err = t.Tell(r); err != nil {
			return nil, err
		}
		last = steps[len(steps)-1]
	}
	return last, nil
}

// TestAJobThatIsToldTheSameDecidesTheSame, and under other options something else.
func TestAJobThatIsToldTheSameDecidesTheSame(t *testing.T) {
	r := newRecorded()
	first, second := r.train(40), r.train(70)
	if !second.Stats.Cut || len(second.Reports) == 0 {
		t.Fatalf("%+v", second)
	}
	for _, c := range []struct {
		name string
		same bool
		edit func(*JobConfig)
	}{
		{"the same", true, func(*JobConfig) {}},
		{"another ratio", false, func(c *JobConfig) { c.Sync.Ratio = 0.9 }},
		{"bsp", false, func(c *JobConfig) { c.Sync.Policy = abss.BSP }},
		{"one executor", false, func(c *JobConfig) { c.Executors = 1 }},
		{"three executors", false, func(c *JobConfig) { c.Executors = 3 }},
	} {
		cfg := recordedConfig
		c.edit(&cfg)
		got, err := retold(cfg, first.Reports, second.Reports)
		same := err == nil && fmt.Sprintf("%+v", *StepLine(got)) == fmt.Sprintf("%+v", *StepLine(second))
		if same != c.same {
			t.Errorf("%s: the same is %v (%v)", c.name, same, err)
		}
	}
}

// TestReportsThatDecideNothingAreOne, however many there are.
func TestReportsThatDecideNothingAreOne(t *testing.T) {
	r := newRecorded()
	r.train(10)
	few, many := r.train(10), r.train(99)
	if len(many.Reports) > len(few.Reports)+8 {
		t.Errorf("%d bytes of 10 reports, %d of 99", len(few.Reports), len(many.Reports))
	}
}

// TestReportsAreBounded: a step that has more than a log keeps says so, and so do all after it.
func TestReportsAreBounded(t *testing.T) {
	r := newRecorded()
	if first := r.train(10); !first.Kept {
		t.Fatal("the first step's are not kept")
	}
	r.step(Event{Step: &plan.StepRequest{Param: []byte("w")}})
	for range leastKept { // each loses an executor, or brings it back
		r.step(Event{Drain: "nobody"})
	}
	r.job.Abandon()
	for range 2 {
		if late := r.train(10); late.Kept || late.Reports != nil {
			t.Errorf("%d bytes of reports are kept: %v", len(late.Reports), late.Kept)
		}
	}
}

// TestOptionsOfAJobAreThoseThatItRunsUnder, read back from the log.
func TestOptionsOfAJobAreThoseThatItRunsUnder(t *testing.T) {
	cfg := JobConfig{Executors: 3, Gather: time.Second, MaxWait: time.Minute, FixedCursors: true, ByRows: true,
		BatchFraction: 0.5,
		Sync: abss.Config{Policy: abss.Deadline, Ratio: 0.7, MinRatio: 0.2, MinShare: -1, MinRows: 9,
			MaxMissing: -1, Grace: time.Hour, StepTimeout: 2 * time.Hour},
		Exchange: prioritizer.ExchangeConfig{Mode: prioritizer.Paper, Threshold: 3, Interval: 4, Bandwidth: 5,
			Horizon: 6},
		Schedule: scheduler.Config{MaxTaskFailures: 7, MaxExecutorFailures: 8, Exclusion: 9, Few: 10}}
	got, err := OptionsOf(cfg).Config()
	if err != nil || !reflect.DeepEqual(got, cfg) {
		t.Errorf("%+v, %v; want %+v", got, err, cfg)
	}
}

// TestOptionsOfNoJobAreRefused: what no job obeys, by what is wrong with it.
func TestOptionsOfNoJobAreRefused(t *testing.T) {
	for want, edit := range map[string]func(*LogOptions){
		`"x" is not one of bsp`:   func(o *LogOptions) { o.Sync = "x" },
		`"x" is not one of off`:   func(o *LogOptions) { o.Exchange = "x" },
		`"x" is no weighting`:     func(o *LogOptions) { o.Weighting = "x" },
		"Interval:0":              func(o *LogOptions) { o.Interval = 0 },
		"such a job obeys {Sync:": func(o *LogOptions) { o.MaxMissing = -1 },
	} {
		o := OptionsOf(JobConfig{})
		if edit(&o); o.Slots != 0 {
			t.Fatal("slots are the cluster's")
		}
		if c, err := o.Config(); err == nil || !strings.Contains(err.Error(), want) ||
			!reflect.DeepEqual(c, JobConfig{}) {
			t.Errorf("want %s: %v", want, err)
		}
	}
}

// FuzzRetelling holds that a tape which was made up is refused, and does no harm.
func FuzzRetelling(f *testing.F) {
	r := newRecorded()
	f.Add(append(r.train(5).Reports, r.train(6).Reports...))
	f.Fuzz(func(t *testing.T, tape []byte) {
		cfg := recordedConfig
		if _, err := retold(cfg, tape); err == nil {
			return
		}
	})
}
