package prioritizer

import (
	"fmt"

	"github.com/volley-engine/volley/internal/plan"
)

// Mode is a rule for moving splits between executors.
type Mode uint8

// The modes. PaperLiteral is Algorithm 2 as printed; Paper adds two guards
// against useless swaps; Rate plans moves from measured speeds. Random moves
// splits at random, for tests that hold that moves change no result. It has no
// name on the command line.
const (
	Off Mode = iota
	PaperLiteral
	Paper
	Rate
	Random
)

var modeNames = []string{"off", "paper-literal", "paper", "rate", "random"}

// String returns the mode's name on the command line.
func (m Mode) String() string { return modeNames[m] }

// ParseMode returns the mode of a name.
func ParseMode(name string) (Mode, error) {
	for i, n := range modeNames[:Random] {
		if n == name {
			return Mode(i), nil
		}
	}
	return Off, fmt.Errorf("%q is not one of off, paper-literal, paper, rate", name)
}

// ExchangeConfig configures when and how splits move.
type ExchangeConfig struct {
	Mode      Mode
	Threshold int64   // P_t: difference of process times above which splits swap; default 5
	Interval  int     // steps between two plans; default 1
	Bandwidth float64 // bytes per second that a move takes; default 1e9
	Horizon   int     // steps within which a move must pay for itself; default 20
	Seed      uint64  // of the moves of Random
}

// EnsureDefaults fills in the fields left zero.
func (c ExchangeConfig) EnsureDefaults() ExchangeConfig {
	if c.Threshold == 0 {
		c.Threshold = 5
	}
	if c.Interval == 0 {
		c.Interval = 1
	}
	if c.Bandwidth == 0 {
		c.Bandwidth = 1e9
	}
	if c.Horizon == 0 {
		c.Horizon = 20
	}
	return c
}

// View is the input of a plan. Executors are numbered; a split whose Owner is
// −1, or that is on its way, is left alone.
type View struct {
	Step     int
	Ratio    float64   // R_s of the steps to come; 1 where they are not cut
	Owner    []int     // by split
	Rows     []int64   // by split
	Bytes    []int64   // by split
	Times    []int64   // N_i by split
	Moving   []bool    // by split
	Speed    []float64 // rows per second by executor, 0 where unknown
	Observed []int     // steps in which the executor's speed was measured
	Noise    float64   // relative standard error of the least certain speed
	Held     func(split, executor int) bool
}

// Swap is one split's move to another executor.
type Swap struct {
	Split    plan.SplitID
	From, To int
	Role     bool // the target holds a replica already
}

// Exchange plans moves. It remembers when each split last moved.
type Exchange struct {
	cfg   ExchangeConfig
	moved []int // step of each split's last move; 0 is never
}

// NewExchange prepares planning for a number of splits.
func NewExchange(cfg ExchangeConfig, splits int) *Exchange {
	return &Exchange{cfg: cfg.EnsureDefaults(), moved: make([]int, splits)}
}

// Plan returns the moves that follow the step that the view describes.
func (x *Exchange) Plan(v View) []Swap {
	if x.cfg.Mode == Off || v.Step%x.cfg.Interval != 0 {
		return nil
	}
	var swaps []Swap
	switch x.cfg.Mode {
	case PaperLiteral:
		swaps = x.literal(v)
	case Paper:
		swaps = x.paper(v)
	case Rate:
		swaps = x.rate(v)
	case Random:
		swaps = x.random(v)
	}
	swaps = plantedSwaps(v, swaps)
	for i := range swaps {
		s := &swaps[i]
		s.Role = v.Held != nil && v.Held(int(s.Split), s.To)
		x.moved[s.Split] = v.Step
	}
	return swaps
}

// extremes returns the splits with the least and the most process times among
// those that may move; −1 where there is none.
func (x *Exchange) extremes(v View, may func(int) bool) (least, most int) {
	least, most = -1, -1
	for i := range v.Owner {
		if v.Owner[i] < 0 || v.Moving[i] || !may(i) {
			continue
		}
		if least < 0 || v.Times[i] < v.Times[least] {
			least = i
		}
		if most < 0 || v.Times[i] > v.Times[most] {
			most = i
		}
	}
	return least, most
}

// literal returns the moves of Algorithm 2 as printed.
func (x *Exchange) literal(v View) []Swap {
	least, most := x.extremes(v, func(int) bool { return true })
	if least < 0 || plantedThrifty(v.Times[most]-v.Times[least] <= x.cfg.Threshold) {
		return nil
	}
	return exchange(v, least, most)
}

// exchange swaps the places of two splits.
func exchange(v View, a, b int) []Swap {
	if v.Owner[a] == v.Owner[b] {
		return nil
	}
	return []Swap{
		{Split: plan.SplitID(a), From: v.Owner[a], To: v.Owner[b]},
		{Split: plan.SplitID(b), From: v.Owner[b], To: v.Owner[a]},
	}
}

// random moves one split to one executor after about every third step.
func (x *Exchange) random(v View) []Swap {
	draw := func(what, n int) int { return int(hash(x.cfg.Seed, uint64(v.Step), uint64(what)) % uint64(n)) }
	split, to := draw(1, len(v.Owner)), draw(2, len(v.Speed))
	if draw(0, 3) != 0 || v.Owner[split] < 0 || v.Moving[split] || v.Owner[split] == to {
		return nil
	}
	return []Swap{{Split: plan.SplitID(split), From: v.Owner[split], To: to}}
}

// hash returns the finalizer of splitmix64 over three numbers.
func hash(a, b, c uint64) uint64 {
	z := a*0x9e3779b97f4a7c15 + b*0xbf58476d1ce4e5b9 + c*0x94d049bb133111eb
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// paper returns the moves of Algorithm 2 with guards: a split whose last swap
// has had fewer steps than the threshold to act stays, and the split that is
// behind is not taken from the fastest executor.
func (x *Exchange) paper(v View) []Swap {
	settled := func(i int) bool {
		return plantedSettled(x.moved[i] == 0 || int64(v.Step-x.moved[i]) > x.cfg.Threshold)
	}
	least, most := x.extremes(v, settled)
	if least < 0 || v.Times[most]-v.Times[least] <= x.cfg.Threshold {
		return nil
	}
	if v.Speed[v.Owner[least]] >= v.Speed[v.Owner[most]] {
		return nil
	}
	return exchange(v, least, most)
}
