package chaos

import (
	"strings"
	"testing"
	"time"
)

// TestHistories tells histories that a cluster of one machine can have, and such that it cannot: each of these is a way
// in which several drivers may fail.
func TestHistories(t *testing.T) {
	submit := func(tag string, begun, ended int64) Call {
		return Call{Kind: Submit, Tag: tag, Begun: begun, Ended: ended}
	}
	cancel := func(tag string, begun, ended int64) Call {
		return Call{Kind: Cancel, Tag: tag, Begun: begun, Ended: ended}
	}
	list := func(begun, ended int64, jobs ...string) Call {
		c := Call{Kind: List, Begun: begun, Ended: ended, Jobs: map[string]string{}}
		for _, j := range jobs {
			tag, state, _ := strings.Cut(j, ":")
			c.Jobs[tag] = state
		}
		return c
	}
	unknown := func(c Call) Call { c.Failed = "it was cut off"; return c }
	for name, c := range map[string]struct {
		calls []Call
		why   string
	}{
		"one after the other": {calls: []Call{submit("a", 1, 2), list(3, 4, "a:waiting"), cancel("a", 5, 6),
			list(7, 8, "a:cancelled")}},
		"at the same time": {calls: []Call{submit("a", 1, 9), list(2, 3), list(4, 5, "a:running")}},
		"it may have been": {calls: []Call{unknown(submit("a", 1, 2)), list(3, 4), list(5, 6, "a:waiting")}},
		"or was cancelled since that was not known": {calls: []Call{unknown(submit("a", 1, 2)), list(3, 4),
			list(5, 6, "a:cancelled")}},
		"or never": {calls: []Call{unknown(submit("a", 1, 2)), list(3, 4), list(5, 6)}},
		"or is seen to have been": {calls: []Call{unknown(submit("a", 1, 2)), list(3, 4), cancel("a", 5, 6),
			list(7, 8, "a:cancelled")}},
		"cancelled some time": {calls: []Call{submit("a", 1, 2), unknown(cancel("a", 3, 4)), list(5, 6, "a:waiting"),
			list(7, 8, "a:cancelled")}},
		"an acknowledged job is lost": {[]Call{submit("a", 1, 2), list(3, 4)}, "job a do not fit"},
		"an acknowledged cancellation is lost": {[]Call{submit("a", 1, 2),
			cancel("a", 3, 4),
			list(5, 6, "a:running")}, "job a do not fit"},
		"a job is gone again": {[]Call{unknown(submit("a", 1, 2)), list(3, 4, "a:waiting"), list(5, 6)},
			"job a do not fit"},
		"a driver that leads no more answers": {[]Call{submit("a", 1, 2), submit("b", 3, 4), list(5, 6, "a:waiting")},
			"job b do not fit"},
		"a cancellation is gone again": {[]Call{submit("a", 1, 2), unknown(cancel("a", 3, 4)),
			list(5, 6, "a:cancelled"), list(7, 8, "a:running")}, "job a do not fit"},
		"a cancellation before it is asked for": {[]Call{submit("a", 1, 2), list(3, 4, "a:cancelled"),
			unknown(cancel("a", 5, 6))}, "job a do not fit"},
		"a job is there twice": {[]Call{{Kind: List, Twice: []string{"a"}}}, "twice"},
		"a job ends":           {[]Call{submit("a", 1, 2), list(3, 4, "a:failed")}, "is failed"},
		"lists of an order that none has": {[]Call{unknown(submit("a", 1, 2)), unknown(submit("b", 1, 2)),
			list(3, 4, "a:waiting"), list(5, 6, "b:waiting")}, "job a do not fit"},
	} {
		how, err := Check(c.calls, time.Minute)
		if c.why == "" && (err != nil || how != "all jobs together") {
			t.Errorf("%s: %q, %v", name, how, err)
		}
		if c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
}

// TestWhatNoJobShowsAlone: two lists that see two jobs in different orders do not fit, though those of each job do.
func TestWhatNoJobShowsAlone(t *testing.T) {
	calls := []Call{
		{Client: 1, Kind: Submit, Tag: "a", Begun: 1, Ended: 100},
		{Client: 2, Kind: Submit, Tag: "b", Begun: 1, Ended: 100},
		{Client: 3, Kind: List, Begun: 10, Ended: 20, Jobs: map[string]string{"a": "waiting"}},
		{Client: 4, Kind: List, Begun: 10, Ended: 20, Jobs: map[string]string{"b": "waiting"}},
	}
	if how, err := Check(calls, time.Minute); err == nil {
		t.Errorf("taken: %s", how)
	}
}

// TestPlansAreUndone: whatever lasts has an end, hosts have one thing done to them at a time, and a seed is a plan.
func TestPlansAreUndone(t *testing.T) {
	drivers, executors := []string{"d1", "d2", "d3"}, []string{"e1", "e2"}
	met := map[What]int{}
	for seed := range uint64(200) {
		plan := Plan(seed, time.Minute, drivers, executors)
		if again := Plan(seed, time.Minute, drivers, executors); len(again) != len(plan) {
			t.Fatalf("seed %d has two plans", seed)
		}
		on := map[string]What{}
		for _, f := range plan {
			met[f.What]++
			for _, h := range f.On {
				if end := undone[on[h]]; on[h] != "" && end != f.What {
					t.Errorf("seed %d: %v while %s", seed, f, on[h])
				}
				delete(on, h)
				if undone[f.What] != "" {
					on[h] = f.What
				}
			}
		}
		if len(on) > 0 {
			t.Errorf("seed %d: not undone: %v", seed, on)
		}
	}
	for _, w := range []What{Kill, Stop, CutOff, CutOneWay, Slow, Lossy, FillDisk, KillRunner, KillJob} {
		if met[w] == 0 {
			t.Errorf("no plan has %s", w)
		}
	}
}
