package sim

import (
	"slices"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/plan"
)

// detection is how long the driver takes to notice that an executor is gone,
// and suspicion how long one must be silent.
const (
	detection = 2 * time.Millisecond
	suspicion = 100 * time.Millisecond
)

// scheduleFaults spreads crashes and hangs over the run, one after the other,
// so that most executors live at any time.
func (s *Sim) scheduleFaults() {
	s.w.At(s.span(time.Millisecond, 300*time.Millisecond), s.strike)
	if s.law.unkept {
		s.w.At(s.span(5*time.Millisecond, 150*time.Millisecond), s.crashJob)
	}
}

// strike does one harm and schedules the next.
func (s *Sim) strike() {
	if s.over {
		return
	}
	n := s.order[s.rng.IntN(len(s.order))]
	if s.w.now < s.stalled {
		s.w.At(s.stalled+time.Second, s.strike) // so that it can be seen what a stalled executor alone does
		return
	}
	if s.opened && n.up && n.hung <= s.w.now && s.living() > len(s.order)/2+1 {
		if s.harm(n); s.stalled <= s.w.now {
			s.harmed = s.w.now
		}
	}
	s.w.At(s.w.now+s.span(5*time.Millisecond, 400*time.Millisecond), s.strike)
}

func (s *Sim) harm(n *node) {
	switch s.rng.IntN(9) {
	case 0:
		s.crash(n)
	case 1:
		s.hang(n)
	case 2:
		s.fired("speed change")
		s.speed[n.id] = 50_000 * (0.2 + 3.8*s.rng.Float64())
	case 3:
		s.partition(n)
	case 4:
		if s.rng.IntN(4) == 0 || s.law.unkept {
			s.crashJob()
		}
	case 5:
		s.fired("disk full")
		n.full = s.w.now + s.span(50*time.Millisecond, 2*time.Second)
	case 6:
		if s.law.drains {
			s.drain(n)
		}
	case 7:
		if s.law.massacres && s.rng.IntN(3) == 0 {
			s.massacre()
		}
	case 8:
		if s.law.stalls && s.rng.IntN(2) == 0 {
			s.stall(n)
		}
	}
}

// drain takes an executor out of use, and half of the time another one that its splits
// are on their way to, as when a rack is emptied.
func (s *Sim) drain(n *node) {
	s.fired("drain")
	s.step(driver.Event{Drain: n.id})
	getting := slices.DeleteFunc(slices.Clone(s.order),
		func(o *node) bool { return o == n || !s.watch.place.awaits(o.id) })
	if len(getting) == 0 || s.odd.IntN(2) == 0 {
		return
	}
	other := getting[s.odd.IntN(len(getting))]
	s.w.At(s.w.now+plan.Time(s.odd.IntN(int(3*time.Millisecond))), func() {
		if !s.over {
			s.fired("drain")
			s.step(driver.Event{Drain: other.id})
		}
	})
}

// massacre takes most executors down at once.
func (s *Sim) massacre() {
	s.fired("massacre")
	spared := s.rng.IntN(3)
	for _, n := range s.order {
		if n.up && n.hung <= s.w.now {
			if spared--; spared < 0 {
				s.crash(n)
			}
		}
	}
}

// stall freezes a node for long without detection: its machine answers, its
// runner does not.
func (s *Sim) stall(n *node) {
	s.fired("stall")
	until := s.w.now + s.span(8*time.Second, 15*time.Second)
	n.stalled, s.stalled = until, until
	s.getting = s.watch.place.awaits(n.id)
	n.hang(until)
}

// leave takes a drained node down; it comes back empty some time later.
func (s *Sim) leave(n *node) {
	s.fired("drained")
	if n.up {
		s.crash(n)
	}
}

func (s *Sim) living() int {
	n := 0
	for _, x := range s.order {
		if x.up && x.hung <= s.w.now {
			n++
		}
	}
	return n
}

func (s *Sim) lose(n *node, why string) {
	n.conn++
	if connected := n.joined == s.job; connected && !s.over {
		n.joined = nil
		s.step(driver.Event{Lost: &driver.Lost{Executor: n.id, Why: why}})
	}
}

