package scheduler

import (
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/plan"
)

// Observe takes an executor's measured speed in rows per second into its
// smoothed one.
func (s *State) Observe(id plan.ExecutorID, rowsPerSecond float64) {
	i, ok := s.byID[id]
	if !ok || rowsPerSecond <= 0 {
		return
	}
	e := s.executors[i]
	if e.observed == 0 {
		e.speed = rowsPerSecond
	}
	e.latest = rowsPerSecond
	off := rowsPerSecond - e.speed
	e.speed += smoothing * off
	e.variance = (1 - smoothing) * (e.variance + smoothing*off*off)
	e.observed++
}

// smoothing is the weight of the newest speed: slow enough that the noise of
// a shared machine moves no split.
const smoothing = 0.15

// Speeds returns the smoothed speeds by executor, 0 where unknown, and in how
// many steps each was measured.
func (s *State) Speeds() (speed []float64, observed []int) {
	for i, e := range s.executors {
		if s.usable(i) {
			speed = append(speed, e.speed)
		} else {
			speed = append(speed, 0)
		}
		observed = append(observed, e.observed)
	}
	return speed, observed
}

// LatestSpeeds returns the last measured speeds by executor, 0 where unknown.
func (s *State) LatestSpeeds() (speed []float64) {
	for i, e := range s.executors {
		if speed = append(speed, 0); s.usable(i) && e.observed > 0 {
			speed[i] = e.latest
		}
	}
	return speed
}

// Spread returns how fast the fastest executor may be, and how slow the slowest: each within a standard deviation of
// its own speeds, and as it was last measured; 0 where no two speeds are known, or one is not of an executor that has
// splits: it may have been too slow to fold any of them before others did.
func (s *State) Spread() (fastest, slowest float64) {
	known := 0
	for i, e := range s.executors {
		switch {
		case !s.usable(i):
			continue
		case e.observed == 0 && s.owns(i):
			return 0, 0
		case e.observed == 0:
			continue
		}
		off := math.Sqrt(e.variance)
		fastest = max(fastest, e.speed+off, e.latest)
		if slow := max(0, min(e.speed-off, e.latest)); known == 0 || slow < slowest {
			slowest = slow
		}
		known++
	}
	if known < 2 {
		return 0, 0
	}
	return fastest, slowest
}

// owns reports whether an executor has a split.
func (s *State) owns(e int) bool {
	return slices.ContainsFunc(s.splits, func(sp split) bool { return sp.owner == e })
}

// Noise returns the relative standard error of the least certain smoothed speed.
func (s *State) Noise() float64 {
	var worst float64
	for i, e := range s.executors {
		if s.usable(i) && e.speed > 0 {
			worst = max(worst, math.Sqrt(e.variance*smoothing/(2-smoothing))/e.speed)
		}
	}
	return worst
}

// LargestShare returns the largest share of rows that one executor folds.
func (s *State) LargestShare(rows []int64) float64 {
	held, total := make([]int64, len(s.executors)), int64(0)
	for i, n := range rows {
		total += n
		if o := s.splits[i].owner; o >= 0 {
			held[o] += n
		}
	}
	if total == 0 || len(held) == 0 {
		return 0
	}
	return float64(slices.Max(held)) / float64(total)
}
