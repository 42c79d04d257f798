package history

import (
	"slices"

	"github.com/volley-engine/volley/driver"
)

// How much is kept of a run. Where there is more, half as much is, so that a run of any length takes the same room: of
// four objectives in a row the least and the largest, and two steps in a row as one.
const (
	mostPoints = 4096
	mostSteps  = 4096
	mostShares = 2 << 20 // of all steps
)

// thin makes room for what comes.
func (c *Run) thin() {
	if len(c.Points) >= mostPoints {
		c.Points = extremes(c.Points)
	}
	if len(c.Tables) >= mostPoints { // of two the one that was further
		kept := c.Tables[:0]
		for k := 0; k+1 < len(c.Tables); k += 2 {
			further := c.Tables[k]
			if c.Tables[k+1].Stale >= further.Stale {
				further = c.Tables[k+1]
			}
			kept = append(kept, further)
		}
		c.Tables = kept
	}
	if n := len(c.Steps); n >= mostSteps || n >= 2*minSteps && n*c.Splits >= mostShares {
		kept := c.Steps[:0]
		for k := 0; k < n; k += 2 {
			if k+1 < n {
				c.Steps[k].join(&c.Steps[k+1])
			}
			kept = append(kept, c.Steps[k])
		}
		clear(c.Steps[len(kept):])
		c.Steps = kept
	}
}

// minSteps is how many are kept however many splits there are: more than a strip has columns.
const minSteps = 128

// extremes keeps of each four points the least and the largest, in their order, and the last of all.
func extremes(all []Point) []Point {
	last := all[len(all)-1]
	kept := all[:0]
	for from := 0; from < len(all); from += 4 {
		some := slices.Clone(all[from:min(from+4, len(all))])
		low, high := 0, 0
		for i, p := range some {
			if p.Objective < some[low].Objective {
				low = i
			}
			if p.Objective > some[high].Objective {
				high = i
			}
		}
		if kept = append(kept, some[min(low, high)]); low != high {
			kept = append(kept, some[max(low, high)])
		}
	}
	if kept[len(kept)-1] != last {
		kept = append(kept, last)
	}
	return kept
}

// join takes the steps after it in, too.
func (s *Step) join(next *Step) {
	n, m := float64(s.Of), float64(next.Of)
	s.Share = (n*s.Share + m*next.Share) / (n + m)
	s.Shares = least(s.Shares, next.Shares)
	s.Phases = together(s.Phases, next.Phases)
	s.Number, s.Iteration, s.Ended = next.Number, next.Iteration, next.Ended
	s.Of, s.Cuts, s.Took = s.Of+next.Of, s.Cuts+next.Cuts, s.Took+next.Took
	s.Moves, s.Bytes, s.Retried = s.Moves+next.Moves, s.Bytes+next.Bytes, s.Retried+next.Retried
	s.Owns, s.Batch, s.Ratio, s.Why = next.Owns, next.Batch, next.Ratio, next.Why
	if next.Longest > s.Longest {
		s.Executors, s.Longest, s.First, s.Stop, s.Reached = next.Executors, next.Longest, next.First, next.Stop,
			next.Reached
	}
}

// least returns the lesser of each two shares, in memory of its own, as who draws may have that of the steps. Those of
// a step that has none are all.
func least(a, b []float64) []float64 {
	if a == nil {
		return b
	}
	out := slices.Clone(a)
	for i := range min(len(a), len(b)) {
		out[i] = min(a[i], b[i])
	}
	return out
}

// together adds up phases, which are nil where they are not known.
func together(a, b *driver.LogPhases) *driver.LogPhases {
	if a == nil || b == nil {
		return nil
	}
	return &driver.LogPhases{Send: a.Send + b.Send, Compute: a.Compute + b.Compute, Wait: a.Wait + b.Wait,
		Collect: a.Collect + b.Collect, Update: a.Update + b.Update, Exchange: a.Exchange + b.Exchange}
}
