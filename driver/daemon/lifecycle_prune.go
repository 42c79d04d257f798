package daemon

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/volley-engine/volley/internal/plan"
)

const (
	// pruneGrace is how long a job stays after its end under any retention: the client that
	// submitted it downloads its output.
	pruneGrace = 10 * time.Minute
	// pruneEvery is how often a driver looks for jobs beyond its retention.
	pruneEvery = time.Minute
	// pruneAtOnce is how many jobs are removed by one entry of the journal.
	pruneAtOnce = 100
)

// LifePrune requests the removal of ended jobs beyond the retention.
type LifePrune struct {
	Keep  Keep
	Grace time.Duration // time after a job's end for which it stays
}

// pruning is a removal of jobs; one is under way at a time.
type pruning struct {
	to    uint64
	keep  Keep
	grace time.Duration
	only  string   // this job, whatever is kept
	due   []string // to remove
	gone  []string
	bytes int64
}

// end returns the record of a job's end.
func (j *lifeJob) end() Record {
	return Record{Kind: JobEnded, Job: plan.JobID(j.id), State: j.state, Reason: j.why, At: j.ended}
}

// pruneNow removes jobs once earlier removals are over.
func (l *Life) pruneNow(p *pruning) {
	if l.prunes = append(l.prunes, p); len(l.prunes) == 1 {
		l.beginPruning()
	}
}

// beginPruning requests the sizes of the directories where these count.
func (l *Life) beginPruning() {
	var unknown []string
	for id, j := range l.jobs {
		if j.phase == lifeOver && !j.sized {
			unknown = append(unknown, id)
		}
	}
	if l.prunes[0].only != "" {
		l.prunes[0].due = []string{l.prunes[0].only}
		l.forgetSome()
		return
	}
	if l.prunes[0].keep.Bytes >= 0 && len(unknown) > 0 {
		slices.Sort(unknown)
		l.do(LifeCommand{Measure: unknown})
		return
	}
	l.choose()
}

func (l *Life) onMeasured(sizes map[string]int64) {
	for id, n := range sizes {
		if j := l.jobs[id]; j != nil && j.phase == lifeOver {
			j.bytes, j.sized = n, true
		}
	}
	if len(l.prunes) > 0 && l.prunes[0].only == "" {
		l.choose()
	}
}

// choose selects the jobs to remove.
func (l *Life) choose() {
	p := l.prunes[0]
	var jobs []finishedJob
	for id, j := range l.jobs {
		if j.phase == lifeOver {
			jobs = append(jobs, finishedJob{id: id, number: j.number, ended: time.Unix(0, j.ended), bytes: j.bytes,
				held: j.held()})
		}
	}
	p.due = p.keep.beyond(jobs, l.now, plantedGrace(p.grace))
	l.forgetSome()
}

// forgetSome journals the removal of some jobs, before their files are removed: the files of a
// job in the journal are complete. Jobs that are being read or resumed stay.
func (l *Life) forgetSome() {
	p := l.prunes[0]
	w := &lifeEntry{kind: removal}
	for len(p.due) > 0 && len(w.jobs) < pruneAtOnce {
		j := l.jobs[p.due[0]]
		p.due = p.due[1:]
		if j != nil && j.mayLeave() {
			j.leaving = true
			w.jobs = append(w.jobs, j)
			// Its end comes first: a job that has not ended in the journal stays.
			w.records = append(w.records, j.end(), l.record(j, Record{Kind: JobRemoved}))
		}
	}
	if len(w.jobs) == 0 {
		l.pruned("")
		return
	}
	l.emit(w)
	plantedRemove(l, w)
}

// mayLeave reports whether the job can be removed: not while its files are read, when it is
// resumed, or before its runners have ended, with its process's connection.
func (j *lifeJob) mayLeave() bool {
	return !j.held() && j.resuming == 0 && !j.leaving && len(j.queue) == 0 && j.phase == lifeOver && j.link == 0
}

// held reports whether the job's files are being read.
func (j *lifeJob) held() bool { return plantedHeld(j.readers > 0) }

func idsOf(jobs []*lifeJob) (ids []string) {
	for _, j := range jobs {
		ids = append(ids, j.id)
	}
	return ids
}

// removed continues once the journal has the removal of jobs. Where it may have it later,
// they can no longer be read: the next start decides.
func (l *Life) removed(w *lifeEntry, ev *LifeWritten) {
	if ev.Outcome != Applied {
		for _, j := range w.jobs {
			j.leaving = ev.Outcome == Unknown
		}
		l.pruned(ev.Why)
		return
	}
	ids := idsOf(w.jobs)
	for _, id := range ids {
		delete(l.jobs, id)
	}
	l.do(LifeCommand{Remove: ids})
	l.do(LifeCommand{Forget: ids})
}

func (l *Life) onGone(g *LifeGone) {
	if len(l.prunes) == 0 {
		return
	}
	p := l.prunes[0]
	p.gone, p.bytes = append(p.gone, g.Jobs...), p.bytes+g.Bytes
	l.forgetSome()
}

// pruned ends a removal, and begins the next.
func (l *Life) pruned(why string) {
	p := l.prunes[0]
	l.prunes = l.prunes[1:]
	if len(p.gone) > 0 {
		l.log(LogInfo, "finished jobs removed", "jobs", len(p.gone), "first", p.gone[0], "bytes", p.bytes)
	}
	r := &LifeReply{To: p.to, Jobs: p.gone, Bytes: p.bytes}
	if why != "" {
		r.Code, r.Why = codes.ResourceExhausted, why
		l.log(LogError, "cannot remove finished jobs", "error", why)
	}
	if l.reply(r); len(l.prunes) > 0 {
		l.beginPruning()
	}
}

// onRead prevents the removal of a job until the reader is done.
func (l *Life) onRead(a *LifeRequest) {
	j := l.jobs[a.Read]
	switch {
	case j == nil:
		l.notThere(a.From, a.Read)
	case j.leaving:
		l.refuse(a.From, codes.NotFound, notKeptWhy(j.id))
	default:
		j.readers++
		l.reply(&LifeReply{To: a.From, Job: j.id})
	}
}

// notKeptWhy returns the error text for a removed job.
func notKeptWhy(id string) string {
	return "job " + id + " is no longer kept: see --keep of volley driver"
}
