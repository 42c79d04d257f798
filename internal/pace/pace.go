// Package pace owns the laws of emulated clusters: how many rows per second
// each slot of each executor folds as a function of time (WORKLOADS.md gives
// the profiles of the papers). The same law drives the virtual clock and, by
// sleeping, the real one.
//
// It must not measure or wait: a law is a function of its seed and the time.
package pace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Law is the speed of every slot over time.
type Law struct {
	Name      string
	Executors int // that the law is for; 0 is any number
	Slots     int // slots an executor that the law is for; 0 is any number
	rate      float64
	speeds    []float64 // static, by executor
	seed      uint64
	slot      time.Duration // length of a slot of time under multi-tenant; 0 until Balance
	tenants   bool
}

// Physical and multi-tenant clusters of the A-BSP paper (section 6.1).
const (
	physicalExecutors = 12
	physicalSlow      = 3
	physicalFast      = 2.2
	tenantNodes       = 36
	tenantTasks       = 2
)

// Parse reads a law: static:a,b,… (relative speeds by executor), rate:N (rows
// per second of every slot), physical, multi-tenant[:SEED], one-straggler.
// rate is rows per second of speed 1 on a slot. An empty text is no law.
func Parse(text string, rate float64) (*Law, error) {
	name, arg, _ := strings.Cut(text, ":")
	l := &Law{Name: text, rate: rate}
	var err error
	switch name {
	case "":
		return nil, nil
	case "static":
		l.speeds, err = parseSpeeds(arg)
	case "rate":
		l.rate, err = positive(arg)
	case "physical":
		l.speeds = physical()
	case "multi-tenant":
		l.tenants, l.Executors, l.Slots = true, tenantNodes, tenantTasks
		l.seed, err = parseSeed(arg)
	case "one-straggler":
		l.speeds = []float64{1, 1, 1, 1, 1, 0.5}
	default:
		err = fmt.Errorf("unknown profile %q", name)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; want static:a,b,… rate:N physical multi-tenant[:SEED] one-straggler", err)
	}
	if l.speeds != nil {
		l.Executors = len(l.speeds)
	}
	return l, nil
}

func parseSpeeds(arg string) ([]float64, error) {
	var out []float64
	for _, s := range strings.Split(arg, ",") {
		v, err := positive(s)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func positive(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || v <= 0 || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a positive number", s)
	}
	return v, nil
}

func parseSeed(arg string) (uint64, error) {
	if arg == "" {
		return 1, nil
	}
	seed, err := strconv.ParseUint(arg, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a seed", arg)
	}
	return seed, nil
}

func physical() []float64 {
	speeds := make([]float64, physicalExecutors)
	for i := range speeds {
		speeds[i] = physicalFast
		if i < physicalSlow {
			speeds[i] = 1
		}
	}
	return speeds
}

// Fits says whether the law is for a cluster of this shape.
func (l *Law) Fits(executors, slots int) error {
	if l == nil || l.Executors == 0 {
		return nil
	}
	if l.tenants {
		if executors*slots != tenantNodes*tenantTasks {
			return fmt.Errorf("%s is for %d tasks at once (%d executors of %d slots), not %d executors of %d",
				l.Name, tenantNodes*tenantTasks, tenantNodes, tenantTasks, executors, slots)
		}
		return nil
	}
	if executors != l.Executors {
		return fmt.Errorf("%s gives %d speeds, there are %d executors", l.Name, l.Executors, executors)
	}
	return nil
}

// Balance sets the length of a slot of time of the multi-tenant law to that
// of one balanced BSP step over a number of rows, at the mean speed of 2.5.
func (l *Law) Balance(rows int64) {
	seconds := float64(rows) / (l.rate * 2.5 * tenantNodes * tenantTasks)
	l.slot = max(time.Microsecond, time.Duration(seconds*float64(time.Second)))
}

// Rate is how many rows per second slot number `slot` of an executor with
// `slots` slots folds at a time, and until when that holds.
func (l *Law) Rate(executor, slot, slots int, at time.Duration) (rows float64, until time.Duration) {
	const forever = time.Duration(math.MaxInt64)
	switch {
	case l.tenants && l.slot > 0:
		node := uint64((executor*slots + slot) / tenantTasks)
		k := int64(at / l.slot)
		return l.rate * (1 + 3*uniform(l.seed, node, uint64(k))), time.Duration(k+1) * l.slot
	case l.speeds != nil:
		return l.rate * l.speeds[executor%len(l.speeds)], forever
	}
	return l.rate, forever
}

// uniform is a hash of its arguments in [0, 1) (the finalizer of splitmix64).
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

// Spend is when work of some rows that begins at a time is done, under the
// law.
func (l *Law) Spend(executor, slot, slots int, at time.Duration, rows int64) time.Duration {
	left := float64(rows)
	for {
		rate, until := l.Rate(executor, slot, slots, at)
		need := time.Duration(left / rate * float64(time.Second))
		if need <= until-at {
			return at + need
		}
		left -= rate * (until - at).Seconds()
		at = until
	}
}
