package abss

import (
	"strings"
	"testing"
	"time"
)

// shortPasses are passes whose length depends on whether they are leased.
type shortPasses struct {
	whole, leased func(k int) time.Duration
}

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// run makes passes, and returns how many of the last half were leased, and how long all took.
func (s shortPasses) run(a *Auto, n int, slowest float64) (leased int, all time.Duration) {
	takes := time.Duration(0)
	for k := range n {
		c := a.Choose(Coming{Executors: 4, Step: true, Rows: 200, Fastest: 100, Slowest: slowest, Takes: takes})
		if takes = s.whole(k); c.Lease {
			takes = s.leased(k)
			if k >= n/2 {
				leased++
			}
		}
		a.Took(takes, false, c.Lease)
		all += takes
	}
	return leased, all
}

// TestShortPassesAreMadeTheFasterWay, whatever executors' speeds would say.
func TestShortPassesAreMadeTheFasterWay(t *testing.T) {
	const n = 400
	for _, c := range []struct {
		name    string
		passes  shortPasses
		slowest float64
		leased  bool
	}{
		{"leases cost more", shortPasses{always(5 * time.Millisecond), always(5500 * time.Microsecond)}, 50, false},
		{"even, and leases gain", shortPasses{always(6 * time.Millisecond), always(5 * time.Millisecond)}, 100, true},
		{"even", shortPasses{always(5 * time.Millisecond), always(5500 * time.Microsecond)}, 100, false},
		{"uneven", shortPasses{always(8 * time.Millisecond), always(5 * time.Millisecond)}, 50, true},
	} {
		leased, all := c.passes.run(NewAuto(Config{Ratio: 0.5}), n, c.slowest)
		if c.leased != (leased > n/4) {
			t.Errorf("%s: %d of the last %d passes are leased", c.name, leased, n/2)
		}
		best := n * min(c.passes.whole(0), c.passes.leased(0))
		if float64(all) > 1.02*float64(best) {
			t.Errorf("%s: %v, by the better way alone %v", c.name, all, best)
		}
	}
}

// TestAnExecutorThatStandsStillNowAndThen has passes leased that take longer by it.
func TestAnExecutorThatStandsStillNowAndThen(t *testing.T) {
	s := shortPasses{func(k int) time.Duration {
		if k == 100 {
			return 800 * time.Millisecond
		}
		return 5 * time.Millisecond
	}, always(5500 * time.Microsecond)}
	a := NewAuto(Config{Ratio: 0.5})
	if leased, _ := s.run(a, 400, 100); leased < 180 {
		t.Errorf("%d of the last 200 passes are leased", leased)
	}
}

// TestLongAndTinyPassesAreNotTried: what leases gain, or cost, follows from the speeds.
func TestLongAndTinyPassesAreNotTried(t *testing.T) {
	for _, takes := range []time.Duration{time.Millisecond, 60 * time.Millisecond} {
		s := shortPasses{always(takes), always(takes * 2)}
		if leased, _ := s.run(NewAuto(Config{Ratio: 0.5}), 400, 100); leased > 0 {
			t.Errorf("%v: %d passes are leased", takes, leased)
		}
	}
}

// TestPassesOfOtherNodesAreOthers: that those of one take longer by leases says nothing of another's.
func TestPassesOfOtherNodesAreOthers(t *testing.T) {
	a, leased := NewAuto(Config{Ratio: 0.5}), 0
	for k := range 400 {
		c := Coming{Executors: 4, Step: true, Node: k % 2, Rows: 200, Fastest: 100, Slowest: 50,
			Takes: 5 * time.Millisecond}
		made := a.Choose(c)
		took := 5 * time.Millisecond
		if made.Lease == (c.Node == 0) {
			took = 8 * time.Millisecond
		}
		if a.Took(took, false, made.Lease); k >= 200 && made.Lease == (c.Node == 1) {
			leased++
		}
	}
	if leased < 180 {
		t.Errorf("%d of 200 passes are made the faster way", leased)
	}
}

// TestMovesForgetHowLongPassesTook, but not what was better.
func TestMovesForgetHowLongPassesTook(t *testing.T) {
	a := NewAuto(Config{Ratio: 0.5})
	slow := shortPasses{always(8 * time.Millisecond), always(9 * time.Millisecond)}
	slow.run(a, 100, 50)
	a.Moved()
	c := a.Choose(Coming{Executors: 4, Step: true, Rows: 200, Fastest: 100, Slowest: 50, Takes: 8 * time.Millisecond})
	if c.Lease || !strings.Contains(c.Why, "before splits moved") {
		t.Errorf("%+v", c)
	}
	fast := shortPasses{always(5 * time.Millisecond), always(4 * time.Millisecond)}
	if leased, _ := fast.run(a, 100, 50); leased < 45 {
		t.Errorf("%d of the last 50 passes are leased", leased)
	}
}

// TestExecutorsThatHaveBeenUnevenAreNotTakenToBeEven: what has stood still once may do so again.
func TestExecutorsThatHaveBeenUnevenAreNotTakenToBeEven(t *testing.T) {
	a := NewAuto(Config{Ratio: 0.5})
	even := Coming{Executors: 4, Fastest: 100, Slowest: 99, Takes: time.Second}
	if c := a.Choose(even); c.Lease {
		t.Errorf("%+v", c)
	}
	uneven := even
	uneven.Slowest = 10
	a.Choose(uneven)
	if c := a.Choose(even); !c.Lease || !strings.Contains(c.Why, "have not always been") {
		t.Errorf("%+v", c)
	}
}
