package sim

import (
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// laws say what may happen in a world.
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
	link      float64 // bytes a second of an executor's link, 0 is fast
}

func (s *Sim) drawLaws() laws {
	one := func(in int) bool { return s.rng.IntN(in) == 0 }
	l := laws{packs: 1, calls: one(2), unkept: one(6), massacres: one(5), drains: one(3), stalls: one(8), tight: one(4), foreign: one(5)}
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
	return l
}

// poisoned says whether work on a split fails from now on.
func (s *Sim) poisoned(pack, split int) bool {
	if s.law.tight && !s.law.poisonous && s.rng.IntN(60) == 0 {
		s.fired("fold failed")
		return true
	}
	return s.law.poisonous && s.w.now >= s.poisonAt && pack == 0 && split == 0
}

// exactDrops says whether each row that is dropped is seen to be.
func (s *Sim) exactDrops() bool { return len(s.packs) == 1 }

// knownToFail are the oracles that the engine does not satisfy yet.
var knownToFail = map[string]bool{"1.dropped-once": true, "6.stopped-getter": true, "drain.unprepared": true}

// known notes what an oracle has found that the engine is known to fail.
func (s *Sim) known(oracle, format string, args ...any) {
	had := len(s.result.Violations)
	s.violate(oracle, format, args...)
	if knownToFail[oracle] && len(s.result.Violations) > had {
		s.result.Known = append(s.result.Known, s.result.Violations[had])
		s.result.Violations = s.result.Violations[:had]
	}
}

// action begins an action: some read a pack's splits, others what they please.
func (s *Sim) action() {
	s.actions = s.result.Steps + 1
	req := &driver.CallRequest{Pack: -1, Args: make([][]byte, s.between(1, 40))}
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
				s.violate("1.report", "%s reports %d of split %d, %d are processed", n.id, c.Processed, c.Split, sample.Counts[i])
			}
		}
	}
}

// taskReport is how often a task says how far it is.
const taskReport = 250 * time.Millisecond

// runTask runs a task on a node: it reads rows for a while, reports, and ends.
func (s *Sim) runTask(n *node, t *wire.RunTask) {
	rows := int64(s.between(100, 20000))
	rate := s.speed[n.id]
	if !s.opt.Faultless && s.rng.IntN(15) == 0 {
		s.fired("slow task")
		rate /= 30
	}
	took := plan.Time(float64(rows) / rate * float64(time.Second))
	for at := taskReport; at < took; at += taskReport {
		p := &wire.TaskProgress{Job: t.Job, Call: t.Call, Partition: t.Partition, Rows: int64(float64(rows) * float64(at) / float64(took)), BusyNs: int64(at)}
		n.after(s.w.now+at, func() { n.step(executor.Event{Acting: p}) })
	}
	n.after(s.w.now+took, func() {
		r := n.work.act(t)
		r.Rows, r.BusyNs = rows, int64(took)
		s.failTask(r)
		n.step(executor.Event{Acted: r})
	})
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
