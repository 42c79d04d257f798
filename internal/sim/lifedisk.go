package sim

import (
	"fmt"
	"strings"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
)

// lifePending is an entry of the journal that is not durable yet.
type lifePending struct{ records []driver.Record }

// write brings an entry to the journal, which may be slow, refuse it, or not answer in time.
// Entries become durable in order.
func (s *lifeSim) write(c *driver.LifeWrite) {
	if c.Result && s.chance(50) {
		s.fired("life: result not kept")
	}
	answer := s.w.now + s.ms(1, 5)
	at := max(s.applied, answer)
	ev := &driver.LifeWritten{ID: c.ID}
	switch {
	case !s.calm && s.w.now < s.full || s.chance(10*s.law.journal):
		s.fired("life: journal refuses")
		ev.Outcome, ev.Why = driver.NotApplied, "no space left on device"
		s.later(answer-s.w.now, func() { s.step(driver.LifeEvent{Written: ev}) })
		return
	case s.chance(10 * s.law.journal):
		s.fired("life: journal slow")
		at += s.ms(5, 800)
	case s.chance(10 * s.law.journal):
		s.fired("life: journal silent")
		ev.Outcome, ev.Why = driver.Unknown, "its disk has not answered"
		at += s.ms(0, 3000)
		answer += s.ms(0, 3000)
	}
	p := &lifePending{c.Records}
	s.pending, s.applied = append(s.pending, p), at
	if ev.Outcome == driver.Applied {
		answer = at
	}
	s.later(at-s.w.now, func() {
		s.pending = s.pending[1:]
		s.apply(p.records)
	})
	s.later(answer-s.w.now, func() { s.step(driver.LifeEvent{Written: ev}) })
}

func (s *lifeSim) apply(records []driver.Record) {
	for _, r := range records {
		s.journal.Apply(r)
	}
}

// kept is what the journal durably has of a job.
func (s *lifeSim) kept(job string) (driver.JobState, bool) {
	j, ok := s.journal.Jobs[plan.JobID(job)]
	return j, ok
}

func (s *lifeSim) makeDir(job string) {
	ev := &driver.LifeMade{Job: job}
	_, taken := s.dirs[job]
	switch {
	case taken:
		s.fired("life: directory taken")
		ev.Taken, ev.Failed = true, "file exists"
	case s.chance(60):
		s.fired("life: disk full")
		ev.Failed = "no space left on device"
	default:
		s.dirs[job] = true
	}
	s.step(driver.LifeEvent{Made: ev})
}

func (s *lifeSim) remove(jobs []string) {
	s.later(s.ms(1, 50), func() {
		g := &driver.LifeGone{Jobs: jobs}
		for _, id := range jobs {
			delete(s.dirs, id)
			g.Bytes += s.size(id)
		}
		s.step(driver.LifeEvent{Gone: g})
	})
}

// size is how large a job's directory is.
func (s *lifeSim) size(job string) int64 { return int64(1000 + 100*len(job)) }

func (s *lifeSim) measure(jobs []string) {
	s.later(s.ms(1, 20), func() {
		sizes := map[string]int64{}
		for _, id := range jobs {
			sizes[id] = s.size(id)
		}
		s.step(driver.LifeEvent{Measured: sizes})
	})
}

// lifeEventText and lifeCommandText are an event and a command on one line.
func lifeEventText(ev driver.LifeEvent) string {
	switch {
	case ev.Ask != nil:
		return fmt.Sprintf("asked %+v", *ev.Ask)
	case ev.Made != nil:
		return fmt.Sprintf("made %+v", *ev.Made)
	case ev.Written != nil:
		return fmt.Sprintf("written %+v", *ev.Written)
	case ev.Process != nil:
		return fmt.Sprintf("process %s %d started %v failed %+v exited %+v said %+v", ev.Process.Job, ev.Process.Term, ev.Process.Started, ev.Process.Failed, ev.Process.Exited, ev.Process.Said)
	case ev.Link != nil:
		return fmt.Sprintf("link %+v", *ev.Link)
	case ev.Member != nil:
		return fmt.Sprintf("member %+v ended %+v", *ev.Member, ev.Member.Ended)
	}
	return fmt.Sprintf("event %+v", ev)
}

func lifeCommandText(c driver.LifeCommand) string {
	var out []string
	for _, x := range []any{c.Write, c.Start, c.Kill, c.Interrupt, c.Tell, c.Open, c.Close, c.Admit, c.Drop, c.Shown, c.Executor, c.Over, c.Reply, c.Log} {
		if text := fmt.Sprintf("%+v", x); text != "<nil>" {
			out = append(out, fmt.Sprintf("%T%s", x, text))
		}
	}
	out = append(out, fmt.Sprint(c.MakeDir, c.Goodbye, c.Renew, c.Forget, c.Remove, c.Measure))
	return strings.Join(out, " ")
}
