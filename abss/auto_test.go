package abss

import (
	"strings"
	"testing"
	"time"
)

// TestAutoFollowsTheNoise, within its bounds, and says why.
func TestAutoFollowsTheNoise(t *testing.T) {
	a := NewAuto(Config{Ratio: 0.5, MinRatio: 0.3})
	for _, c := range []struct {
		spread, norm float64
		turns        int
		want         float64
		says         string
	}{{1, 2, 5, 0.5, "kept"}, {2, 2, 1, 0.5, "kept"}, {0.5, 2, 1, 0.5, "kept"}, {3, 2, 1, 0.625, "raised"},
		{3, 2, 9, 1, "kept"}, {0.4, 2, 1, 0.8, "lowered"}, {0, 2, 20, 0.3, "kept"}} {
		for range c.turns {
			a.Observe(c.spread, c.norm)
		}
		if a.Ratio != c.want || !strings.HasPrefix(a.heard, c.says) {
			t.Errorf("spread %v, norm %v: ratio %v, %s; want %v, %s", c.spread, c.norm, a.Ratio, a.heard, c.want,
				c.says)
		}
	}
}

// TestARatioBelowTheLeastIsNotRaisedForIt: the least is no target.
func TestARatioBelowTheLeastIsNotRaisedForIt(t *testing.T) {
	a := Auto{Ratio: 0.2, Min: 0.3}
	if a.Observe(0, 1); !strings.HasPrefix(a.heard, "kept") || a.Ratio != 0.2 {
		t.Error(a.Ratio)
	}
}

// TestAutoChooses among whole, by leases and cut, and says which.
func TestAutoChooses(t *testing.T) {
	uneven := Coming{Executors: 3, Step: true, Fastest: 300, Slowest: 100, Takes: time.Second}
	with := func(change func(*Coming)) Coming {
		c := uneven
		change(&c)
		return c
	}
	quiet, noisy := Auto{First: 0.5, Ratio: 0.4, Heard: true}, Auto{First: 0.5, Ratio: 1, Heard: true}
	for _, c := range []struct {
		name   string
		rule   Auto
		coming Coming
		ratio  float64
		lease  bool
		says   string
	}{
		{"nothing is known", quiet, with(func(c *Coming) { c.Fastest, c.Slowest = 0, 0 }), 1, true, "not known"},
		{"short", quiet, with(func(c *Coming) { c.Takes = time.Millisecond }), 1, false, "about 1ms"},
		{"short, of speeds that are not known", quiet, with(func(c *Coming) { c.Takes, c.Fastest = 1, 0 }), 1, false,
			"about"},
		{"alone", quiet, with(func(c *Coming) { c.Executors = 1 }), 1, false, "one executor"},
		{"even", quiet, with(func(c *Coming) { c.Slowest = 290 }), 1, false, "1.03 times"},
		{"even samples", quiet, with(func(c *Coming) { c.Slowest, c.Sample = 290, true }), 1, false, "1.03 times"},
		{"nearly even samples", quiet, with(func(c *Coming) { c.Slowest, c.Sample = 250, true }), 1, true, "nearly"},
		{"nearly even evaluations", quiet, with(func(c *Coming) { c.Slowest, c.Step = 250, false }), 1, true,
			"decides"},
		{"one that may stand still", quiet, with(func(c *Coming) { c.Slowest = 0 }), 0.4, false, "over 100 times"},
		{"an evaluation", quiet, with(func(c *Coming) { c.Step = false }), 1, true, "decides"},
		{"a sample", Auto{First: 0.5}, with(func(c *Coming) { c.Sample = true }), 0.5, false, "sample"},
		{"a sample at R_s = 1", Auto{First: 1}, with(func(c *Coming) { c.Sample = true }), 1, true, "left out"},
		{"a quiet gradient", quiet, uneven, 0.4, false, "cut"},
		{"a noisy gradient", noisy, uneven, 1, true, "whole"},
		{"the program's ratio", noisy, with(func(c *Coming) { c.Ratio = 0.7 }), 0.7, false, "program says"},
		{"the program's whole", quiet, with(func(c *Coming) { c.Ratio, c.Sample = 1, true }), 1, true, "left out"},
		{"no noise is known", Auto{First: 0.5, Ratio: 0.5}, uneven, 1, true, "left out"},
	} {
		got := c.rule.Choose(c.coming)
		if got.Ratio != c.ratio || got.Lease != c.lease || !strings.Contains(got.Why, c.says) {
			t.Errorf("%s: %+v, want %v, %v, %q", c.name, got, c.ratio, c.lease, c.says)
		}
	}
}

// TestPolicies: each is known by its name, and two are never cut.
func TestPolicies(t *testing.T) {
	for _, p := range []Policy{BSP, ABSP, Deadline, Steal, Automatic} {
		if got, err := ParsePolicy(p.String()); got != p || err != nil {
			t.Errorf("%v: %v, %v", p, got, err)
		}
		if want := p == BSP || p == Steal; p.Whole() != want {
			t.Errorf("%v is whole: %v", p, p.Whole())
		}
	}
	if _, err := ParsePolicy("none"); err == nil ||
		err.Error() != `"none" is not one of bsp, absp, deadline, steal, auto` {
		t.Error(err)
	}
}

// TestSamplesAreCuttable where what each split must have is less than the ratio.
func TestSamplesAreCuttable(t *testing.T) {
	for _, c := range []struct {
		rows  []int64
		share float64
		cfg   Config
		want  bool
	}{
		{[]int64{1000, 1000}, 0.5, Config{}, true},
		{[]int64{1000, 1000}, 0.1, Config{}, false}, // 64 of 100 rows are more than half
		{[]int64{1000, 100}, 0.5, Config{}, true},
		{[]int64{1000, 1000}, 0.1, Config{Ratio: 0.7}, true},
		{[]int64{1000, 1000}, 0.5, Config{MinShare: 0.6}, false},
		{[]int64{100}, 0.1, Config{MinRows: 1, MinShare: -1}, true},
		{[]int64{100}, 0.1, Config{MinRows: 5, MinShare: -1}, false},
	} {
		if got := c.cfg.Cuttable(c.rows, c.share); got != c.want {
			t.Errorf("%v of %v under %+v: %v", c.share, c.rows, c.cfg, got)
		}
	}
}
