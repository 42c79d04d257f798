package daemon

import (
	"cmp"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// writeKind is the purpose of an entry of the journal.
type writeKind uint8

const (
	submission writeKind = iota
	startOfProcess
	committedStep
	cancellation
	endOfJob
	resumption
	settlement // that a job is over which may be written down otherwise
	removal
)

// lifeEntry is an entry being written to the journal. Those of one job are written one
// after the other.
type lifeEntry struct {
	kind    writeKind
	id      uint64 // once it was handed over
	job     *lifeJob
	jobs    []*lifeJob // of a removal
	records []Record
	result  bool
	to      uint64 // request that waits for it
	wait    time.Duration
	again   time.Time // time of the next attempt; zero while one is under way
}

// record returns a record about a job, as of now.
func (l *Life) record(j *lifeJob, r Record) Record {
	r.Job, r.At = plan.JobID(j.id), l.now.UnixNano()
	return r
}

// write writes an entry of a job after those under way.
func (l *Life) write(w *lifeEntry) {
	w.job.queue = append(w.job.queue, w)
	if len(w.job.queue) == 1 {
		l.emit(w)
	}
}

// emit hands an entry to the journal.
func (l *Life) emit(w *lifeEntry) {
	if w.kind == endOfJob && w.job.kept != 0 {
		l.wrote(w, &LifeWritten{}) // the journal has had it before
		return
	}
	delete(l.writes, w.id)
	l.written++
	w.id, w.again = l.written, time.Time{}
	l.writes[w.id] = w
	l.do(LifeCommand{Write: &LifeWrite{ID: w.id, Job: w.name(), Records: w.records, Result: w.result}})
}

func (w *lifeEntry) name() string {
	if w.job == nil {
		return ""
	}
	return w.job.id
}

// writesDue returns the entries whose retry is due.
func (l *Life) writesDue() (out []*lifeEntry) {
	for _, w := range l.writes {
		if !w.again.IsZero() && !l.now.Before(w.again) {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *lifeEntry) int { return cmp.Compare(a.id, b.id) })
	return out
}

func (l *Life) onWritten(ev *LifeWritten) {
	w := l.writes[ev.ID]
	if w == nil || !w.again.IsZero() {
		return
	}
	l.wrote(w, ev)
}

// wrote takes the outcome of an entry.
func (l *Life) wrote(w *lifeEntry, ev *LifeWritten) {
	if l.retries(w, ev) {
		return
	}
	delete(l.writes, w.id)
	if w.job != nil {
		w.job.queue = w.job.queue[1:]
	}
	switch w.kind {
	case submission:
		l.submitted(w, ev)
	case startOfProcess:
		l.noted(w.job, ev)
	case committedStep:
		l.complain(ev, "cannot write a step down", w.job)
	case cancellation:
		l.complain(ev, "cannot write a cancellation down", w.job)
		l.cancelNoted(w, ev)
	case endOfJob:
		if plantedWritten(ev.Outcome == Applied) {
			l.over(w.job, w.records[len(w.records)-1])
		}
	case resumption:
		l.resumed(w, ev)
	case removal:
		l.removed(w, ev)
	}
	if w.job != nil && len(w.job.queue) > 0 && w.job.queue[0].id == 0 {
		l.emit(w.job.queue[0])
	}
}

// retries retries an entry on which everything else depends: a job's end is announced once
// it is in the journal. It reports whether it does.
func (l *Life) retries(w *lifeEntry, ev *LifeWritten) bool {
	if plantedWritten(ev.Outcome == Applied) || w.kind != endOfJob && w.kind != settlement || l.closing {
		return false
	}
	w.wait = min(max(2*w.wait, startWait), startWaitMost)
	w.again = l.now.Add(w.wait)
	l.log(LogError, "cannot write a job's end down; it is tried again", "job", w.job.id, "error", ev.Why, "after",
		w.wait)
	if w.kind == endOfJob {
		w.job.why = notWritten + ev.Why
	}
	return true
}

// notWritten begins the reason why a job has not ended although its process has.
const notWritten = "its end cannot be written to the journal: "

func (l *Life) complain(ev *LifeWritten, what string, j *lifeJob) {
	if ev.Outcome != Applied {
		l.log(LogError, what, "job", j.id, "error", ev.Why)
	}
}
