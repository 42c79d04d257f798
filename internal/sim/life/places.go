package life

import (
	"time"

	"github.com/volley-engine/volley/driver/daemon"
)

// places are the oracles of runners: where they are asked for, and where none is left.
type places struct {
	s     *world
	slots map[[2]string]*place // by job and executor
	execs map[string]*seen
	links map[string]uint64 // of jobs' processes
	procs map[string]*proc  // whose those are
}

// place is a runner of a job on an executor.
type place struct {
	current uint64 // that was asked for and has not ended; 0 is none
	opened  int    // in a row
	at      time.Time
	alone   time.Time // until when the executor is not to be asked
}

// seen is an executor as the driver has heard of it.
type seen struct {
	link     uint64
	unfit    bool
	draining bool
	drained  bool
}

// So often in a row an executor is asked, and so long it is left alone then.
const (
	runners = 5
	alone   = 30 * time.Second
)

func newLifePlaces(s *world) *places {
	return &places{s: s, slots: map[[2]string]*place{}, execs: map[string]*seen{}, links: map[string]uint64{},
		procs: map[string]*proc{}}
}

func (w *places) slot(job, exec string) *place {
	k := [2]string{job, exec}
	if w.slots[k] == nil {
		w.slots[k] = &place{}
	}
	return w.slots[k]
}

// forget forgets what there was of a job, or on an executor.
func (w *places) forget(job, exec string) {
	for k := range w.slots {
		if k[0] == job || k[1] == exec {
			delete(w.slots, k)
		}
	}
}

// before sees what the driver is about to hear.
func (w *places) before(ev daemon.LifeEvent) {
	if l := ev.Link; l != nil && l.HungUp && w.links[l.Job] == l.Link {
		delete(w.links, l.Job)
		w.forget(l.Job, "")
	}
	m := ev.Member
	if m == nil {
		return
	}
	e := w.execs[m.Executor]
	if e == nil || !m.Drain && e.link != m.Link {
		return
	}
	switch {
	case m.Left:
		delete(w.execs, m.Executor)
		w.forget("", m.Executor)
	case m.Unfit != nil && e.unfit != (*m.Unfit != ""):
		e.unfit = !e.unfit
		w.forget("", m.Executor) // which is not the jobs' fault
	case m.Drain:
		e.draining = true
	}
}

// after sees what it decides.
func (w *places) after(ev daemon.LifeEvent, cmds []daemon.LifeCommand) {
	late := w.runnerEnded(ev, cmds)
	for _, c := range cmds {
		switch {
		case c.Admit != nil:
			w.execs[c.Admit.Executor] = &seen{link: c.Admit.Link}
			w.forget("", c.Admit.Executor)
		case c.Tell != nil && c.Tell.Welcome:
			w.links[c.Tell.Job], w.procs[c.Tell.Job] = c.Tell.Link, w.s.watch.of(c.Tell.Job).present()
			w.forget(c.Tell.Job, "")
		case c.Tell != nil && c.Tell.Left != "" && late == [2]string{c.Tell.Job, c.Tell.Left}:
			w.s.violate("life.runner", "%s hears that %s has left, where its runner lives", c.Tell.Job, c.Tell.Left)
		case c.Tell != nil && c.Tell.Drain != "":
			w.execs[c.Tell.Drain].draining = true // or it leaves
		case c.Open != nil:
			w.opened(c.Open, late)
		case c.Close != nil:
			delete(w.slots, [2]string{c.Close.Job, c.Close.Executor})
		case c.Executor != nil:
			w.shown(c.Executor)
		}
	}
	w.mustBeDrained()
}

// runnerEnded takes in the end of a runner. It returns the place that it was of where another
// has taken its place since.
func (w *places) runnerEnded(ev daemon.LifeEvent, cmds []daemon.LifeCommand) (late [2]string) {
	if ev.Member == nil || ev.Member.Ended == nil {
		return late
	}
	r, e := ev.Member.Ended, w.execs[ev.Member.Executor]
	p := w.slot(r.Job, r.Executor)
	if e == nil || e.link != ev.Member.Link || p.current != r.ID {
		return [2]string{r.Job, r.Executor}
	}
	p.current = 0
	if e.draining || e.unfit || w.links[r.Job] == 0 || w.dying(r.Job) {
		delete(w.slots, [2]string{r.Job, r.Executor})
		return late
	}
	if w.s.now().Sub(p.at) > alone {
		p.opened = 1
	}
	if p.opened >= runners {
		w.leftAlone(r, p, cmds)
	}
	return late
}

