package life

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/volley-engine/volley/driver/daemon"
)

// sometime has something happen once while there are faults, at any time.
func (s *world) sometime(do func()) {
	s.w.At(s.ms(1, int(s.law.trouble/time.Millisecond)), do)
}

// schedule draws what users do and what befalls the driver and the executors.
func (s *world) schedule() {
	for range s.law.jobs {
		most := int(s.law.trouble/time.Millisecond) / 2
		if s.law.long {
			most = 5000
		}
		s.w.At(s.ms(0, most), s.submit)
	}
	for range s.law.crashes {
		s.sometime(func() { s.crash("life: driver crash") })
	}
	if s.rng.IntN(3) == 0 && !s.law.long {
		s.sometime(s.shutDown)
	}
	if s.rng.IntN(2) == 0 {
		s.sometime(func() {
			s.fired("life: journal's disk full")
			s.full = s.w.Now() + s.ms(100, 4000)
		})
	}
	for range s.between(0, 6) {
		e := s.execs[s.rng.IntN(len(s.execs))]
		s.sometime(func() { s.befall(e) })
	}
	for range s.between(1, 4) {
		s.sometime(s.pruneSome)
	}
}

// shutDown has the driver end its jobs' processes and itself, and start again.
func (s *world) shutDown() {
	if s.up() && !s.over {
		s.step(daemon.LifeEvent{Closing: true})
		s.later(s.ms(100, 1500), func() { s.crash("life: driver started again") })
	}
}

// submit takes a job in, and may cancel it.
func (s *world) submit() {
	if !s.up() {
		s.w.At(s.w.Now()+100*time.Millisecond, s.submit)
		return
	}
	spec := &daemon.JobSpec{Kind: "job", Token: fmt.Sprint("token", s.number)}
	if s.rng.IntN(5) < 2 {
		spec.Pool = "p"
	}
	spec.Owner, spec.Priority = []string{"a", "b"}[s.rng.IntN(2)], int32(s.rng.IntN(5)/4)
	if s.rng.IntN(4) == 0 {
		spec.Timeout = s.ms(500, 20_000)
	}
	w := &work{need: s.between(1, 120), rotten: s.rng.IntN(2) == 0}
	if s.law.long || s.rng.IntN(3) == 0 {
		w.need = s.between(1000, 2500)
	}
	s.ask(daemon.LifeRequest{Submit: spec}, func(r *daemon.LifeReply) {
		if r.Code != codes.OK {
			s.fired("life: submission refused")
			return
		}
		w.adopt(s, r.Job)
		s.watch.submitted(r.Job)
		if s.rng.IntN(4) == 0 {
			s.sometime(func() { s.cancel(r.Job) })
		}
		for range s.between(0, 3) {
			s.sometime(func() { s.read(r.Job) })
			s.sometime(func() { s.resume(r.Job) })
		}
	})
}

// adopt gives a job what it has to do; its process may run already.
func (w *work) adopt(s *world, job string) {
	if old := s.jobs[job]; old != nil {
		w.proc = old.proc
		w.done = old.done
		if old.proc != nil {
			old.proc.work = w
		}
	}
	s.jobs[job] = w
}

// beyond has a job take more than it may, soon.
func (s *world) beyond(job string) {
	if s.calm || s.greed.IntN(8) > 0 {
		return
	}
	s.later(time.Duration(s.greed.IntN(30))*time.Millisecond, func() {
		s.fired("life: too much taken")
		s.step(daemon.LifeEvent{Beyond: &daemon.LifeBeyond{Job: job, Why: "it takes too much"}})
	})
}

func (s *world) cancel(job string) {
	if s.calm {
		return
	}
	s.fired("life: cancel")
	s.watch.of(job).cancelled = true
	for range 1 + s.rng.IntN(2) { // it takes long, and is asked for again
		s.ask(daemon.LifeRequest{Cancel: job}, func(r *daemon.LifeReply) {
			j, there := s.kept(job)
			if r.Code == codes.OK && there && j.State == "" && !s.watch.of(job).resumed { // which may come after it
				s.violate("life.cancelled", "the cancellation of %s is acknowledged, and not in the journal", job)
			}
		})
	}
}

func (s *world) resume(job string) {
	if s.calm || !s.up() {
		return
	}
	s.watch.of(job).resumed = true
	s.ask(daemon.LifeRequest{Resume: job}, func(r *daemon.LifeReply) {
		if r.Code == codes.OK {
			s.fired("life: resumed")
		}
	})
}

// read reads a job's files for a while.
func (s *world) read(job string) {
	s.ask(daemon.LifeRequest{Read: job}, func(r *daemon.LifeReply) {
		if r.Code != codes.OK {
			return
		}
		t := s.watch.of(job)
		t.readers++
		s.later(s.ms(10, 20_000), func() {
			t.readers--
			s.step(daemon.LifeEvent{Ask: &daemon.LifeRequest{Done: job}})
		})
	})
}

// pruneSome removes jobs at once.
func (s *world) pruneSome() {
	if s.calm || !s.up() {
		return
	}
	k := daemon.Keep{Count: s.between(0, 3), Age: -1, Bytes: -1}
	if s.rng.IntN(3) == 0 {
		k.Bytes = int64(s.between(0, 6000))
	}
	s.fired("life: prune")
	s.watch.pruning(k)
	s.ask(daemon.LifeRequest{Prune: &daemon.LifePrune{Keep: k}},
		func(*daemon.LifeReply) { s.watch.prunes = s.watch.prunes[1:] })
}

// befall draws a fault for an executor.
func (s *world) befall(e *exec) {
	if s.calm || !s.up() {
		return
	}
	switch s.rng.IntN(6) {
	case 0:
		s.fired("life: executor dies")
		e.part("its connection ended", s.rng.IntN(2) == 0)
		e.number++
		e.away = true
		s.w.At(s.w.Now()+s.ms(0, 5000), func() { e.away = false; e.join() })
	case 1:
		s.fired("life: executor registers again")
		e.link = 0 // the driver has not noticed
		e.join()
	case 2, 3:
		s.fired("life: unfit")
		e.unfit = "its data directory is gone"
		e.says(func(ev *daemon.MemberEvent) { ev.Unfit = &e.unfit })
		s.w.At(s.w.Now()+s.ms(10, 5000), e.recover)
	case 4:
		s.fired("life: drain")
		s.step(daemon.LifeEvent{Member: &daemon.MemberEvent{Executor: e.name, Drain: true}})
		s.later(s.ms(500, 20_000), func() { // it is let back in when it registers again
			e.part("it was stopped", true)
			e.number++
			s.later(s.ms(10, 1000), e.join)
		})
	default:
		s.fired("life: leaving")
		e.says(func(ev *daemon.MemberEvent) { ev.Leaving = true })
	}
}

func (e *exec) recover() {
	e.unfit = ""
	none := ""
	e.says(func(ev *daemon.MemberEvent) { ev.Unfit = &none })
}

// becomeCalm ends all faults, and what they have left.
func (s *world) becomeCalm() {
	s.calm = true
	s.tell("--- no more faults")
	for _, e := range s.execs {
		e.away = false
		if e.unfit != "" {
			e.recover()
		}
		if e.link != 0 { // one that is drained is let back in when it registers again
			e.part("it was stopped", true)
			e.number++
		}
		s.w.At(s.w.Now()+1500*time.Millisecond, e.join)
	}
	for _, j := range s.jobs {
		j.need = min(j.need, j.done+50)
	}
}
