package life

import (
	"fmt"
	"strings"

	"github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/plan"
)

// pending is an entry of the journal that is not durable yet.
type pending struct{ records []daemon.Record }

// write brings an entry to the journal, which may be slow, refuse it, or not answer in time.
// Entries become durable in order.
func (s *world) write(c *daemon.LifeWrite) {
	if c.Result && s.chance(50) {
		s.fired("life: result not kept")
	}
	answer := s.w.Now() + s.ms(1, 5)
	at := max(s.applied, answer)
	ev := &daemon.LifeWritten{ID: c.ID}
	switch {
	case !s.calm && s.w.Now() < s.full || s.chance(10*s.law.journal):
		s.fired("life: journal refuses")
		ev.Outcome, ev.Why = daemon.NotApplied, "no space left on device"
		s.later(answer-s.w.Now(), func() { s.step(daemon.LifeEvent{Written: ev}) })
		return
	case s.chance(10 * s.law.journal):
		s.fired("life: journal slow")
		at += s.ms(5, 800)
	case s.chance(10 * s.law.journal):
		s.fired("life: journal silent")
		ev.Outcome, ev.Why = daemon.Unknown, "its disk has not answered"
		at += s.ms(0, 3000)
		answer += s.ms(0, 3000)
	}
	p := &pending{c.Records}
	s.pending, s.applied = append(s.pending, p), at
	if ev.Outcome == daemon.Applied {
		answer = at
	}
	s.later(at-s.w.Now(), func() {
		s.pending = s.pending[1:]
		s.apply(p.records)
	})
	s.later(answer-s.w.Now(), func() { s.step(daemon.LifeEvent{Written: ev}) })
}

func (s *world) apply(records []daemon.Record) {
	for _, r := range records {
		s.journal.Apply(r)
	}
}

// kept returns what the journal durably has of a job.
func (s *world) kept(job string) (daemon.JobState, bool) {
	j, ok := s.journal.Jobs[plan.JobID(job)]
	return j, ok
}

func (s *world) makeDir(job string) {
	ev := &daemon.LifeMade{Job: job}
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
	s.step(daemon.LifeEvent{Made: ev})
}

func (s *world) remove(jobs []string) {
	s.later(s.ms(1, 50), func() {
		g := &daemon.LifeGone{Jobs: jobs}
		for _, id := range jobs {
			delete(s.dirs, id)
			g.Bytes += s.size(id)
		}
		s.step(daemon.LifeEvent{Gone: g})
	})
}

// size returns how large a job's directory is.
func (s *world) size(job string) int64 { return int64(1000 + 100*len(job)) }

func (s *world) measure(jobs []string) {
	s.later(s.ms(1, 20), func() {
		sizes := map[string]int64{}
		for _, id := range jobs {
			sizes[id] = s.size(id)
		}
		s.step(daemon.LifeEvent{Measured: sizes})
	})
}

// eventText and commandText are an event and a command on one line.
func eventText(ev daemon.LifeEvent) string {
	switch {
	case ev.Ask != nil:
		return fmt.Sprintf("asked %+v", *ev.Ask)
	case ev.Made != nil:
		return fmt.Sprintf("made %+v", *ev.Made)
	case ev.Written != nil:
		return fmt.Sprintf("written %+v", *ev.Written)
	case ev.Process != nil:
		return fmt.Sprintf("process %s %d started %v failed %+v exited %+v said %+v", ev.Process.Job, ev.Process.Term,
			ev.Process.Started, ev.Process.Failed, ev.Process.Exited, ev.Process.Said)
	case ev.Link != nil:
		return fmt.Sprintf("link %+v", *ev.Link)
	case ev.Member != nil:
		return fmt.Sprintf("member %+v ended %+v", *ev.Member, ev.Member.Ended)
	}
	return fmt.Sprintf("event %+v", ev)
}

func commandText(c daemon.LifeCommand) string {
	var out []string
	for _, x := range []any{c.Write, c.Start, c.Kill, c.Interrupt, c.Tell, c.Open, c.Close, c.Admit, c.Drop, c.Shown,
		c.Executor, c.Over, c.Reply, c.Log} {
		if text := fmt.Sprintf("%+v", x); text != "<nil>" {
			out = append(out, fmt.Sprintf("%T%s", x, text))
		}
	}
	out = append(out, fmt.Sprint(c.MakeDir, c.Goodbye, c.Renew, c.Forget, c.Remove, c.Measure))
	return strings.Join(out, " ")
}
