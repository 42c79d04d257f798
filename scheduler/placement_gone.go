package scheduler

import "github.com/volley-engine/volley/internal/plan"

// gone reports whether a split cannot be had any more, until its pack is made again.
func (s *State) gone(i int) bool { return s.cfg.Sourceless && s.replica(i) < 0 }

// Gone reports whether there are splits that cannot be had until their pack is made again.
func (s *State) Gone() bool {
	for i := range s.splits {
		if sp := &s.splits[i]; sp.owner < 0 && sp.next < 0 && s.gone(i) {
			return true
		}
	}
	return false
}

// Remade takes in that an executor has made all splits again.
func (s *State) Remade(id plan.ExecutorID) []Command {
	for i := range s.splits {
		s.splits[i].failures = 0
		s.Replica(id, plan.SplitID(i))
	}
	return s.placeOrphans()
}
