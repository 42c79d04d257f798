package life

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/plan"
)

// truth is what is true of a job, whatever the driver says.
type truth struct {
	id        string
	known     bool // by the present driver
	shown     daemon.JobShown
	announced string // the end that was told of; empty while none was
	over      int64  // when that was
	cancelled bool   // requested
	resumed   bool   // requested since its end
	readers   int    // of its files

	term     uint32 // of the last process
	procs    []*proc
	told     *uint32 // what the present process has said of its end
	wordless uint32  // processes that have ended without a word, or could not run
	never    bool    // it can never be started
	hopeless bool    // its runners have ended everywhere
	down     bool    // its process was killed since the driver goes down
	greedy   bool    // it was said to take too much, since it was started by the present driver

	began     time.Time // the last process, when it was to be written down
	first     time.Time // the first one, since it was submitted or resumed
	occupies  bool      // it was started by the present driver, and has not ended
	begun     bool      // it was started by an earlier one
	wait      time.Duration
	notBefore time.Time
	acked     plan.StepID // the last step that is durable for sure
	last      plan.StepID // the last step that the driver has heard of
	unkept    bool        // it could not be written down
}

// watch are the oracles of a driver's life.
type watch struct {
	s        *world
	jobs     map[string]*truth
	writes   map[uint64][]daemon.Record
	places   *places
	admitted bool
	closing  bool
	prunes   []daemon.Keep    // that were asked for and are not answered
	over     *daemon.LifeOver // which is to be shown next
}

func newLifeWatch(s *world) *watch {
	return &watch{s: s, jobs: map[string]*truth{}, places: newLifePlaces(s)}
}

// of returns what is true of a job.
func (w *watch) of(job string) *truth {
	t := w.jobs[job]
	if t == nil {
		t = &truth{id: job, wait: pause}
		w.jobs[job] = t
	}
	return t
}

// all returns the jobs by name.
func (w *watch) all() (out []*truth) {
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		out = append(out, w.jobs[id])
	}
	return out
}

func (w *watch) submitted(job string) { w.of(job).known = true }

func (w *watch) pruning(k daemon.Keep) { w.prunes = append(w.prunes, k) }

// restarted takes in that the driver starts again: it knows what is durable.
func (w *watch) restarted() {
	w.writes, w.prunes, w.closing = map[uint64][]daemon.Record{}, nil, false
	w.places = newLifePlaces(w.s)
	for _, t := range w.jobs {
		j, ok := w.s.kept(t.id)
		t.known, t.wordless, t.shown = ok, j.Restarts, daemon.JobShown{}
		t.wait, t.notBefore, t.told, t.never, t.hopeless, t.down, t.last, t.unkept = pause, time.Time{}, nil, false,
			false, false, 0, false
		t.occupies, t.begun, t.greedy = false, ok && j.Term > 0, false
		t.first = time.Time{}
		if ok && j.Started != 0 {
			t.first = time.Unix(0, j.Started)
		}
		if t.readers = 0; ok && j.State != "" { // it may not have been told of
			t.announced, t.over = j.State, j.EndedAt
		}
	}
}

// before sees what the driver is about to hear.
func (w *watch) before(ev daemon.LifeEvent) {
	w.closing = w.closing || ev.Closing
	switch {
	case ev.Written != nil:
		w.written(ev.Written)
	case ev.Process != nil:
		w.process(ev.Process)
	case ev.Beyond != nil:
		w.beyond(w.of(ev.Beyond.Job))
	case ev.Link != nil && ev.Link.Commit != nil:
		if t := w.of(ev.Link.Job); t.announced == "" {
			t.last, t.unkept = ev.Link.Commit.Step, false
		}
	}
	w.places.before(ev)
}

// written takes in what has become of an entry.
func (w *watch) written(ev *daemon.LifeWritten) {
	for _, r := range w.writes[ev.ID] {
		t := w.of(string(r.Job))
		switch {
		case r.Kind == daemon.StepCommitted && ev.Outcome == daemon.Applied:
			t.acked = max(t.acked, r.Step)
		case r.Kind == daemon.StepCommitted:
			t.unkept = true
		case r.Kind == daemon.JobStarted && ev.Outcome != daemon.Applied:
			t.pause(w.s.now())
		}
	}
}

// process takes in what a process has come to.
func (w *watch) process(ev *daemon.ProcessEvent) {
	t := w.of(ev.Job)
	if p := t.present(); p != nil && ev.Exited != nil && p.term == ev.Term {
		p.gone = true
	}
	switch {
	case ev.Said != nil:
		if p := t.present(); p != nil && !p.gone && p.incarnation == ev.Said.Incarnation && p.run == w.s.run {
			t.told = &ev.Said.Code
		}
	case ev.Failed != nil && ev.Failed.Never:
		t.never = true
	case ev.Failed != nil && ev.Failed.Passes, ev.Exited != nil && ev.Exited.Lost && t.told == nil:
		t.pause(w.s.now())
	case ev.Failed != nil, ev.Exited != nil && t.told == nil:
		t.wordless++
	}
}

