package sim

import (
	"slices"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/prioritizer"
)

// rateCoolDown is how many steps a split stays where the rate planner has put it.
const rateCoolDown = 10

// moveWatch holds the exchange of splits against section 5.
type moveWatch struct {
	s     *Sim
	moved map[splitOf]int // step of a split's last move
	names [][]string      // of executors, by pack, as numbered in reports
}

func newMoveWatch(s *Sim) *moveWatch {
	return &moveWatch{s: s, moved: map[splitOf]int{}, names: make([][]string, len(s.packs))}
}

// done looks at the moves that follow a step.
func (m *moveWatch) done(w *placeWatch, r *driver.StepReport) {
	if r.Executors != nil {
		m.names[r.Pack] = r.Executors
	}
	mode, threshold := m.s.cfg.Exchange.Mode, m.s.cfg.Exchange.Threshold
	if len(r.Moves) > 0 && (mode == prioritizer.Off || !r.Train) {
		m.s.violate("5.off", "%d splits move", len(r.Moves))
	}
	for _, v := range r.Moves {
		at := splitOf{r.Pack, int(v.Split)}
		last := m.moved[at]
		if mode == prioritizer.Rate && last > 0 && r.Number-last < rateCoolDown {
			m.s.violate("5.rate", "split %d moves again after %d steps", v.Split, r.Number-last)
		}
		if mode == prioritizer.Paper && last > 0 && int64(r.Number-last) <= threshold {
			m.s.violate("5.paper", "split %d swaps again after %d steps", v.Split, r.Number-last)
		}
		if !v.Role && w.holds[copyOf{v.To, at.pack, at.split}] && len(w.failures) == 0 {
			m.s.violate("5.replica", "split %d is fetched by %s, which holds it", v.Split, v.To)
		}
	}
	for _, v := range r.Moves {
		m.moved[splitOf{r.Pack, int(v.Split)}] = r.Number
	}
	if len(r.Moves) > 0 && (mode == prioritizer.Paper || mode == prioritizer.PaperLiteral) {
		m.swap(r, threshold)
	}
}

// swap holds that Algorithm 2 swaps the places of two splits whose process times
// are further apart than the threshold.
func (m *moveWatch) swap(r *driver.StepReport, threshold int64) {
	if len(r.Moves) != 2 || r.Moves[0].From != r.Moves[1].To || r.Moves[0].To != r.Moves[1].From {
		m.s.violate("5.literal", "%d moves that are no swap", len(r.Moves))
		return
	}
	p := m.s.packs[r.Pack]
	behind, ahead := r.Moves[0], r.Moves[1]
	least, most := m.s.oracle.times(p, int(behind.Split)), m.s.oracle.times(p, int(ahead.Split))
	if most-least <= threshold {
		m.s.violate("5.literal", "splits of process times %d and %d swap, the threshold is %d", least, most, threshold)
	}
	if m.s.cfg.Exchange.Mode == prioritizer.Paper && m.rate(r, behind.From) >= m.rate(r, behind.To) {
		m.s.violate("5.paper", "split %d is behind and leaves the faster executor", behind.Split)
	}
}

// rate returns an executor's measured speed.
func (m *moveWatch) rate(r *driver.StepReport, id plan.ExecutorID) float64 {
	if e := slices.Index(m.names[r.Pack], string(id)); e >= 0 && e < len(r.Rates) {
		return r.Rates[e]
	}
	return -1
}
