package abss

import (
	"fmt"
	"math/bits"
	"time"
)

// Of short passes the way to the driver and back is a good part, and leases take one more; those of many executors
// take the driver longer to decide than a short pass takes (docs/scale.md). Yet leases alone do not wait for an
// executor that stands still. What is the better follows from how long both have taken: the one with the lesser mean
// is chosen, and the other tried now and then, as long as a pass is short.
const (
	shortest  = 10 * time.Millisecond  // up to which passes are taken to be short
	many      = 64                     // executors; of more also those of up to
	leaseTime = 600 * time.Microsecond // of each
	firstTry  = 8                      // passes of a kind before the other way is tried
	tries     = 2                      // of the other way, at the least
	everyTry  = 32                     // passes between two tries after that; more where it is slower
	oldest    = 32                     // passes that a mean remembers
)

// kind is what passes have in common whose lengths are compared: what they fold, and about how many rows of it.
type kind struct{ node, rows int }

// ways are the two ways of making whole passes of a kind.
type ways struct {
	whole, leased mean
	since         int  // the other way was tried
	lease         bool // the better one, as far as is known
	known         bool // it is
}

// mean is that of how long passes have taken.
type mean struct {
	n   int
	sum time.Duration
}

func (m *mean) add(d time.Duration) {
	if m.n == oldest {
		m.sum -= m.sum / oldest
		m.n--
	}
	m.n, m.sum = m.n+1, m.sum+d
}

func (m *mean) of() time.Duration { return m.sum / time.Duration(max(1, m.n)) }

// short returns up to what length passes are short.
func (c *Coming) short() time.Duration {
	if c.Executors > many {
		return max(shortest, time.Duration(c.Executors)*leaseTime)
	}
	return shortest
}

// kind returns what passes are compared by: their rows are alike within a factor of two.
func (c *Coming) kind() kind { return kind{c.Node, bits.Len64(uint64(max(0, c.Rows)))} }

// Took notes how long a pass has taken, that was chosen as it was, and made so.
func (a *Auto) Took(took time.Duration, cut, leased bool) {
	if cut || a.coming.Rows == 0 {
		return
	}
	if a.ways == nil {
		a.ways = map[kind]*ways{}
	}
	w := a.ways[a.coming.kind()]
	if w == nil {
		w = &ways{}
		a.ways[a.coming.kind()] = w
	}
	if leased {
		w.leased.add(took)
	} else {
		w.whole.add(took)
	}
}

// Moved notes that splits have changed places: how long passes took before says nothing of those to come.
func (a *Auto) Moved() {
	for _, w := range a.ways {
		w.whole, w.leased, w.since = mean{}, mean{}, 0
	}
}

// better returns the way that passes of this kind have taken less time by, or the other one to try it.
func (a *Auto) better(made Choice, c Coming) Choice {
	w := a.ways[c.kind()]
	if w == nil || made.Ratio < 1 || c.Takes < shortPass || c.Takes > c.short() {
		return made
	}
	if !w.known {
		w.lease = made.Lease
	}
	is, not := w.of(w.lease), w.of(!w.lease)
	if w.since++; is.n < firstTry && not.n < tries {
		if w.lease == made.Lease {
			return made
		}
		return w.way(w.lease, "short passes took less time so, before splits moved")
	}
	if w.known = w.known || not.n >= tries; is.n >= tries && not.n >= tries && not.of() < is.of() {
		w.lease, is, not = !w.lease, not, is
	}
	if not.n < tries || w.since >= is.tryAfter(not) {
		w.since = 0
		return w.way(!w.lease, "to try it, as passes are short")
	}
	return w.way(w.lease, fmt.Sprintf("short passes take %v so, else %v", round(is.of()), round(not.of())))
}

// way returns the choice of a way, and why.
func (w *ways) way(lease bool, why string) Choice {
	if lease {
		return Choice{1, true, "whole, by leases: " + why}
	}
	return Choice{1, false, "whole: " + why}
}

// of returns how long passes took by leases, or without.
func (w *ways) of(lease bool) *mean {
	if lease {
		return &w.leased
	}
	return &w.whole
}

// tryAfter returns after how many passes the other way is tried: the later the worse it is.
func (m *mean) tryAfter(other *mean) int {
	worse := max(1, float64(other.of())/float64(max(1, m.of())))
	return int(everyTry * min(32, worse*worse))
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
