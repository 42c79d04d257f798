package sim

import (
	"time"

	"github.com/volley-engine/volley/driver"
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
}

// strike does one harm and schedules the next.
func (s *Sim) strike() {
	if s.over {
		return
	}
	n := s.order[s.rng.IntN(len(s.order))]
	if s.opened && n.up && n.hung <= s.w.now && s.living() > len(s.order)/2+1 {
		switch s.rng.IntN(3) {
		case 0:
			s.crash(n)
		case 1:
			s.hang(n)
		case 2:
			s.fired("speed change")
			s.speed[n.id] = 50_000 * (0.2 + 3.8*s.rng.Float64())
		}
	}
	s.w.At(s.w.now+s.span(5*time.Millisecond, 400*time.Millisecond), s.strike)
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
	if !s.over {
		s.step(driver.Event{Lost: &driver.Lost{Executor: n.id, Why: why}})
	}
}

// crash takes a node down; it comes back empty some time later.
func (s *Sim) crash(n *node) {
	s.fired("crash")
	n.crash()
	s.w.At(s.w.now+detection, func() { s.lose(n, "crash") })
	s.w.At(s.w.now+detection+s.span(time.Millisecond, 800*time.Millisecond), func() {
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
	s.w.At(s.w.now+suspicion, func() { s.lose(n, "silent") })
	life := n.life
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
