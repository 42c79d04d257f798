package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// Shares divides an executor's slots among the runners of several jobs by
// weight: the job that has had the least slot time for its weight goes first,
// and slots that it does not need go to the next (weighted fair queueing). One
// runner alone is never paused.
type Shares struct {
	slots int
	jobs  []*stake // by name
	last  plan.Time
}

// stake is one job's share and its use of it.
type stake struct {
	job     string
	weight  float64
	runs    int           // under way
	need    int           // slots that they fold on, or that the last run did
	since   plan.Time     // when the present runs began
	idle    plan.Time     // since when no run is under way
	linger  time.Duration // until when its slots are kept
	virtual float64       // slot time used, in seconds, over its weight
	paused  bool
}

// Turn makes a job's runner pause, or continue.
type Turn struct {
	Job   string
	Pause bool
}

const (
	// turn is how much slot time a job may get ahead before the next one runs.
	turn = 10 * time.Millisecond
	// credit bounds the slot time that an idle job is owed.
	credit = 500 * time.Millisecond
	// A job keeps its slots between two steps against jobs of less weight: these
	// would fold in its short gaps and get more than their share. It keeps them
	// for at most lingerMost, and lingerTimes as long as its last step took: a job
	// that hardly folds must not block others.
	lingerMost  = 3 * time.Millisecond
	lingerTimes = 4
	// lookEvery is the time between two decisions while several jobs need slots.
	lookEvery = 2 * time.Millisecond
)

// NewShares divides a number of slots.
func NewShares(slots int) *Shares {
	return &Shares{slots: max(1, slots)}
}

// Open adds a job; it begins with the slot time of the job that has had least.
func (s *Shares) Open(job string, weight float64, now plan.Time) {
	s.advance(now)
	k := &stake{job: job, weight: max(weight, 1e-3), need: s.slots, idle: now}
	for i, o := range s.jobs {
		if i == 0 || o.virtual < k.virtual {
			k.virtual = o.virtual
		}
	}
	at, known := s.at(job)
	if !known {
		s.jobs = slices.Insert(s.jobs, at, nil)
	}
	s.jobs[at] = k
}

// Close removes a job.
func (s *Shares) Close(job string, now plan.Time) {
	s.advance(now)
	if at, known := s.at(job); known {
		s.jobs = slices.Delete(s.jobs, at, at+1)
	}
}

// Began notes that a job's runner folds a number of tasks.
func (s *Shares) Began(job string, tasks int, now plan.Time) {
	if k := s.of(job); k != nil {
		s.advance(now)
		if k.runs == 0 {
			k.since = now
		}
		k.runs++
		k.need = min(max(1, tasks), s.slots)
	}
}

// Ended notes that one of the runs is over.
func (s *Shares) Ended(job string, now plan.Time) {
	if k := s.of(job); k != nil && k.runs > 0 {
		s.advance(now)
		if k.runs--; k.runs == 0 {
			k.idle, k.linger = now, min(lingerMost, lingerTimes*(now-k.since))
		}
	}
}

// Look returns which jobs pause or continue now, and when to decide again; 0 is
// after the next event.
func (s *Shares) Look(now plan.Time) (turns []Turn, again time.Duration) {
	s.advance(now)
	queue := slices.Clone(s.jobs)
	slices.SortStableFunc(queue, func(a, b *stake) int { return cmp.Compare(s.rank(a), s.rank(b)) })
	wanting := 0
	for i, k := range queue {
		if k.runs > 0 || s.lingers(k) {
			wanting++
		}
		if pause := plantedPause(k.runs > 0 && s.taken(queue[:i], k) >= s.slots); pause != k.paused {
			k.paused = pause
			turns = append(turns, Turn{k.job, pause})
		}
	}
	if wanting > 1 {
		again = lookEvery
	}
	return turns, again
}

// rank orders by slot time, with an advantage for the jobs that run.
func (s *Shares) rank(k *stake) float64 {
	if k.runs > 0 && !k.paused {
		return k.virtual - s.unit(plantedTurn(turn))
	}
	return k.virtual
}

// taken returns how many slots those before a job in the queue need.
func (s *Shares) taken(before []*stake, k *stake) int {
	n := 0
	for _, o := range before {
		if o.runs > 0 || s.lingers(o) && o.weight > k.weight {
			n += o.need
		}
	}
	return n
}

func (s *Shares) lingers(k *stake) bool {
	return k.runs == 0 && plantedLinger(s.last-k.idle < k.linger)
}

// unit returns a time on all slots, over the greatest weight of those that fold.
func (s *Shares) unit(t time.Duration) float64 {
	most := 1e-3
	for _, k := range s.jobs {
		if k.runs > 0 || s.lingers(k) {
			most = max(most, k.weight)
		}
	}
	return t.Seconds() * float64(s.slots) / most
}

// advance charges the time since the last event.
func (s *Shares) advance(now plan.Time) {
	dt := (now - s.last).Seconds()
	s.last = now
	most := 0.0
	for _, k := range s.jobs {
		if k.runs > 0 && !k.paused {
			k.virtual += dt * float64(k.need) / plantedWeight(k.weight)
		}
		most = max(most, k.virtual)
	}
	for _, k := range s.jobs {
		k.virtual = max(k.virtual, most-s.unit(plantedCredit(credit)))
	}
}

// at returns the index of a job, or where to insert it.
func (s *Shares) at(job string) (at int, known bool) {
	return slices.BinarySearchFunc(s.jobs, job, func(k *stake, job string) int { return cmp.Compare(k.job, job) })
}

// of returns a job's stake; nil where it has none.
func (s *Shares) of(job string) *stake {
	if at, known := s.at(job); known {
		return s.jobs[at]
	}
	return nil
}
