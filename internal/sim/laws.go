package sim

import (
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// laws configure what may happen in a world.
type laws struct {
	packs     int
	calls     bool    // actions between steps
	unkept    bool    // the job's process dies before anything was kept
	massacres bool    // most executors die at once
	drains    bool    // executors are drained
	stalls    bool    // executors hang for long without that being noticed
	stallOnce bool    // one of them when it is asked for its result
	tight     bool    // default limits of retrying
	foreign   bool    // a late executor has another program
	poisonous bool    // work on a split fails, wherever it is done
	hangs     bool    // tasks of actions stop getting on
	link      float64 // bytes a second of an executor's link, 0 is fast
}

func (s *Sim) drawLaws() laws {
	one := func(in int) bool { return s.rng.IntN(in) == 0 }
	l := laws{packs: 1, calls: one(2), unkept: one(6), massacres: one(5), drains: one(3), stalls: one(8), tight: one(4),
		foreign: one(5)}
	l.stallOnce = l.stalls
	if one(3) {
		l.packs = 2
	}
	if one(4) {
		l.link = 1e6 * (1 + 7*s.rng.Float64())
	}
	if l.poisonous = l.tight && one(3); l.poisonous {
		s.poisonAt = s.span(50*time.Millisecond, time.Second)
	}
	if s.opt.Faultless {
		return laws{packs: l.packs, calls: l.calls}
	}
	l.hangs = l.calls && s.odd.IntN(3) == 0
	return l
}

// poisoned reports whether work on a split fails from now on.
func (s *Sim) poisoned(pack, split int) bool {
	if s.law.tight && !s.law.poisonous && s.rng.IntN(60) == 0 {
		s.fired("fold failed")
		return true
	}
	return s.law.poisonous && s.w.now >= s.poisonAt && pack == 0 && split == 0
}

// action begins an action: some read a pack's splits, others what they please.
func (s *Sim) action() {
	s.actions = s.result.Steps + 1
	req := &plan.CallRequest{Pack: -1, Args: make([][]byte, s.between(1, 40))}
	if p := s.packs[s.rng.IntN(len(s.packs))]; s.rng.IntN(3) == 0 {
		req.Pack, req.Args = p.id, make([][]byte, len(p.rows))
	}
	s.began, s.busy = s.w.now, true
	s.fired("action")
	s.step(driver.Event{Call: req})
}

// reported holds a report against what was processed.
func (s *Sim) reported(n *node, r *run, sample *executor.Sample, p *wire.Progress) {
	if r == nil {
		return
	}
	for _, c := range p.Counts {
		for i, t := range r.cmd.Step.Tasks {
			if t.Split == c.Split && int64(c.Processed) != sample.Counts[i] {
				s.violate("1.report", "%s reports %d of split %d, %d are processed", n.id, c.Processed, c.Split,
					sample.Counts[i])
			}
		}
	}
}

// taskReport is how often a task says how far it is.
const taskReport = 250 * time.Millisecond

// runTask runs a task on a node: it reads rows for a while, reports, and ends. Some read
// nothing and move bytes; some hang.
func (s *Sim) runTask(n *node, t *wire.RunTask) {
	rows := int64(s.between(100, 20000))
	rate := s.speed[n.id]
	if !s.opt.Faultless && s.rng.IntN(15) == 0 {
		s.fired("slow task")
		rate /= 30
	}
	took := plan.Time(float64(rows) / rate * float64(time.Second))
	report := func(at, of plan.Time) executor.Event {
		p := &wire.TaskProgress{Job: t.Job, Call: t.Call, Partition: t.Partition,
			Rows: int64(float64(rows) * float64(at) / float64(took)), BusyNs: int64(of)}
		return executor.Event{Acting: p}
	}
	if s.law.hangs && s.odd.IntN(12) == 0 {
		s.hangTask(n, t, took, report)
		return
	}
	if s.law.hangs && s.odd.IntN(12) == 0 {
		s.fired("bytes moved")
		took += s.cfg.TaskTimeout
		report = func(at, of plan.Time) executor.Event {
			return executor.Event{Acting: &wire.TaskProgress{Job: t.Job, Call: t.Call, Partition: t.Partition,
				Moved: int64(at), BusyNs: int64(of)}}
		}
	}
	for at := taskReport; at < took; at += taskReport {
		n.after(s.w.now+at, func() { n.step(report(at, at)) })
	}
	n.after(s.w.now+took, func() { s.endTask(n, t, rows, took) })
}

// hangTask runs a task that reads some rows and then none, though it goes on reporting.
// Half of them end at last, when they have been given up.
func (s *Sim) hangTask(n *node, t *wire.RunTask, took plan.Time, report func(at, of plan.Time) executor.Event) {
	s.fired("hung task")
	stops := plan.Time(s.odd.Float64() * float64(took))
	until := 2*s.cfg.TaskTimeout + plan.Time(s.odd.Float64()*float64(s.cfg.TaskTimeout))
	for at := taskReport; at < until; at += taskReport {
		n.after(s.w.now+at, func() { n.step(report(min(at, stops), at)) })
	}
	if s.odd.IntN(2) == 0 {
		n.after(s.w.now+until, func() { s.endTask(n, t, 1, until) })
	}
}

func (s *Sim) endTask(n *node, t *wire.RunTask, rows int64, took plan.Time) {
	r := n.work.act(t)
	r.Rows, r.BusyNs = rows, int64(took)
	s.failTask(r)
	n.step(executor.Event{Acted: r})
}

// failTask lets a task fail now and then.
func (s *Sim) failTask(r *wire.TaskResult) {
	switch k := s.rng.IntN(300); {
	case s.opt.Faultless:
	case s.law.poisonous && r.Partition == 0 && s.w.now > s.poisonAt:
		r.Fault, r.Data = wire.FromError(fault.Newf(fault.NoResources, "run", "a task", "there is never memory")), nil
	case k < 5:
		s.fired("task failed")
		r.Fault, r.Data = wire.FromError(fault.Newf(fault.NoResources, "run", "a task", "there is no memory")), nil
	case k == 5:
		s.fired("input lost")
		r.Fault, r.Data = wire.FromError(fault.Newf(fault.LostInput, "read", "a block", "it is gone")), nil
	}
}
