// Package pace owns the laws of emulated clusters: how many rows per second each slot of each executor folds as a
// function of time, and what their network does (WORKLOADS.md gives the profiles of the papers). pace.go reads laws and
// adds them up, speeds.go has those of slots, network.go those of links, trace.go speeds that were measured. The same
// law drives the virtual clock and, by sleeping, the real one.
//
// It must not measure or wait: a law is a function of its seed and the time.
package pace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Law is the speed of every slot over time, and that of the network: the product of the laws that it is made of.
type Law struct {
	Name      string
	Executors int // that the law is for; 0 is any number
	Slots     int // slots an executor that the law is for; 0 is any number
	rate      float64
	speeds    []speeds
	tasks     int          // at once that the law is for, where it is for such a number; 0 is any
	pass      atomic.Int64 // nanoseconds of a balanced pass; 0 until Balance
	of        atomic.Int64 // executors, from then on
	paces     bool         // it says how fast slots are
	rated     bool         // it says how many rows speed 1 is
	network   network
}

// Laws lists what Parse reads.
const Laws = "static:a,b,… rate:N physical multi-tenant[:SEED] one-straggler uneven delayed:LENGTH " +
	"disrupter:LENGTH[:SEED] slow-worker:PERCENT[:SEED] disrupted:PERCENT[:LENGTH[:SEED]] power-law:ALPHA[:SEED] " +
	"trace:FILE link:RATE[,RATE…] latency:TIME driver-link:RATE handling:RATE, several joined by +; a LENGTH is a " +
	"time (2s) or a multiple of a balanced pass (1.5p), a RATE bytes per second (4MB/s)"

// Parse reads a law, or several joined by +: of slots' speeds their product is taken. rate is rows per second of speed
// 1 on a slot. An empty text is no law.
func Parse(text string, rate float64) (*Law, error) {
	if text == "" {
		return nil, nil
	}
	l := &Law{Name: text, rate: rate}
	for _, part := range strings.Split(text, "+") {
		name, arg, _ := strings.Cut(part, ":")
		if err := l.read(name, arg); err != nil {
			return nil, fmt.Errorf("%w; want %s", err, Laws)
		}
	}
	return l, nil
}

// read takes one law up.
func (l *Law) read(name, arg string) (err error) {
	var s speeds
	switch name {
	case "link", "latency", "driver-link", "handling":
		return l.network.read(name, arg)
	case "rate":
		if l.rated {
			return fmt.Errorf("rate is given twice")
		}
		l.paces, l.rated = true, true
		l.rate, err = positive(arg)
		return err
	case "static":
		s, err = parseStatic(arg)
	case "trace":
		s, err = readTrace(arg)
	default:
		s, err = parseSpeeds(name, arg)
	}
	if err != nil {
		return err
	}
	l.paces = true
	l.speeds = append(l.speeds, s)
	return l.shape(s)
}

// shape makes the law one for the cluster that a part of it is for.
func (l *Law) shape(s speeds) error {
	executors, slots := s.shape()
	if executors == 0 {
		return nil
	}
	if l.Executors > 0 && l.Executors != executors {
		return fmt.Errorf("%q: one of its laws is for %d executors, another for %d", l.Name, l.Executors, executors)
	}
	if l.Executors = executors; slots > 0 {
		l.Slots, l.tasks = slots, executors*slots
	}
	return nil
}

// Bounds of numbers: what lies beyond is no cluster, and would overflow times.
const (
	least = 1e-6
	most  = 1e12
)

func positive(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a positive number", s)
	}
	if v < least || v > most {
		return 0, fmt.Errorf("%q is not from %g to %g", s, least, most)
	}
	return v, nil
}

// Text returns the law as Parse reads it, with how many rows speed 1 is.
func (l *Law) Text() string {
	if !l.paces || l.rated {
		return l.Name
	}
	return l.Name + "+rate:" + strconv.FormatFloat(l.rate, 'g', -1, 64)
}

// Paces reports whether the law says how fast slots are.
func (l *Law) Paces() bool { return l != nil && l.paces }

// Fits reports whether the law is for a cluster of this shape, by an error that says why not.
func (l *Law) Fits(executors, slots int) error {
	switch {
	case l == nil || l.Executors == 0 || executors == l.Executors && (l.tasks == 0 || executors*slots == l.tasks):
		return nil
	case l.tasks == 0:
		return fmt.Errorf("%s gives %d speeds, there are %d executors", l.Name, l.Executors, executors)
	case executors*slots == l.tasks && len(l.speeds) == 1:
		return nil
	}
	return fmt.Errorf("%s is for %d tasks at once (%d executors of %d slots), not %d executors of %d",
		l.Name, l.tasks, l.Executors, l.Slots, executors, slots)
}

// Alone returns an error where the law is none that a single executor follows, which knows neither the others nor how
// long a pass is.
func (l *Law) Alone() error {
	switch {
	case l == nil:
		return nil
	case l.Computed():
		return fmt.Errorf("%s has a part that only computed time has", l.Name)
	case l.Executors > 1:
		return fmt.Errorf("%s gives %d speeds, this is one executor", l.Name, l.Executors)
	case len(l.network.links) > 1:
		return fmt.Errorf("%s gives %d links, this is one executor", l.Name, len(l.network.links))
	}
	for _, s := range l.speeds {
		if needsPass(s) {
			return fmt.Errorf("%s is of all executors, or measured in passes, of which one knows nothing", l.Name)
		}
	}
	return nil
}

// Balance sets the length of a balanced pass, which the laws of the papers are measured in, and returns it: of as many
// rows as the largest pack has, at the mean speed of all slots.
func (l *Law) Balance(rows int64, executors, slots int) time.Duration {
	mean := 0.0
	for e := range executors {
		all := 1.0
		for _, s := range l.speeds {
			all *= s.mean(e)
		}
		mean += float64(all * float64(slots))
	}
	seconds := float64(rows) / (l.rate * mean)
	pass := max(int64(time.Microsecond), int64(seconds*float64(time.Second)))
	l.of.Store(int64(executors))
	l.pass.Store(max(pass, l.pass.Load()))
	return time.Duration(l.pass.Load())
}

// Balanced returns the length of a balanced pass; 0 until Balance.
func (l *Law) Balanced() time.Duration { return time.Duration(l.pass.Load()) }

// forever is later than any time.
const forever = time.Duration(math.MaxInt64)

// Rate returns how many rows per second slot number `slot` of an executor with `slots` slots folds at a time, and until
// when that holds.
func (l *Law) Rate(executor, slot, slots int, at time.Duration) (rows float64, until time.Duration) {
	pass := time.Duration(l.pass.Load())
	w := who{executor, slot, slots, int(l.of.Load())}
	rows, until = l.rate, forever
	for _, s := range l.speeds {
		factor, next := s.at(w, at, pass)
		rows, until = float64(rows*factor), min(until, next)
	}
	return rows, until
}

// Spend returns when work of some rows that begins at a time is done, under the law.
func (l *Law) Spend(executor, slot, slots int, at time.Duration, rows int64) time.Duration {
	left := float64(rows)
	for {
		rate, until := l.Rate(executor, slot, slots, at)
		if need := left / rate * float64(time.Second); need <= float64(until-at) {
			return at + time.Duration(need)
		}
		if until == forever {
			return forever // longer than any run
		}
		left -= rate * (until - at).Seconds()
		at = until
	}
}