// pause and pauseMost are how long a process is waited with that is not to blame for
// its end: twice as long each time, unless it was well for a while.
const (
	pause     = 100 * time.Millisecond
	pauseMost = 10 * time.Second
)

func (t *truth) pause(now time.Time) {
	if now.Sub(t.began) > pauseMost {
		t.wait = pause
	}
	t.notBefore = now.Add(t.wait)
	t.wait = min(2*t.wait, pauseMost)
}

// present returns the job's last process.
func (t *truth) present() *proc {
	if len(t.procs) == 0 {
		return nil
	}
	return t.procs[len(t.procs)-1]
}

// after sees what the driver decides.
func (w *watch) after(ev daemon.LifeEvent, cmds []daemon.LifeCommand) {
	for _, c := range cmds {
		switch {
		case c.Write != nil:
			w.writing(c.Write)
		case c.Start != nil:
			w.starting(c.Start)
		case c.Shown != nil:
			w.shown(c.Shown)
			if w.over != nil && w.over.Job == c.Shown.Job {
				w.ended(w.over)
				w.over = nil
			}
		case c.Over != nil:
			w.over = c.Over
		case c.Renew != "":
			w.renewed(c.Renew)
		case c.Remove != nil:
			w.removed(c.Remove)
		case c.Forget != nil:
			for _, id := range c.Forget {
				w.of(id).known = false
			}
		case c.Admit != nil:
			w.admitted = true
		case c.Interrupt != nil:
			w.mustDie(c.Interrupt)
		}
	}
	if ev.Process != nil && ev.Process.Started {
		w.begun(ev.Process, cmds)
	}
	w.places.after(ev, cmds)
}

// writing looks at what is to be written down.
func (w *watch) writing(c *daemon.LifeWrite) {
	w.writes[c.ID] = c.Records
	for _, r := range c.Records {
		t := w.of(string(r.Job))
		switch r.Kind {
		case daemon.JobStarted:
			if t.began = time.Unix(0, r.At); t.began.Before(t.notBefore) {
				w.s.violate("life.pause", "%s is started again %v early", t.id, t.notBefore.Sub(t.began))
			}
			w.admits(t)
		case daemon.JobSubmitted:
			if !w.s.dirs[t.id] {
				w.s.violate("life.kept", "%s has a directory that is another's", t.id)
			}
			w.s.dirs[t.id] = false
		case daemon.JobRemoved:
			w.within(t)
		}
	}
}

// starting looks at a process that is to be started.
func (w *watch) starting(c *daemon.LifeStart) {
	t, s := w.of(c.Job), w.s
	j, _ := s.kept(c.Job)
	if c.Term <= t.term {
		s.violate("life.term", "%s has term %d after %d", c.Job, c.Term, t.term)
	}
	if j.Term < c.Term {
		s.violate("life.term", "term %d of %s is not written down", c.Term, c.Job)
	}
	for _, p := range t.procs {
		if p.alive && (p.run == s.run || p.term == c.Term) {
			s.violate("life.once", "term %d of %s is started while term %d lives", c.Term, c.Job, p.term)
		}
	}
	if t.announced != "" && !t.resumed {
		s.violate("life.end", "%s runs again, which was %s", c.Job, t.announced)
	}
	if t.told != nil {
		s.violate("life.end", "%s runs again, whose process has said how it ends", c.Job)
	}
	if t.wordless > s.cfg.Restarts {
		s.violate("life.restarts", "%s is started again after %d ends without a word", c.Job, t.wordless)
	}
	w.turn(t, j)
	t.term, t.told, t.announced, t.resumed = max(t.term, c.Term), nil, "", t.resumed && t.announced == ""
	s.later(0, func() { t.procs = append(t.procs[max(0, len(t.procs)-3):], s.jobs[c.Job].proc) })
}

// turn looks whether it is a job's turn in its pool.
func (w *watch) turn(t *truth, j daemon.JobState) {
	if j.Spec.Pool == "" {
		return
	}
	for _, o := range w.all() {
		k, ok := w.s.kept(o.id)
		before := max(k.Submitted, k.Resumed) < max(j.Submitted, j.Resumed)
		if o != t && ok && o.known && o.announced == "" && k.Spec.Pool == j.Spec.Pool && k.State == "" && before {
			w.s.violate("life.pool", "%s is started before %s has ended", t.id, o.id)
		}
	}
}

// shown looks at how a job appears.
func (w *watch) shown(c *daemon.JobShown) {
	t := w.of(c.Job)
	t.known, t.shown = true, *c
	if plan.StepID(c.Step) < t.acked {
		w.s.violate("life.committed", "%s is at step %d, and %d was written down", c.Job, c.Step, t.acked)
	}
	if t.announced != "" && !t.resumed && c.State != t.announced {
		w.s.violate("life.end", "%s is %s after it was %s", c.Job, c.State, t.announced)
	}
}

