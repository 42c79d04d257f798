package pace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// speeds is a law of slots' speeds.
type speeds interface {
	// at returns the speed of a slot at a time, and until when that holds. Where the length of a balanced pass is not
	// known yet it is 0.
	at(w who, now, pass time.Duration) (factor float64, until time.Duration)
	// mean returns the speed that an executor's slots have in the mean.
	mean(executor int) float64
	// shape returns the cluster that the law is for; 0 is any.
	shape() (executors, slots int)
}

// who is a slot, of one of as many executors as there are.
type who struct{ executor, slot, slots, of int }

// static speeds, by executor.
type static []float64

func (s static) at(w who, _, _ time.Duration) (float64, time.Duration) {
	return s.mean(w.executor), forever
}
func (s static) mean(executor int) float64     { return s[executor%len(s)] }
func (s static) shape() (executors, slots int) { return len(s), 0 }

func parseStatic(arg string) (static, error) {
	var out static
	for _, s := range strings.Split(arg, ",") {
		v, err := positive(s)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// Physical and multi-tenant clusters of the A-BSP paper (section 6.1).
const (
	physicalExecutors = 12
	physicalSlow      = 3
	physicalFast      = 2.2
	tenantNodes       = 36
	tenantTasks       = 2
)

func physical() static {
	s := make(static, physicalExecutors)
	for i := range s {
		if s[i] = physicalFast; i < physicalSlow {
			s[i] = 1
		}
	}
	return s
}

// uneven is FlexRR's cluster (section 5.1) half of whose machines have 75 % of the work, a third of the speed where
// work is the same for all.
type uneven struct{ free }

func (uneven) at(w who, _, _ time.Duration) (float64, time.Duration) {
	return uneven{}.mean(w.executor), forever
}

func (uneven) mean(executor int) float64 { return float64(1 + 2*(executor%2)) }

// needsPass reports whether a law is measured in balanced passes.
func needsPass(s speeds) bool {
	switch s := s.(type) {
	case static, trace:
		return false
	case disrupted:
		return s.slot.passes > 0
	}
	return true
}

// free is a law for clusters of any shape.
type free struct{}

func (free) shape() (executors, slots int) { return 0, 0 }

// tenants are nodes whose speed is anew between 1 and 4 in every slot of a pass's length; a node has two tasks (A-BSP,
// section 6.1.1).
type tenants struct{ seed uint64 }

func (t tenants) at(w who, now, pass time.Duration) (float64, time.Duration) {
	if pass == 0 {
		return 1, forever
	}
	node, k := uint64((w.executor*w.slots+w.slot)/tenantTasks), int64(now/pass)
	return 1 + 3*uniform(t.seed, node, uint64(k)), time.Duration(k+1) * pass
}

func (t tenants) mean(int) float64              { return 2.5 }
func (t tenants) shape() (executors, slots int) { return tenantNodes, tenantTasks }

// delayed has one executor sleep at a time: the first for a length in the first pass, the second in the second, and so
// on (LazyTable, section 5.3).
type delayed struct {
	free
	length length
}

func (d delayed) at(w who, now, pass time.Duration) (float64, time.Duration) {
	if pass == 0 {
		return 1, forever
	}
	sleep := d.length.of(pass)
	k := int64(now / (pass + sleep))
	begins := time.Duration(k) * (pass + sleep)
	if ends := begins + sleep; now < ends && int64(w.executor) == k%int64(w.of) {
		return 0, ends
	}
	return 1, begins + sleep + pass
}

func (d delayed) mean(int) float64 { return 1 }

// disrupted executors are slowed down in some slots of time: to half of their speed in a tenth of them (LazyTable's
// background work, section 5.3), or, in a fifth of them, by a percentage (FlexRR's disrupted machines, section 5.1).
type disrupted struct {
	free
	slot   length
	share  float64 // of all slots
	factor float64 // of the speed in them
	seed   uint64
}

func (d disrupted) at(w who, now, pass time.Duration) (float64, time.Duration) {
	slot := d.slot.of(pass)
	if slot == 0 {
		return 1, forever
	}
	k := int64(now / slot)
	until := time.Duration(k+1) * slot
	if uniform(d.seed, uint64(w.executor), uint64(k)) < d.share {
		return d.factor, until
	}
	return 1, until
}

func (d disrupted) mean(int) float64 { return 1 - d.share + d.share*d.factor }

// slowWorker has each slot decide at ten points of a pass, with a probability of 1 %, to be slowed by a percentage for
// up to two passes (FlexRR, section 5.1).
type slowWorker struct {
	free
	factor float64
	seed   uint64
}

const (
	slowPoints = 10 // in a pass
	slowShare  = 0.01
	slowPasses = 2
)

func (s slowWorker) at(w who, now, pass time.Duration) (float64, time.Duration) {
	point := pass / slowPoints
	if point == 0 {
		return 1, forever
	}
	k := int64(now / point)
	until := time.Duration(k+1) * point
	for i := max(0, k-slowPoints*slowPasses); i <= k; i++ {
		id := uint64(w.executor*w.slots + w.slot)
		if uniform(s.seed, id, uint64(2*i)) >= slowShare {
			continue
		}
		ends := time.Duration(i)*point + time.Duration(uniform(s.seed, id, uint64(2*i+1))*slowPasses*float64(pass))
		if ends > now {
			return s.factor, min(until, ends)
		}
	}
	return 1, until
}

func (s slowWorker) mean(int) float64 { return 1 }

// powerLaw has each slot take t times a balanced pass for what is a pass's work, t ≥ 1 of a density that falls with
// t^−α (FlexRR, section 5.1).
type powerLaw struct {
	free
	alpha float64
	seed  uint64
	mu    sync.Mutex
	turns map[int]turn // the last looked at, by slot
}

// turn is a slot's pass under a power law.
type turn struct {
	k             uint64
	begins, ends  time.Duration
	times, passes float64
}

func (p *powerLaw) at(w who, now, pass time.Duration) (float64, time.Duration) {
	if pass == 0 {
		return 1, forever
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	id := w.executor*w.slots + w.slot
	t, ok := p.turns[id]
	if !ok || now < t.begins || t.passes != float64(pass) {
		t = p.turn(id, 0, 0, pass)
	}
	for now >= t.ends {
		t = p.turn(id, t.k+1, t.ends, pass)
	}
	p.turns[id] = t
	return 1 / t.times, t.ends
}

func (p *powerLaw) turn(id int, k uint64, begins, pass time.Duration) turn {
	times := math.Pow(1-uniform(p.seed, uint64(id), k), -1/(p.alpha-1))
	return turn{k: k, begins: begins, ends: begins + seconds(times*pass.Seconds()) + 1, times: times,
		passes: float64(pass)}
}

// mean returns a pass's work over its mean time.
func (p *powerLaw) mean(int) float64 { return (p.alpha - 2) / (p.alpha - 1) }

// parseSpeeds reads the laws of the papers.
func parseSpeeds(name, arg string) (speeds, error) {
	r := &reader{args: strings.Split(arg, ":")}
	var s speeds
	switch name {
	case "physical":
		s = physical()
	case "multi-tenant":
		s = tenants{r.seed()}
	case "one-straggler":
		s = static{1, 1, 1, 1, 1, 0.5}
	case "uneven":
		s = uneven{}
	case "delayed":
		s = delayed{length: r.length("")}
	case "disrupter":
		s = disrupted{slot: r.length(""), share: 0.1, factor: 0.5, seed: r.seed()}
	case "disrupted":
		s = disrupted{factor: r.slowed(), slot: r.length("20s"), share: 0.2, seed: r.seed()}
	case "slow-worker":
		s = slowWorker{factor: r.slowed(), seed: r.seed()}
	case "power-law":
		s = &powerLaw{alpha: r.alpha(), seed: r.seed(), turns: map[int]turn{}}
	default:
		return nil, fmt.Errorf("unknown profile %q", name)
	}
	if r.err == nil && len(r.args) > 0 && r.args[0] != "" {
		r.err = fmt.Errorf("%s takes no %q", name, strings.Join(r.args, ":"))
	}
	return s, r.err
}

// reader reads the arguments of a law in turn, and keeps the first error.
type reader struct {
	args []string
	err  error
}

// next returns the next argument, or else what stands for it.
func (r *reader) next(without string) string {
	if len(r.args) == 0 || r.args[0] == "" {
		return without
	}
	a := r.args[0]
	r.args = r.args[1:]
	return a
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) seed() uint64 {
	a := r.next("1")
	seed, err := strconv.ParseUint(a, 10, 64)
	if err != nil {
		r.fail("%q is not a seed", a)
	}
	return seed
}

// slowed returns the speed of a slot that is slowed by a percentage: by 100 % it is twice as slow.
func (r *reader) slowed() float64 {
	p, err := positive(r.next(""))
	if err != nil {
		r.fail("%w, a percentage", err)
	}
	return 1 / (1 + p/100)
}

// leastAlpha is the exponent of a power law that still has a mean.
const leastAlpha = 2.05

// alpha returns the exponent of a power law whose mean is finite.
func (r *reader) alpha() float64 {
	a, err := positive(r.next(""))
	if err != nil || a < leastAlpha {
		r.fail("a power law needs an exponent of %v or more, as power-law:7", leastAlpha)
	}
	return a
}

// Bounds of lengths: shorter ones are many to a chunk of rows.
const (
	leastPasses, mostPasses = 1e-3, 1e6
	leastLength             = 10 * time.Microsecond
)

// length is a time, or a multiple of a balanced pass.
type length struct {
	time   time.Duration
	passes float64
}

func (l length) of(pass time.Duration) time.Duration {
	return l.time + seconds(l.passes*pass.Seconds())
}

func (r *reader) length(without string) (l length) {
	a := r.next(without)
	if text, ok := strings.CutSuffix(a, "p"); ok {
		v, err := positive(text)
		if err != nil || v < leastPasses || v > mostPasses {
			r.fail("%q is no multiple of a pass from %v to %v, as 1.5p", a, leastPasses, mostPasses)
		}
		return length{passes: v}
	}
	d, err := time.ParseDuration(a)
	if err != nil || d < leastLength {
		r.fail("%q is no length of 10µs or more, as 2s or 1.5p", a)
	}
	return length{time: d}
}

// uniform returns a hash of its arguments in [0, 1) (the finalizer of splitmix64).
func uniform(seed, node, slot uint64) float64 {
	z := seed*0x9e3779b97f4a7c15 + node*0xd1342543de82ef95 + slot*0x2545f4914f6cdd1d
	for range 2 {
		z += 0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
	}
	return float64(z>>11) / (1 << 53)
}
