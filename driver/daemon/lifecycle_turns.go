package daemon

import (
	"cmp"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
)

// nextTurns starts the queued jobs whose turn it is: of a pool one after the other, and no more at a time than the
// driver may have. The others say what they wait for.
func (l *Life) nextTurns() {
	for !l.closing {
		j, full := l.next()
		if j == nil {
			break
		}
		if plantedFull(full) {
			break
		}
		j.why = ""
		l.start(j)
	}
	first := l.firstOfPools()
	for _, j := range l.live {
		if j.phase == lifeQueued && !j.cancelled {
			j.why = l.waitsFor(j, first)
		}
	}
}

// waitsFor returns why a queued job has not been started.
func (l *Life) waitsFor(j *lifeJob, first map[string]*lifeJob) string {
	if o := first[j.spec.Pool]; o != nil && o != j {
		return "it waits for " + o.id + ", which is before it in pool " + j.spec.Pool
	}
	return fmt.Sprintf("it waits for its turn: no more than %d run at a time (--max-jobs of the driver)", l.cfg.MaxJobs)
}

// next returns the queued job whose turn is first, nil where there is none, and reports whether as many run as may.
// Jobs that an earlier driver had started go before others; then those of higher priority; then those of the user who
// has the fewest running; then the first to be submitted.
func (l *Life) next() (first *lifeJob, full bool) {
	pools, running, of := l.firstOfPools(), 0, map[string]int{}
	for _, j := range l.live {
		if j.occupies() {
			running++
			of[j.spec.Owner]++
		}
	}
	for _, j := range l.live {
		waits := j.spec.Pool != "" && pools[j.spec.Pool] != j
		if j.phase != lifeQueued || j.cancelled || plantedWaits(waits) {
			continue
		}
		if first == nil || j.goesBefore(first, of) {
			first = j
		}
	}
	return first, l.cfg.MaxJobs > 0 && running >= l.cfg.MaxJobs
}

// occupies reports whether the job has a process, or is about to have one.
func (j *lifeJob) occupies() bool {
	switch j.phase {
	case lifeNoting, lifeStarting, lifeRunning, lifePausing, lifeEnding:
		return true
	}
	return false
}

// goesBefore reports whether the job's turn is before another's; running are the jobs of each user that run.
func (j *lifeJob) goesBefore(o *lifeJob, running map[string]int) bool {
	if j.begun != o.begun {
		return j.begun
	}
	c := cmp.Or(cmp.Compare(o.spec.Priority, j.spec.Priority),
		plantedFair(cmp.Compare(running[j.spec.Owner], running[o.spec.Owner])))
	return c < 0 || c == 0 && j.queuedBefore(o)
}

func (j *lifeJob) queuedBefore(o *lifeJob) bool {
	return j.queued < o.queued || j.queued == o.queued && j.number < o.number
}

// firstOfPools returns of each pool the job that has not ended and came first.
func (l *Life) firstOfPools() map[string]*lifeJob {
	first := map[string]*lifeJob{}
	for _, j := range l.live {
		if p := j.spec.Pool; p != "" && (first[p] == nil || j.queuedBefore(first[p])) {
			first[p] = j
		}
	}
	return first
}

// deadline returns when the job has run for as long as it may; zero is never.
func (j *lifeJob) deadline() time.Time {
	if j.spec.Timeout <= 0 || j.first.IsZero() || j.late || j.cancelled ||
		j.phase == lifeEnding || !j.occupies() && j.phase != lifeQueued {
		return time.Time{}
	}
	return plantedDeadline(j.first.Add(j.spec.Timeout))
}

// overdue fails a job that has run for as long as it may: its process is killed.
func (l *Life) overdue(j *lifeJob) {
	at := j.deadline()
	if at.IsZero() || l.now.Before(at) {
		return
	}
	j.late = true
	why := fmt.Sprintf("it has not ended within its --timeout of %v; volley job resume goes on from its last "+
		"checkpoint",
		j.spec.Timeout)
	l.fail(j, why)
}

// onBeyond fails a job that takes more than it may.
func (l *Life) onBeyond(ev *LifeBeyond) {
	j := l.jobs[ev.Job]
	if j == nil || j.failure != "" || j.cancelled || j.phase == lifeEnding || !j.occupies() && j.phase != lifeQueued {
		return
	}
	l.fail(j, ev.Why)
}

// fail ends a job that may not go on, its process by force.
func (l *Life) fail(j *lifeJob, why string) {
	switch j.phase {
	case lifeQueued, lifePausing:
		l.toEnd(j, JobFailed, why)
	case lifeStarting, lifeRunning:
		j.failure = why
		l.kill(j, why)
	default: // its process is being written down, and is killed once it runs
		j.failure = why
	}
}

// started returns the time of Unix nanoseconds; zero is never.
func started(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// onRemove removes a job that has ended, at once.
func (l *Life) onRemove(a *LifeRequest) {
	j := l.jobs[a.Remove]
	switch {
	case j == nil:
		l.notThere(a.From, a.Remove)
	case j.phase != lifeOver:
		l.refuse(a.From, codes.InvalidArgument, "job "+j.id+" has not ended: cancel it first")
	case !j.mayLeave():
		l.refuse(a.From, codes.InvalidArgument, "job "+j.id+" is in use: its files are read, or its process is ending")
	default:
		l.pruneNow(&pruning{to: a.From, only: j.id})
	}
}