// ended looks at the end of a job that is told of.
func (w *watch) ended(c *daemon.LifeOver) {
	t, s := w.of(c.Job), w.s
	j, _ := s.kept(c.Job)
	state := t.shown.State
	if j.State != state {
		s.violate("life.end", "%s is said to be %s; the journal has %q", c.Job, state, j.State)
	}
	if why := t.unlike(state, s.cfg.Restarts); why != "" {
		s.violate("life.end", "%s is %s: %s", c.Job, state, why)
	}
	late := j.Spec.Timeout > 0 && !t.first.IsZero() && !s.now().Before(t.first.Add(j.Spec.Timeout))
	blamed := t.never || t.hopeless || t.greedy || late
	if state == daemon.JobFailed && t.told == nil && !blamed && t.wordless <= s.cfg.Restarts {
		s.violate("life.restarts", "%s has failed after %d ends without a word", c.Job, t.wordless)
	}
	if p := t.present(); p != nil && p.alive && p.run == s.run {
		s.violate("life.once", "%s is over while its process lives", c.Job)
	}
	if state != daemon.JobCancelled && !t.unkept && j.Step < t.last {
		s.violate("life.committed", "%s has ended at step %d, and the journal is at %d", c.Job, t.last, j.Step)
	}
	t.announced, t.over, t.resumed = state, t.shown.Ended, false
	t.occupies = false
}

// unlike returns what is wrong with a state that a job is said to have ended in.
func (t *truth) unlike(state string, restarts uint32) string {
	said := "nothing"
	if t.told != nil {
		said = fmt.Sprint("code ", *t.told)
	}
	switch {
	case state == daemon.JobDone && (t.told == nil || *t.told != 0):
		return "its process has said " + said
	case state == daemon.JobFailed && t.told != nil && *t.told == 0 && !t.hopeless && !t.greedy:
		return "its process has said " + said
	case state == daemon.JobCancelled && !t.cancelled:
		return "it was not cancelled"
	}
	return ""
}

// renewed looks at a job that goes on.
func (w *watch) renewed(job string) {
	t := w.of(job)
	if t.announced == daemon.JobDone || !t.resumed {
		w.s.violate("life.end", "%s goes on, which was %s", job, t.announced)
	}
	t.announced, t.resumed, t.cancelled, t.told, t.never, t.hopeless = "", false, false, nil, false, false
	t.wordless, t.wait, t.notBefore, t.last = 0, pause, time.Time{}, 0
	t.first, t.occupies, t.begun, t.greedy = time.Time{}, false, false, false
}

// mustDie looks that a cancelled process does not live on.
func (w *watch) mustDie(c *daemon.LifeProcess) {
	p, s := w.of(c.Job).present(), w.s
	s.later(5*time.Second, func() {
		if p != nil && p.term == c.Term && p.alive {
			s.violate("life.cancel", "term %d of %s lives 5 s after it was cancelled", c.Term, c.Job)
		}
	})
}

// removed looks at jobs whose directories are removed.
func (w *watch) removed(ids []string) {
	for _, id := range ids {
		t := w.of(id)
		if _, ok := w.s.kept(id); ok {
			w.s.violate("life.kept", "the journal has %s, whose directory is removed", id)
		}
		switch {
		case t.announced == "":
			w.s.violate("life.kept", "%s is removed, which has not ended", id)
		case t.readers > 0:
			w.s.violate("life.kept", "%s is removed while it is read", id)
		}
	}
}

// within looks that a job that is removed is beyond what is kept.
func (w *watch) within(t *truth) {
	if len(w.prunes) == 0 && w.s.now().Sub(time.Unix(0, t.over)) < 10*time.Minute {
		w.s.violate("life.kept", "%s is removed, which has just ended", t.id)
	}
	keeps := append(slices.Clone(w.prunes), w.s.cfg.Keep)
	later := 0
	for _, o := range w.jobs {
		if o.known && o.announced != "" && (o.over > t.over || o.over == t.over && o.id > t.id) {
			later++
		}
	}
	beyond := slices.ContainsFunc(keeps, func(k daemon.Keep) bool {
		return later >= k.Count || k.Bytes >= 0 &&
			later > 0
	})
	if !beyond {
		w.s.violate("life.kept", "%s is removed, after which only %d have ended", t.id, later)
	}
}

// allEnded looks that every job has ended, some time after the last fault.
func (w *watch) allEnded() {
	for _, t := range w.all() {
		if t.known && t.announced == "" && !daemon.Over(t.shown.State) {
			w.s.violate("life.bounded", "%s is still %s: %s", t.id, t.shown.State, t.shown.Why)
		}
	}
}
