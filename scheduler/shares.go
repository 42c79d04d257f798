package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// Shares divides an executor's slots among the runners of several jobs by
// weight: who has had the least slot time for its weight goes first, and slots
// that it does not need go to the next (weighted fair queueing). One runner
// alone is never paused.
type Shares struct {
	slots int
	jobs  []*stake // by name
	last  plan.Time
}

// stake is one job's part.
type stake struct {
	job     string
	weight  float64
	runs    int           // under way
	need    int           // slots that they fold on, or that the last one did
	since   plan.Time     // when the present runs began
	idle    plan.Time     // since when nothing is under way
	linger  time.Duration // from then on
	virtual float64       // slot time that it has had, in seconds, over its weight
	paused  bool
}

// Turn tells a job's runner to pause, or to go on.
type Turn struct {
	Job   string
	Pause bool
}

const (
	// turn is how far one may get ahead before another has its turn.
	turn = 10 * time.Millisecond
	// credit is how much slot time one that had nothing to do is owed at most.
	credit = 500 * time.Millisecond
	// A slot is kept for a job between two steps, from those of less weight: they
	// would fold through its short gaps and get more than their share. It is kept
	// for at most lingerMost, and lingerTimes as long as the last step took: a job
	// that hardly folds must not keep others from doing so.
	lingerMost  = 3 * time.Millisecond
	lingerTimes = 4
	// lookEvery is the time between two looks while several want slots.
	lookEvery = 2 * time.Millisecond
)

// NewShares divides a number of slots.
func NewShares(slots int) *Shares {
	return &Shares{slots: max(1, slots)}
}

// Open takes a job in; it begins on a level with the one that has had least.
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

// Close lets a job go.
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

// Look returns whose turn it is now, and when to look again; 0 is after the
// next event.
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

// rank orders by slot time, with an advantage for the one that has its turn.
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

// at returns the place of a job, or where it belongs.
func (s *Shares) at(job string) (at int, known bool) {
	return slices.BinarySearchFunc(s.jobs, job, func(k *stake, job string) int { return cmp.Compare(k.job, job) })
}

// of returns a job's part; nil where it has none.
func (s *Shares) of(job string) *stake {
	if at, known := s.at(job); known {
		return s.jobs[at]
	}
	return nil
}
