package life

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/plan"
)

// proc is a process of a job.
type proc struct {
	s           *world
	job         string
	work        *work
	term        uint32
	incarnation string
	run         int // of the driver that has started it
	alive       bool
	gone        bool // the driver knows that it has ended
	hung        bool
	link        uint64
	said        *uint32 // the code of the end that it has told of
}

// startProcess starts a job's process, or fails to.
func (s *world) startProcess(c *daemon.LifeStart) {
	j := s.jobs[c.Job]
	if j == nil {
		j = &work{need: 5}
		s.jobs[c.Job] = j
	}
	p := &proc{s: s, job: c.Job, work: j, term: c.Term, incarnation: c.Incarnation, run: s.run, alive: true}
	j.proc = p
	s.later(s.ms(1, 20), func() {
		if failed := s.cannotStart(); failed != nil {
			p.alive = false
			p.event(daemon.ProcessEvent{Failed: failed})
			return
		}
		p.event(daemon.ProcessEvent{Started: true})
		p.later(s.ms(2, 30), p.begin)
	})
}

// cannotStart returns why a process cannot be started now, if it cannot.
func (s *world) cannotStart() *daemon.ProcessFailed {
	room := s.w.Now() < s.law.noRoom || s.w.Now() > s.law.noRoom+6*time.Second
	switch {
	case !s.calm && !room && s.rng.IntN(10) < 9 || s.chance(20):
		s.fired("life: no room for a process")
		return &daemon.ProcessFailed{Why: "too many open files", Words: "too many open files", Passes: true}
	case s.chance(4):
		s.fired("life: program gone")
		return &daemon.ProcessFailed{Why: "its program is gone", Words: "its program is gone", Never: true}
	case s.chance(10):
		s.fired("life: program cannot run")
		return &daemon.ProcessFailed{Why: "permission denied", Words: "permission denied"}
	}
	return nil
}

// event reports an event of the process to the driver, if it is the one that started it.
func (p *proc) event(ev daemon.ProcessEvent) {
	if p.s.run == p.run {
		ev.Job, ev.Term = p.job, p.term
		p.s.step(daemon.LifeEvent{Process: &ev})
	}
}

// later has something happen, if the process lives then and does not hang.
func (p *proc) later(after plan.Time, do func()) {
	p.s.w.At(p.s.w.Now()+after, func() {
		if p.alive && !p.hung {
			do()
		}
	})
}

// begin connects to the driver, or comes to no more.
func (p *proc) begin() {
	switch s := p.s; {
	case p.run != s.run:
	case s.chance(20 * s.law.deaths):
		s.fired("life: process dies early")
		p.exit("signal: killed", false)
	case s.chance(5 * s.law.deaths):
		s.fired("life: process is lost early")
		p.exit("exit status 75", true)
	default:
		s.number++
		link := s.number
		from := s.ticket(func(r *daemon.LifeReply) {
			if r.Code == codes.OK && p.alive {
				p.later(s.ms(1, 30), p.tick)
			}
		})
		p.link = link
		s.step(daemon.LifeEvent{Link: &daemon.LinkEvent{Job: p.job, Link: link,
			Connected: &daemon.LinkConnected{From: from, Incarnation: p.incarnation}}})
	}
}

// tick does a step, if there is a runner, or comes to grief.
func (p *proc) tick() {
	s := p.s
	if p.run != s.run || p.link == 0 || p.said != nil {
		return
	}
	p.later(s.ms(5, 60), p.tick)
	if s.chance(5*s.law.deaths) && p.grief() {
		return
	}
	if !s.runsSomewhere(p.job) {
		return
	}
	p.work.done++
	c := &daemon.Record{Step: plan.StepID(p.work.done)}
	s.step(daemon.LifeEvent{Link: &daemon.LinkEvent{Job: p.job, Link: p.link, Commit: c}})
	if p.work.done >= p.work.need {
		p.ends(0)
	}
}

// grief draws a fault of a process and reports whether there was one.
func (p *proc) grief() bool {
	s := p.s
	switch s.rng.IntN(10) {
	case 0, 1:
		s.fired("life: process killed")
		p.lateWord()
		p.exit("signal: killed", false)
	case 2:
		s.fired("life: process exits without a word")
		p.exit("exit status 0", false)
	case 3:
		if s.rng.IntN(3) > 0 {
			return false
		}
		s.fired("life: process fails")
		p.ends(1)
	case 4, 5:
		s.fired("life: process hangs")
		p.hung = true
		p.lateWord()
		p.report(2*time.Second, func(ev *daemon.LinkEvent) { ev.Silent = "2s" })
	case 6:
		s.fired("life: process does not read")
		p.report(s.ms(1, 500), func(ev *daemon.LinkEvent) { ev.Deaf = "it waits for too long" })
		return false
	case 7:
		s.fired("life: process hangs up")
		p.hangUp()
		p.later(s.ms(0, 200), func() { p.exit("exit status 75", true) })
	case 8:
		what := []string{"no space left on device", ""}[s.rng.IntN(2)]
		s.step(daemon.LifeEvent{Link: &daemon.LinkEvent{Job: p.job, Link: p.link, Trouble: &what}})
		return false
	default:
		e := s.execs[s.rng.IntN(len(s.execs))].name
		x := &driver.Exclusion{Executor: plan.ExecutorID(e), Why: []string{"it fails tasks", ""}[s.rng.IntN(2)]}
		s.step(daemon.LifeEvent{Link: &daemon.LinkEvent{Job: p.job, Link: p.link, Exclusion: x}})
		return false
	}
	return true
}

