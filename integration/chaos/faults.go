package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Fault is something that is done to a cluster, or undone.
type Fault struct {
	At   time.Duration // from the beginning
	What What
	On   []string // hosts
}

// String returns a fault in words.
func (f Fault) String() string {
	return fmt.Sprintf("%v: %s %v", f.At.Round(time.Millisecond), f.What, f.On)
}

// What is done.
type What string

// What may be done. What lasts is undone by what begins with Un or Re.
const (
	Kill       What = "kill -9 of"        // a daemon
	Restart    What = "start again"       // a daemon that was killed
	Stop       What = "SIGSTOP of"        // a daemon
	Resume     What = "SIGCONT of"        //
	CutOff     What = "cut off"           // hosts from all others
	CutOneWay  What = "cut one way"       // the first host's packets to the second
	Slow       What = "late by 200 ms"    // a host's packets, and those to it
	Lossy      What = "one in 20 lost of" // a host's packets, and of those to it
	Uncut      What = "connected again"   // hosts
	FillDisk   What = "disk full of"      // a driver
	FreeDisk   What = "disk free of"      //
	KillRunner What = "kill a runner on"  // a host
	KillJob    What = "kill a job's process on"
)

// undone says what ends a fault that lasts.
var undone = map[What]What{Kill: Restart, Stop: Resume, CutOff: Uncut, CutOneWay: Uncut, Slow: Uncut, Lossy: Uncut,
	FillDisk: FreeDisk}

// Plan returns what is done within a time to drivers and executors, as a seed has it, in the order of times. All is
// undone in the end. A job may lose its process as often as it is started again, so few are killed.
func Plan(seed uint64, within time.Duration, drivers, executors []string) (out []Fault) {
	rng := rand.New(rand.NewPCG(seed, 20))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rng.Int64N(int64(most-least)))
	}
	any := func(of []string) string { return of[rng.IntN(len(of))] }
	all := slices.Concat(drivers, executors)
	busy := map[string]time.Duration{} // until when something is done to a host that is to be undone
	processes := 0
	for at := between(0, 2*time.Second); at < within; at += between(500*time.Millisecond, 6*time.Second) {
		var f Fault
		switch rng.IntN(14) {
		case 0, 1:
			f = Fault{at, Kill, []string{any(drivers)}}
		case 2:
			f = Fault{at, Kill, []string{any(executors)}}
		case 3:
			f = Fault{at, Stop, []string{any(all)}}
		case 4, 5:
			f = Fault{at, CutOff, []string{any(drivers)}}
		case 6:
			f = Fault{at, CutOff, []string{any(all), any(all)}}
		case 7:
			f = Fault{at, CutOneWay, []string{any(drivers), any(all)}}
		case 8:
			f = Fault{at, Slow, []string{any(all)}}
		case 9:
			f = Fault{at, Lossy, []string{any(all)}}
		case 10:
			f = Fault{at, FillDisk, []string{any(drivers)}}
		case 11:
			f = Fault{at, KillRunner, []string{any(executors)}}
		case 12:
			if processes++; processes > 2 {
				continue
			}
			f = Fault{at, KillJob, slices.Clone(drivers)} // on whichever it is
		default:
			f = Fault{at, Kill, slices.Clone(drivers)}
		}
		if f.On = slices.Compact(f.On); slices.ContainsFunc(f.On, func(h string) bool { return busy[h] > at }) {
			continue
		}
		out = append(out, f)
		if end, lasts := undone[f.What]; lasts {
			until := at + between(200*time.Millisecond, 7*time.Second)
			for _, h := range f.On {
				busy[h] = until
			}
			out = append(out, Fault{until, end, f.On})
		}
	}
	slices.SortStableFunc(out, func(a, b Fault) int { return int(a.At - b.At) })
	return out
}

// Carry carries a plan out: it calls do for each fault when it is time, and returns when within is over.
func Carry(plan []Fault, within time.Duration, do func(Fault)) {
	began := time.Now()
	for _, f := range plan {
		<-time.After(time.Until(began.Add(f.At)))
		do(f)
	}
	<-time.After(time.Until(began.Add(within)))
}

// Clocks returns how the clocks of hosts are set apart, as a seed has it: of one driver and one executor, within what
// docs/operations.md allows.
func Clocks(seed uint64, drivers, executors []string) map[string]Clock {
	rng := rand.New(rand.NewPCG(seed, 21))
	clock := func() Clock {
		return Clock{Ahead: time.Duration(rng.Int64N(int64(280*time.Second))) - 140*time.Second,
			Gains: float64(rng.IntN(9)-4) / 100}
	}
	return map[string]Clock{drivers[rng.IntN(len(drivers))]: clock(), executors[rng.IntN(len(executors))]: clock()}
}
