package host

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
)

// standing is how the loop of a job stands, for who asks beside it.
type standing struct {
	shown  atomic.Pointer[wire.LoopStanding]
	recent []time.Duration // when the last turns were committed, on the job's clock
	loop   int             // of the last turn
	before uint64          // turns of earlier loops
}

// recentTurns is by how many of the last turns it is reckoned how many a loop makes.
const recentTurns = 20

// now returns how the loop stands; nil is that it has not come to anything.
func (s *standing) now() *wire.LoopStanding { return s.shown.Load() }

// commit notes a turn; turns is how many all loops have done with it, as far as a process that goes on with the job
// knows at its first.
func (s *standing) commit(c rdd.Commit, turns uint64, now time.Duration) {
	switch before := s.now(); {
	case before == nil:
		s.before = turns - uint64(c.Iteration)
	case c.Loop != s.loop:
		s.recent, s.before = nil, before.Iteration
	}
	s.loop = c.Loop
	s.recent = append(s.recent, now)
	s.recent = s.recent[max(0, len(s.recent)-recentTurns):]
	next := &wire.LoopStanding{Iteration: s.before + uint64(c.Iteration)}
	if before := s.now(); before != nil {
		next.Objective = before.Objective
	}
	if v, there := c.Values["objective"]; there && !math.IsNaN(v) && !math.IsInf(v, 0) {
		next.Objective = &v
	}
	if took := now - s.recent[0]; took > 0 {
		next.PerSecond = float64(len(s.recent)-1) / took.Seconds()
	}
	if left := c.Most - c.Iteration; left > 0 && next.PerSecond > 0 && !c.Last {
		next.LeftNs = int64(min(float64(mostLeft), float64(left)/next.PerSecond*float64(time.Second)))
	}
	s.shown.Store(next)
}

// mostLeft is the longest time that is told of.
const mostLeft = 100 * 365 * 24 * time.Hour

// evaluated notes an objective that a pass beside the turns has found.
func (s *standing) evaluated(ev rdd.Evaluation) {
	if before := s.now(); before != nil && !math.IsNaN(ev.Objective) && !math.IsInf(ev.Objective, 0) {
		s.shown.Store(&wire.LoopStanding{Iteration: before.Iteration, Objective: &ev.Objective,
			PerSecond: before.PerSecond, LeftNs: before.LeftNs})
	}
}
