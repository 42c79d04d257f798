package scheduler

import (
	"math"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// worth is whether others' pieces are worth folding, at one moment.
type worth uint8

const (
	unknown worth = iota
	worthIt
	notWorthIt
)

// leastPart is how long a part of a result takes to be sent at the least, to be reckoned with.
const leastPart = 50 * time.Microsecond

// partTime returns how long a part of the result takes on the driver's link, which all of them share.
func (l *Leases) partTime() plan.Time {
	if t := seconds(float64(l.cfg.Part) / l.cfg.Bandwidth); t >= leastPart {
		return t
	}
	return 0
}

// worthMoving reports whether executors that are free should fold pieces of a split whose owner has work left for some
// time: each is a part of the result more, and what all of these take on the driver's link has to be less than what the
// pass gains by being balanced.
func (l *Leases) worthMoving(left, now plan.Time) bool {
	if l.partTime() == 0 || left >= never {
		return true
	}
	if l.view.worth == unknown {
		if l.view.worth = notWorthIt; l.balanced(now) {
			l.view.worth = worthIt
		}
	}
	return l.view.worth == worthIt
}

// balanced reports whether the pass ends sooner if what is left is divided by speed.
func (l *Leases) balanced(now plan.Time) bool {
	left := make([]float64, len(l.ex))
	var longest, rows, rate float64
	for e, x := range l.ex {
		if len(x.awaited) > 0 {
			continue // it is done
		}
		t := l.remaining(e, now)
		if t >= never {
			if len(l.view.own[e]) > 0 {
				return true // another one has to
			}
			continue
		}
		left[e] = t.Seconds()
		longest, rows, rate = max(longest, left[e]), rows+float64(left[e]*l.view.rates[e]), rate+l.view.rates[e]
	}
	if rate == 0 {
		return true
	}
	even, moved, each := rows/rate, 0.0, l.pieceRows()
	for e, t := range left {
		moved += math.Ceil(max(0, t-even) * l.view.rates[e] / each)
	}
	return longest-even > float64(moved*l.partTime().Seconds())
}

// pieceRows returns how many rows a piece has, on average.
func (l *Leases) pieceRows() float64 {
	var rows int64
	for _, t := range l.tasks {
		rows += t.Limit
	}
	return float64(max(1, rows)) / float64(max(1, len(l.pieces)))
}