// dying reports whether a job's process wants no more runners, or has not connected yet.
func (w *places) dying(job string) bool {
	t := w.s.watch.of(job)
	p := t.present()
	return p == nil || p.gone || t.told != nil || w.procs[job] != p
}

// leftAlone looks that an executor is asked again after a while, and that the job fails where
// there is no other.
func (w *places) leftAlone(r *daemon.LifeRunner, p *place, cmds []daemon.LifeCommand) {
	s := w.s
	s.fired("life: left alone")
	p.alone = s.now().Add(alone)
	if w.hopeless(r.Job) {
		s.fired("life: hopeless")
		s.watch.of(r.Job).hopeless = true
		killed := false
		for _, c := range cmds {
			killed = killed || c.Kill != nil && c.Kill.Job == r.Job
		}
		if !killed {
			s.violate("life.hopeless", "%s goes on, whose runners have ended everywhere", r.Job)
		}
		return
	}
	until, link, on := p.alone, w.links[r.Job], w.execs[r.Executor]
	s.later(alone+time.Second, func() {
		if w.slots[[2]string{r.Job, r.Executor}] == p && p.alone.Equal(until) && p.opened >= runners &&
			p.current == 0 &&
			w.links[r.Job] == link && w.execs[r.Executor] == on && !on.draining && !on.unfit && !w.dying(r.Job) {
			s.violate("life.excluded", "%s is not asked for a runner of %s again", r.Executor, r.Job)
		}
	})
}

// hopeless reports whether a job's runners have ended too often on every executor.
func (w *places) hopeless(job string) bool {
	some := false
	for name, e := range w.execs {
		if e.draining {
			continue
		}
		if some = true; !w.slot(job, name).alone.After(w.s.now()) {
			return false
		}
	}
	return some
}

// opened looks at a runner that is asked for.
func (w *places) opened(c *daemon.LifeRunner, late [2]string) {
	e, p := w.execs[c.Executor], w.slot(c.Job, c.Executor)
	switch {
	case e == nil:
		w.s.violate("life.runner", "%s is asked for a runner, which is not connected", c.Executor)
		return
	case late == [2]string{c.Job, c.Executor}:
		w.s.violate("life.runner", "%s is asked for a runner of %s since an earlier one has ended", c.Executor, c.Job)
	case e.unfit:
		w.s.violate("life.unfit", "%s is asked for a runner of %s", c.Executor, c.Job)
	case e.draining:
		w.s.violate("life.drained", "%s drains, and is asked for a runner of %s", c.Executor, c.Job)
	case w.s.now().Before(p.alone):
		w.s.violate("life.excluded", "%s is asked for a runner of %s %v early", c.Executor, c.Job,
			p.alone.Sub(w.s.now()))
	}
	if !p.alone.IsZero() {
		*p = place{} // it begins anew
	}
	p.current, p.at, p.opened = c.ID, w.s.now(), p.opened+1
}

// shown looks at an executor that is said to be drained.
func (w *places) shown(c *daemon.ExecutorShown) {
	e := w.execs[c.Executor]
	if e.drained = c.Drained; !c.Drained {
		return
	}
	if job := w.busy(c.Executor); job != "" {
		w.s.violate("life.drained", "%s is said to be drained, and has a runner of %s", c.Executor, job)
	}
}

// busy returns a job that has a runner on an executor.
func (w *places) busy(exec string) string {
	for k, p := range w.slots {
		if k[1] == exec && p.current != 0 && w.links[k[0]] != 0 && w.s.watch.of(k[0]).announced == "" {
			return k[0]
		}
	}
	return ""
}

// mustBeDrained looks that a draining executor without runners is said to be drained.
func (w *places) mustBeDrained() {
	for name, e := range w.execs {
		if e.draining && !e.drained && w.busy(name) == "" {
			w.s.violate("life.drained", "%s has no runner left, and is not said to be drained", name)
		}
	}
}
