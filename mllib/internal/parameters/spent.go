package parameters

import (
	"time"

	"github.com/volley-engine/volley/tables"
)

// Spent is how slots have spent their time, and what of workers' items others have done: of several runs of workers,
// also in processes before.
type Spent struct {
	Busy, Waited   time.Duration
	Shared, Helped int
}

// With returns it with what a run of workers has spent up to a tick.
func (s Spent) With(t *tables.Tick) Spent {
	return Spent{s.Busy + t.Busy, s.Waited + t.Waited, s.Shared + t.Shared, s.Helped + t.Helped}
}

// WaitedShare returns the share of their time that slots have waited.
func (s Spent) WaitedShare() float64 {
	return s.Waited.Seconds() / max(1e-9, (s.Waited+s.Busy).Seconds())
}

// HelpedShare returns the share of workers' items that others have done.
func (s Spent) HelpedShare() float64 { return float64(s.Helped) / float64(max(1, s.Shared)) }