// report has the driver notice something about the process's connection.
func (p *proc) report(after plan.Time, what func(*daemon.LinkEvent)) {
	ev := &daemon.LinkEvent{Job: p.job, Link: p.link}
	what(ev)
	p.s.later(after, func() {
		if p.alive && p.link == ev.Link {
			p.s.step(daemon.LifeEvent{Link: ev})
		}
	})
}

// lateWord has what the process says of its end arrive when another may have taken its place.
func (p *proc) lateWord() {
	code := uint32(p.s.rng.IntN(2))
	p.s.later(p.s.ms(20, 4000), func() {
		if !p.alive {
			p.s.fired("life: late word")
			said := &daemon.ProcessSaid{Incarnation: p.incarnation, Code: code, Why: "it fails"}
			p.s.step(daemon.LifeEvent{Process: &daemon.ProcessEvent{Job: p.job, Said: said}})
		}
	})
}

// ends has the process say how it ends, and end.
func (p *proc) ends(code uint32) {
	said := &daemon.ProcessSaid{Incarnation: p.incarnation, Code: code,
		Files: []daemon.MadeFile{{Path: "out/model.json"}}}
	if code != 0 {
		said.Why, said.Files = "it fails", nil
	}
	said.From = p.s.ticket(func(r *daemon.LifeReply) {
		p.later(p.s.ms(0, 20), func() { p.exit(fmt.Sprintf("exit status %d", code), false) })
	})
	p.said = &code
	p.event(daemon.ProcessEvent{Said: said})
}

// exit ends the process, and its connection before or after that.
func (p *proc) exit(why string, lost bool) {
	if !p.alive {
		return
	}
	p.alive = false
	first := p.s.rng.IntN(2) == 0
	if first {
		p.hangUp()
	} else {
		p.s.later(p.s.ms(0, 40), p.hangUp)
	}
	run := p.run
	p.s.w.At(p.s.w.Now()+p.s.ms(0, 10), func() {
		if p.s.run == run {
			p.event(daemon.ProcessEvent{Exited: &daemon.ProcessExited{Why: why, Lost: lost,
				Words: "its process ended without a report (" + why + ")"}})
			p.s.beyond(p.job)
		}
	})
}

func (p *proc) hangUp() {
	if link := p.link; link != 0 && p.s.run == p.run {
		p.link = 0
		p.s.step(daemon.LifeEvent{Link: &daemon.LinkEvent{Job: p.job, Link: link, HungUp: true}})
	}
}

// orphaned ends, soon, a process whose driver is gone.
func (p *proc) orphaned() {
	p.link = 0
	p.s.w.At(p.s.w.Now()+p.s.ms(0, 2000), func() { p.alive = false })
}

// kill kills a job's process, which a disk may hold up.
func (s *world) kill(c *daemon.LifeProcess) {
	p := s.jobs[c.Job].proc
	if p == nil || p.term != c.Term {
		return
	}
	wait := s.ms(0, 5)
	if s.chance(100) {
		s.fired("life: kill held up")
		wait = s.ms(5, 1000)
	}
	s.w.At(s.w.Now()+wait, func() { p.exit("signal: killed", false) })
}

// interrupt asks a job's process to end, which it may not.
func (s *world) interrupt(c *daemon.LifeProcess) {
	p := s.jobs[c.Job].proc
	if p == nil || p.term != c.Term {
		return
	}
	switch k := s.rng.IntN(10); {
	case k < 5:
		p.later(s.ms(1, 500), func() { p.ends(3) })
	case k == 5:
		p.later(s.ms(1, 500), func() { p.ends(0) })
	default:
		s.fired("life: interrupt ignored")
	}
}

// told takes a message that a job's process receives.
func (s *world) told(c *daemon.LifeNotice) {
	p := s.jobs[c.Job].proc
	if p == nil || p.link != c.Link || c.Drain == "" {
		return
	}
	p.later(s.ms(1, 100), func() {
		if p.link == c.Link && s.run == p.run {
			s.step(daemon.LifeEvent{Link: &daemon.LinkEvent{Job: p.job, Link: c.Link, Drained: c.Drain}})
		}
	})
}