// crash takes a node down; it comes back empty some time later.
func (s *Sim) crash(n *node) {
	s.fired("crash")
	n.crash()
	life := n.life
	s.w.At(s.w.now+detection, func() { s.lose(n, "crash") })
	s.w.At(s.w.now+detection+s.span(time.Millisecond, 800*time.Millisecond), func() {
		if n.up || n.life != life {
			return // the job's process was started anew, and it with it
		}
		s.fired("return")
		n.up = true
		s.boot(n)
		s.join(n)
	})
}

// hang freezes a node. If it is silent for too long it is taken for lost; when
// it wakes, what it had under way arrives late, and it joins again.
func (s *Sim) hang(n *node) {
	s.fired("hang")
	until := s.w.now + s.span(10*time.Millisecond, 600*time.Millisecond)
	n.hang(until)
	if until-s.w.now <= suspicion {
		return
	}
	life := n.life
	s.w.At(s.w.now+suspicion, func() {
		if n.life == life {
			s.lose(n, "silent")
		}
	})
	s.w.At(until+time.Millisecond, func() {
		if n.life == life {
			s.join(n)
		}
	})
}

// breakConnection loses a link both ways: the driver takes the executor for
// lost, and the executor, which works on, registers again.
func (s *Sim) breakConnection(n *node) {
	life := n.life
	s.w.At(s.w.now+detection, func() { s.lose(n, "connection lost") })
	s.w.At(s.w.now+detection+s.span(time.Millisecond, 20*time.Millisecond), func() {
		if n.life == life && n.hung <= s.w.now {
			s.join(n)
		} else if n.life == life {
			s.w.At(n.hung+time.Millisecond, func() { s.join(n) })
		}
	})
}

// unheard reports whether there is an executor that has stopped or is cut off, so that what it
// was asked for may take its time.
func (s *Sim) unheard() bool {
	return slices.ContainsFunc(s.order, func(n *node) bool { return n.up && n.unheardAfter(s.w.now) })
}

// unheardAfter reports whether the executor was stopped or cut off at a time, or later.
func (n *node) unheardAfter(t plan.Time) bool { return max(n.stalled, n.cut["to"], n.cut["fr"]) > t }

// partition cuts a link one way. If that is the executor's voice, and it lasts,
// the executor is taken for lost; when the way is open again it joins again.
func (s *Sim) partition(n *node) {
	s.fired("partition")
	until := s.w.now + s.span(10*time.Millisecond, 600*time.Millisecond)
	way := []string{"to", "fr"}[s.rng.IntN(2)]
	n.cut[way] = until
	if way == "to" || until-s.w.now <= suspicion {
		return
	}
	life := n.life
	s.w.At(s.w.now+suspicion, func() {
		if n.life == life {
			s.lose(n, "silent")
		}
	})
	s.w.At(until+time.Millisecond, func() {
		if n.life == life && n.hung <= s.w.now {
			s.join(n)
		} else if n.life == life {
			s.w.At(n.hung+time.Millisecond, func() { s.join(n) })
		}
	})
}

// crashJob kills the job's process. Another is started from what was kept; the
// executors' runners end with their connections, and are started anew, while
// what they had sent may still be on its way.
func (s *Sim) crashJob() {
	if s.over || s.cfg.Life > 20 {
		return
	}
	s.fired("job crash")
	if s.kept == nil {
		s.fired("job crash before the first checkpoint") // it begins again
	} else if mutant.On(mutant.UncommittedResume) && s.opened {
		s.kept.ledgers = s.ledgers()
	}
	s.cfg.Life++
	s.cfg.Again = true
	s.cfg.Executors = max(1, s.living()-1)
	s.clock, s.wakes = s.skewed(), map[plan.Time]bool{} // it may be started on another machine
	s.newJob(s.kept)
	s.arriveLate()
	for _, n := range s.order {
		if !n.up {
			continue
		}
		n.crash()
		n.conn++
		life := n.life
		s.w.At(s.w.now+detection+s.span(time.Millisecond, 30*time.Millisecond), func() {
			if n.life == life && !n.up {
				n.up = true
				s.boot(n)
				s.join(n)
			}
		})
	}
}
