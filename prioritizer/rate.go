package prioritizer

import (
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/plan"
)

// Constants of the rate planner. A plan must raise the effective rows per
// second by minGain; among plans within slack of the best one the shortest
// step wins, since it brings more updates for the same effective rows.
const (
	minGain   = 0.08
	slack     = 0.02
	observe   = 4 // steps in which every executor's speed must have been seen
	coolDown  = 10
	moveCost  = 0.01 // seconds that a move must save beyond the transfer of its bytes
	spreadMul = 4
)

// forecast predicts a step: each executor's load in rows, speeds in rows per
// second.
type forecast struct {
	ratio float64
	rows  float64 // of all splits
	load  []float64
	speed []float64
}

// stepTime returns when the step ends: at the first executor through its rows,
// or later, when the ratio is reached.
func (f *forecast) stepTime() float64 {
	first, last := math.Inf(1), 0.0
	for e, l := range f.load {
		if l == 0 || f.speed[e] == 0 {
			continue
		}
		t := l / f.speed[e]
		first, last = min(first, t), max(last, t)
	}
	if f.ratio >= 1 {
		return last
	}
	if f.processed(first) >= f.ratio*f.rows {
		return first
	}
	lo, hi := first, last
	for range 40 {
		mid := (lo + hi) / 2
		if f.processed(mid) >= f.ratio*f.rows {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

func (f *forecast) processed(t float64) float64 {
	var n float64
	for e, l := range f.load {
		n += min(l, t*f.speed[e])
	}
	return n
}

// score returns the predicted N_eff per second, and the step's time.
func (f *forecast) score() (perSecond, t float64) {
	t = f.stepTime()
	var inverse float64 // 1/N_eff = Σ (n_i/N)²/c_i, with c_i = n_i·done
	for e, l := range f.load {
		if l > 0 {
			done := min(1, t*f.speed[e]/l)
			inverse += l / (f.rows * f.rows) / max(done, 1e-6)
		}
	}
	return 1 / inverse / t, t
}

// rate plans moves from speeds; where those have settled it swaps splits
// whose process times have drifted apart.
func (x *Exchange) rate(v View) []Swap {
	f := x.forecastOf(v)
	if f == nil {
		return nil
	}
	if swaps := x.balance(v, f); swaps != nil {
		return swaps
	}
	return x.evenOut(v, x.forecastOf(v)) // balance has tried moves on the other
}

// forecastOf returns nil where there is nothing to plan, or not yet: speeds have to be known, splits
// have to have settled, and there have to be rows to fold and another executor to fold them.
func (x *Exchange) forecastOf(v View) *forecast {
	f := &forecast{ratio: v.Ratio, load: make([]float64, len(v.Speed)), speed: v.Speed}
	known := 0
	for e, s := range v.Speed {
		if s > 0 && v.Observed[e] < observe {
			return nil
		} else if s > 0 {
			known++
		}
	}
	for i, o := range v.Owner {
		f.rows += float64(v.Rows[i])
		if o >= 0 {
			f.load[o] += float64(v.Rows[i])
			if v.Speed[o] == 0 || v.Moving[i] {
				return nil
			}
		}
	}
	if known < 2 || slowest(f) < 0 {
		return nil
	}
	return f
}

// balance moves splits one way, from the executor that would take longest to
// the one that would be done first, as far as that pays.
func (x *Exchange) balance(v View, f *forecast) []Swap {
	owner := append([]int(nil), v.Owner...)
	base, baseTime := f.score()
	var swaps []Swap
	best, bestTime, keep := base, baseTime, 0
	for range len(f.load) {
		s, ok := x.bestMove(v, f, owner, slowest(f))
		if !ok {
			break
		}
		swaps = append(swaps, s)
		if score, t := f.score(); score > best {
			best, bestTime, keep = score, t, len(swaps)
		}
	}
	for _, s := range slices.Backward(swaps[keep:]) {
		f.apply(v, owner, Swap{Split: s.Split, From: s.To, To: s.From})
	}
	swaps = swaps[:keep]
	if best < base*(1+minGain+2*v.Noise) || !x.pays(v, swaps, base, best, baseTime) {
		return nil
	}
	return x.shorten(v, f, owner, swaps, best, bestTime)
}

// shorten moves one more split off the executor that is done first where that
// makes the step shorter for nearly the same effective rows per second.
func (x *Exchange) shorten(v View, f *forecast, owner []int, swaps []Swap, best, bestTime float64) []Swap {
	if v.Ratio >= 1 {
		return swaps
	}
	s, ok := x.bestMove(v, f, owner, firstDone(f))
	if !ok {
		return swaps
	}
	if score, t := f.score(); score >= best*(1-slack) && t < bestTime*(1-slack) {
		return append(swaps, s)
	}
	return swaps
}

// pays reports whether the gain over the horizon is worth the bytes.
func (x *Exchange) pays(v View, swaps []Swap, base, best, stepTime float64) bool {
	var bytes float64
	cost := moveCost * float64(len(swaps))
	for _, s := range swaps {
		if v.Held == nil || !v.Held(int(s.Split), s.To) {
			bytes += float64(v.Bytes[s.Split])
		}
	}
	saved := (1 - base/best) * stepTime * float64(x.cfg.Horizon)
	return saved > cost+bytes/x.cfg.Bandwidth
}

// slowest returns the executor with the longest predicted time.
func slowest(f *forecast) int {
	at, worst := -1, 0.0
	for e, l := range f.load {
		if f.speed[e] > 0 && l/f.speed[e] > worst {
			at, worst = e, l/f.speed[e]
		}
	}
	return at
}

// firstDone returns the executor with work that has the shortest predicted time.
func firstDone(f *forecast) int {
	at := -1
	for e, l := range f.load {
		if l > 0 && (at < 0 || l/f.speed[e] < f.load[at]/f.speed[at]) {
			at = e
		}
	}
	return at
}

// bestMove takes the split that is most behind from a donor to the executor
// that would still be done first with it, and applies it.
func (x *Exchange) bestMove(v View, f *forecast, owner []int, donor int) (Swap, bool) {
	split := x.furthestBehind(v, owner, donor)
	if split < 0 {
		return Swap{}, false
	}
	s := Swap{Split: plan.SplitID(split), From: donor, To: f.soonestWith(float64(v.Rows[split]), donor)}
	f.apply(v, owner, s)
	return s, true
}

// furthestBehind returns the split processed least of those that a donor can give away; −1 is none.
// It keeps its last one, what it has been given in this plan, and what has moved lately.
func (x *Exchange) furthestBehind(v View, owner []int, donor int) int {
	split, held := -1, 0
	for i, o := range owner {
		if o != donor {
			continue
		}
		held++
		if !x.cooling(v, i) && o == v.Owner[i] && (split < 0 || v.Times[i] < v.Times[split]) {
			split = i
		}
	}
	if held < 2 {
		return -1
	}
	return split
}

// soonestWith returns the executor, other than the donor, that would be done first with more rows.
func (f *forecast) soonestWith(more float64, donor int) int {
	to, soonest := -1, math.Inf(1)
	for e, l := range f.load {
		if t := (l + more) / f.speed[e]; e != donor && t < soonest {
			to, soonest = e, t
		}
	}
	return to
}

// cooling reports whether the split has moved so lately that it stays.
func (x *Exchange) cooling(v View, i int) bool {
	return plantedCooling(x.moved[i] > 0 && v.Step-x.moved[i] < coolDown)
}

func (f *forecast) apply(v View, owner []int, s Swap) {
	n := float64(v.Rows[s.Split])
	f.load[s.From] -= n
	f.load[s.To] += n
	owner[s.Split] = s.To
}

// evenOut swaps the split processed most with the one processed least where
// their process times have drifted apart: with speeds balanced a swap costs
// nothing but its bytes.
func (x *Exchange) evenOut(v View, f *forecast) []Swap {
	least, most := x.extremes(v, func(i int) bool { return !x.cooling(v, i) })
	if least < 0 || v.Times[most]-v.Times[least] <= spreadMul*x.cfg.Threshold {
		return nil
	}
	behind, ahead := v.Owner[least], v.Owner[most]
	if f.load[behind]/f.speed[behind] <= f.load[ahead]/f.speed[ahead] {
		return nil // where it is now it catches up as fast as it can
	}
	return exchange(v, least, most)
}
