package life

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/volley-engine/volley/driver/daemon"
)

// exec is an executor: it has a runner of each job that it was asked for.
type exec struct {
	s       *world
	name    string
	number  int               // of its process
	link    uint64            // 0 while it is not connected
	runners map[string]uint64 // by job
	unfit   string
	away    bool
}

func (e *exec) incarnation() string { return fmt.Sprintf("%s/%d", e.name, e.number) }

// join registers; one that is refused tries again.
func (e *exec) join() {
	if e.away || e.link != 0 || !e.s.up() {
		return
	}
	e.s.number++
	link := e.s.number
	from := e.s.ticket(func(r *daemon.LifeReply) {
		if r.Code != codes.OK {
			e.s.fired("life: executor refused")
			e.s.later(200*time.Millisecond, e.join)
		}
	})
	ev := &daemon.MemberEvent{Executor: e.name, Link: link,
		Joined: &daemon.MemberJoined{From: from, Incarnation: e.incarnation()}}
	e.link, e.runners = link, map[string]uint64{}
	e.s.watch.admitted = false
	e.s.step(daemon.LifeEvent{Member: ev})
	if !e.s.watch.admitted {
		e.link = 0
	} else if e.unfit != "" {
		e.says(func(ev *daemon.MemberEvent) { ev.Unfit = &e.unfit })
	}
}

// says sends the driver a message over the present connection.
func (e *exec) says(what func(*daemon.MemberEvent)) {
	if e.link != 0 {
		ev := &daemon.MemberEvent{Executor: e.name, Link: e.link}
		what(ev)
		e.s.step(daemon.LifeEvent{Member: ev})
	}
}

// part ends the connection; the driver may notice late.
func (e *exec) part(why string, notice bool) {
	link := e.link
	if link == 0 {
		return
	}
	e.link, e.runners = 0, map[string]uint64{}
	wait := e.s.ms(0, 3)
	if !notice {
		wait = 2 * time.Second
	}
	e.s.later(wait, func() {
		e.s.step(daemon.LifeEvent{Member: &daemon.MemberEvent{Executor: e.name, Link: link, Left: true, Why: why}})
	})
}

// dropped takes the end of one of its connections.
func (e *exec) dropped(c *daemon.LifeMember) {
	e.s.later(e.s.ms(0, 5), func() {
		e.s.step(daemon.LifeEvent{Member: &daemon.MemberEvent{Executor: e.name, Link: c.Link, Left: true, Why: c.Why}})
	})
}

func (e *exec) goodbye() {
	e.s.fired("life: goodbye")
	e.part("it said goodbye", true)
	e.number++
	e.s.later(e.s.ms(100, 2000), e.join)
}

// open starts a runner of a job, in the place of another. It ends where it is rotten.
func (e *exec) open(c *daemon.LifeRunner) {
	link := e.link
	e.s.later(e.s.ms(0, 10), func() {
		if e.link != link {
			return
		}
		if e.unfit != "" {
			e.closed(c, "it cannot be started")
			return
		}
		e.runners[c.Job] = c.ID
		if e.rots(c.Job) || e.s.chance(40) {
			e.s.fired("life: runner ends")
			e.s.later(e.s.ms(1, 60), func() {
				if e.link == link && e.runners[c.Job] == c.ID {
					delete(e.runners, c.Job)
					e.closed(c, "its runner ended")
				}
			})
		}
	})
}

// rots reports whether the runners of a job end here.
func (e *exec) rots(job string) bool {
	s, j := e.s, e.s.jobs[job]
	return !s.calm && s.law.rotten && s.w.Now() < s.law.rotUntil && j != nil && j.rotten &&
		(s.law.wholly || e == s.execs[0])
}

// closed sends the driver, perhaps late, that a runner has ended.
func (e *exec) closed(c *daemon.LifeRunner, why string) {
	link, wait := e.link, e.s.ms(0, 3)
	if e.s.chance(200) {
		e.s.fired("life: late word of a runner")
		wait = e.s.ms(3, 500)
	}
	e.s.later(wait, func() {
		ended := &daemon.LifeRunner{Executor: e.name, Job: c.Job, ID: c.ID, Why: why}
		e.s.step(daemon.LifeEvent{Member: &daemon.MemberEvent{Executor: e.name, Link: link, Ended: ended}})
	})
}

// close ends the runner of a job, which says nothing.
func (e *exec) close(c *daemon.LifeRunner) { delete(e.runners, c.Job) }

// runsSomewhere reports whether a job has a runner.
func (s *world) runsSomewhere(job string) bool {
	for _, e := range s.execs {
		if e.link != 0 && e.runners[job] != 0 {
			return true
		}
	}
	return false
}
