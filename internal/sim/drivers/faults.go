package drivers

import (
	"slices"
	"time"
)

// fault draws a fault, and when the next comes.
func (s *world) fault() {
	if s.calm {
		return
	}
	d := s.drivers[s.rng.IntN(3)]
	if s.rng.IntN(2) == 0 { // the one that leads is of most interest
		for _, o := range s.drivers {
			if o.reigns {
				d = o
			}
		}
	}
	switch s.rng.IntN(10) {
	case 0:
		s.kill(d, "driver killed", false)
	case 1:
		s.kill(d, "machine lost", true)
	case 2:
		s.fired("driver stopped")
		d.frozen = s.w.Now() + s.ms(200, 5000)
	case 3:
		s.isolate(d)
	case 4:
		s.fired("link cut one way")
		o := s.drivers[(d.id+1+s.rng.IntN(2))%3]
		s.cut[d.id][o.id] = true
		s.later(s.ms(200, 6000), func() { s.cut[d.id][o.id] = false })
	case 5:
		s.loseJournal(d)
	case 6, 8:
		s.haste(d)
	case 7:
		s.fired("driver started again at once")
		if d.up {
			s.down(d, false)
			s.later(s.ms(1, 200), d.start)
		}
	default:
		for _, o := range s.drivers {
			s.kill(o, "all drivers killed", s.rng.IntN(2) == 0)
		}
	}
	s.later(s.ms(200, 4000), s.fault)
}

// kill ends a driver's process, and with its machine the processes of jobs on it. It comes back.
func (s *world) kill(d *node, what string, machine bool) {
	if !d.up {
		return
	}
	s.fired(what)
	s.down(d, machine)
	s.later(s.ms(100, 6000), d.start)
}

func (s *world) down(d *node, machine bool) {
	s.tell("--- driver %d is down, machine %v", d.id, machine)
	d.up, d.role, d.reigns = false, follower, false
	for _, j := range s.jobs {
		for _, p := range j.procs {
			if p.on == d && machine {
				p.die("its machine is lost")
			}
		}
	}
}

// haste cuts the driver that leads off when one of the others has just been, and has the third be started again: it
// does not remember whom it heard.
func (s *world) haste(d *node) {
	a, b := s.drivers[(d.id+1)%3], s.drivers[(d.id+2)%3]
	if !d.reigns || !a.up || !b.up {
		return
	}
	s.fired("the one that has heard is started again")
	s.cut[d.id][b.id], s.cut[b.id][a.id] = true, true
	s.later(s.ms(700, 1600), func() {
		s.cut[b.id][a.id], s.cut[d.id][a.id] = false, true
		d.frozen = s.w.Now() + s.ms(1000, 4000)
		if a.up {
			s.down(a, false)
			s.later(s.ms(1, 60), a.start)
		}
	})
	s.later(s.ms(4000, 6000), func() { s.cut[d.id][b.id], s.cut[d.id][a.id] = false, false })
}

// isolate cuts a driver off from the others.
func (s *world) isolate(d *node) {
	s.fired("driver cut off")
	s.tell("--- driver %d is cut off", d.id)
	for o := range 3 {
		s.cut[d.id][o], s.cut[o][d.id] = true, true
	}
	if s.rng.IntN(3) > 0 { // before it finds out that it leads no more
		s.later(s.ms(350, 480), func() { s.kill(d, "driver killed", false) })
	}
	s.later(s.ms(500, 8000), func() {
		for o := range 3 {
			s.cut[d.id][o], s.cut[o][d.id] = false, false
		}
	})
}

// loseJournal has a driver's journal damaged, or the driver be made again, while it is down. Two of three that have
// lost what they confirmed cannot be mended: only one is without its journal at a time.
func (s *world) loseJournal(d *node) {
	for _, o := range s.drivers {
		if o.incomplete || !o.up && len(o.log) == 0 || len(o.log) < 2 {
			return
		}
	}
	for _, j := range s.jobs { // nor is one lost of two that have a job's files
		if !j.done && s.onlyOn(d, j) {
			return
		}
	}
	if !d.up {
		return
	}
	s.down(d, true)
	d.log, d.commit = nil, 0
	if s.rng.IntN(2) == 0 {
		s.fired("journal lost")
	} else { // of a bundle
		s.fired("driver made again")
		d.founded, d.files, d.term, d.voted = false, nil, 0, 0
	}
	if s.rng.IntN(2) == 0 {
		for _, o := range s.drivers {
			s.kill(o, "all drivers killed", false)
		}
	}
	s.later(s.ms(100, 4000), d.start)
}

// onlyOn reports whether no other driver has what a job is to go on from, by what was confirmed or by any journal: an
// entry may be confirmed later.
func (s *world) onlyOn(d *node, j *job) bool {
	marks := []mark{j.kept}
	for _, o := range s.drivers {
		for _, e := range o.log {
			if e.kind == stepped && e.job == j.name {
				marks = append(marks, e.mark)
			}
		}
	}
	return slices.ContainsFunc(marks, func(m mark) bool {
		return m.step > 0 && !slices.ContainsFunc(s.drivers, func(o *node) bool {
			return o != d && j.includes(o.files[j.name], m)
		})
	})
}

// becomeCalm ends all faults.
func (s *world) becomeCalm() {
	s.calm = true
	s.tell("--- no more faults")
	s.cut = [3][3]bool{}
	for _, d := range s.drivers {
		d.frozen = 0
		s.later(10*time.Millisecond, d.start)
	}
	for _, j := range s.jobs {
		j.need = min(j.need, j.kept.step+30)
	}
}
