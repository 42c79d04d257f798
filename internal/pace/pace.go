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
	link      float64 // bytes per second into an executor; 0 is no limit
	linkOnly  bool    // slots run at their own speed
}

// Physical and multi-tenant clusters of the A-BSP paper (section 6.1).
const (
	physicalExecutors = 12
	physicalSlow      = 3
	physicalFast      = 2.2
	tenantNodes       = 36
	tenantTasks       = 2
)

// Laws lists what Parse reads.
const Laws = "static:a,b,… rate:N physical multi-tenant[:SEED] one-straggler link:BYTES/s; LAW+link:BYTES/s has both"

// Parse reads a law: static:a,b,… (relative speeds by executor), rate:N (rows
// per second of every slot), physical, multi-tenant[:SEED], one-straggler,
// link:4MB/s (what an executor can be sent in a second), or a law of speeds and one of
// links, joined by +. rate is rows per second of speed 1 on a slot. An empty text
// is no law.
func Parse(text string, rate float64) (*Law, error) {
	if text == "" {
		return nil, nil
	}
	l := &Law{Name: text, rate: rate}
	for i, part := range strings.Split(text, "+") {
		name, arg, _ := strings.Cut(part, ":")
		if i > 0 && (i > 1 || name != "link" || l.linkOnly) {
			return nil, fmt.Errorf("%q: one law of speeds can be joined with one of links, no more", text)
		}
		if err := l.read(name, arg); err != nil {
			return nil, fmt.Errorf("%w; want %s", err, Laws)
		}
		l.linkOnly = i == 0 && name == "link"
	}
	if l.speeds != nil {
		l.Executors = len(l.speeds)
	}
	return l, nil
}

// read takes one law up.
func (l *Law) read(name, arg string) (err error) {
	switch name {
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
	case "link":
		l.link, err = parseLink(arg)
	default:
		err = fmt.Errorf("unknown profile %q", name)
	}
	return err
}

// units of parseLink, in bytes.
var units = []struct {
	name  string
	bytes float64
}{{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}

// parseLink reads bytes per second, as 4MB/s.
func parseLink(arg string) (float64, error) {
	text, ok := strings.CutSuffix(arg, "/s")
	for _, u := range units {
		if num, found := strings.CutSuffix(text, u.name); ok && found {
			v, err := positive(num)
			return v * u.bytes, err
		}
	}
	return 0, fmt.Errorf("%q is no speed of a link, as 4MB/s", arg)
}

// Paces reports whether the law says how fast slots are.
func (l *Law) Paces() bool { return l != nil && !l.linkOnly }

// Send returns when bytes that begin to be sent to an executor at a time have
// arrived; at a speed in bytes per second, or at the law's where that is slower.
func (l *Law) Send(at time.Duration, bytes int64, speed float64) time.Duration {
	if l != nil && l.link > 0 && (speed == 0 || l.link < speed) {
		speed = l.link
	}
	if speed == 0 {
		return at
	}
	return at + time.Duration(float64(bytes)/speed*float64(time.Second))
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

// Fits reports whether the law is for a cluster of this shape.
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

// Rate returns how many rows per second slot number `slot` of an executor with
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

// Spend returns when work of some rows that begins at a time is done, under the
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
