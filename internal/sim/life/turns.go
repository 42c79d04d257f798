package life

import (
	"slices"
	"strings"
	"time"

	"github.com/volley-engine/volley/driver/daemon"
)

// admits looks whether it is a job's turn to be started, if it is not started again.
func (w *watch) admits(t *truth) {
	if t.first.IsZero() {
		t.first = t.began
	}
	if t.occupies {
		return
	}
	t.occupies = true
	running := 0
	for _, o := range w.all() {
		if o.occupies {
			running++
		}
		if o != t && o.waitsForTurn() && w.goesBefore(o, t) {
			w.s.violate("life.turn", "%s is started before %s", t.id, o.id)
		}
	}
	if most := w.s.cfg.MaxJobs; most > 0 && running > most {
		w.s.violate("life.turn", "%d jobs run with %s, at most %d", running, t.id, most)
	}
	if j, ok := w.s.kept(t.id); ok && j.Spec.Timeout > 0 {
		w.ends(t, t.first, j.Spec.Timeout)
	}
}

// waitsForTurn reports whether the driver says that a job waits because others run.
func (t *truth) waitsForTurn() bool {
	return t.known && !t.occupies && !t.cancelled && t.announced == "" &&
		strings.HasPrefix(t.shown.Why, "it waits for its turn")
}

// goesBefore reports whether a job's turn is before another's that is about to be started.
func (w *watch) goesBefore(t, o *truth) bool {
	a, _ := w.s.kept(t.id)
	b, _ := w.s.kept(o.id)
	running := map[string]int{}
	for _, r := range w.all() {
		if k, ok := w.s.kept(r.id); ok && r.occupies && r != o {
			running[k.Spec.Owner]++
		}
	}
	switch {
	case t.begun != o.begun:
		return t.begun
	case a.Spec.Priority != b.Spec.Priority:
		return a.Spec.Priority > b.Spec.Priority
	}
	return running[a.Spec.Owner] < running[b.Spec.Owner]
}

// ends looks that a job does not run for longer than it may.
func (w *watch) ends(t *truth, first time.Time, timeout time.Duration) {
	s := w.s
	s.later(first.Add(timeout).Sub(s.now())+10*time.Second, func() {
		p := t.present()
		if s.up() && p != nil && p.alive && p.run == s.run && t.first.Equal(first) && t.announced == "" &&
			s.now().Sub(t.began) > 5*time.Second {
			s.violate("life.timeout", "%s runs 10 s longer than the %v that it may", t.id, timeout)
		}
	})
}

// beyond takes in that a job takes too much.
func (w *watch) beyond(t *truth) {
	p := t.present()
	t.greedy = t.greedy || t.announced == "" && p != nil && p.run == w.s.run
}

// begun looks that the process of a job which takes too much is killed as soon as it runs, whatever the job was about
// to do when that was found.
func (w *watch) begun(ev *daemon.ProcessEvent, cmds []daemon.LifeCommand) {
	t := w.of(ev.Job)
	kills := func(c daemon.LifeCommand) bool { return c.Kill != nil && c.Kill.Job == ev.Job }
	if p := t.present(); t.greedy && !t.cancelled && p.term == ev.Term && p.alive &&
		!slices.ContainsFunc(cmds, kills) {
		w.s.violate("life.beyond", "term %d of %s goes on, which takes too much", ev.Term, ev.Job)
	}
}
