package reassign

import (
	"testing"
	"time"
)

// TestGroups: each worker has as many helpers as there can be, one of them on its machine, the others on different
// ones, and none is its own.
func TestGroups(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 70; n++ {
		for _, machines := range []int{1, 2, 3, 8, n} {
			machine := make([]int, n)
			for w := range machine {
				machine[w] = w % machines
			}
			for w, all := range Groups(machine, 4) {
				seen, here, on := map[Worker]bool{Worker(w): true}, 0, map[int]bool{}
				for _, h := range all {
					if seen[h] {
						t.Fatalf("%d workers on %d machines: %d has %v", n, machines, w, all)
					}
					seen[h], on[machine[h]] = true, true
					if machine[h] == machine[w] {
						here++
					}
				}
				if len(all) != min(4, n-1) {
					t.Errorf("%d workers on %d machines: %d has %v", n, machines, w, all)
				}
				if machines == 8 && n == 64 && (here != 1 || len(on) != 4) {
					t.Errorf("%d has %v: %d on its machine, %d machines", w, all, here, len(on))
				}
			}
		}
	}
}

// TestAStragglerIsHelped follows figure 3: one that is behind offers a little, then twice as much, and what is not
// begun comes back.
func TestAStragglerIsHelped(t *testing.T) {
	t.Parallel()
	o := Defaults()
	o.Again = time.Hour
	slow, fast := New(0, 1, o, []Worker{1}, []Worker{1}), New(1, 1, o, []Worker{0}, []Worker{0})
	second := time.Second
	for _, m := range []*Machine{slow, fast} {
		m.Begin(0, 1000, 0)
		m.Check(1000, 10*second)
		m.Begin(1, 1000, 10*second)
	}
	told := fast.Check(750, 17*second)
	if len(told) != 1 || told[0].Send == nil {
		t.Fatalf("%+v at three quarters", told)
	}
	slow.Check(300, 17*second)
	first := offeredIn(t, slow.Step(told[0].Send.Message, 301, 17*second))
	if first.Range != (Range{983, 1000}) { // 2.5 % of what is left
		t.Errorf("it offers %+v", first)
	}
	if out := fast.Step(DoThis{first}, 800, 18*second); len(out) != 0 {
		t.Errorf("%+v before its own work is done", out)
	}
	out := fast.Check(1000, 20*second)
	if len(out) != 2 || out[0].Send == nil || out[1].Help == nil || *out[1].Help != first {
		t.Fatalf("%+v when its own work is done", out)
	}
	second2 := offeredIn(t, slow.Step(out[0].Send.Message, 400, 20*second))
	if second2.Range != (Range{949, 983}) {
		t.Errorf("the follow-up is %+v", second2)
	}
	if out := slow.Check(800, 35*second); len(out) != 1 || out[0].Send.Message.(Progress).From != 0 {
		t.Errorf("%+v at three quarters", out)
	}
	out = slow.Check(949, 40*second)
	if len(out) != 1 || out[0].Send == nil || out[0].Send.Message != (Cancel{second2}) {
		t.Fatalf("%+v when its own work is done", out)
	}
	if out := fast.Step(Cancel{second2}, 1000, 40*second); out[0].Send.Message != (Cancelled{1, second2}) {
		t.Errorf("%+v for what was not begun", out)
	}
	out = slow.Step(Cancelled{1, second2}, 949, 41*second)
	if len(out) != 1 || out[0].Own == nil || *out[0].Own != second2 {
		t.Errorf("%+v for what comes back", out)
	}
	if out := slow.Redone(second2, 42*second); len(out) != 0 {
		t.Errorf("%+v while its helper is at work", out)
	}
	if out := slow.Step(Completed{1, first}, 949, 43*second); len(out) != 3 || out[1].Take == nil || !out[2].Finish {
		t.Errorf("%+v when all is done", out)
	}
}

// offeredIn returns the only offer among commands.
func offeredIn(t *testing.T, all []Command) Task {
	t.Helper()
	if len(all) != 1 || all[0].Send == nil {
		t.Fatalf("%+v is no offer", all)
	}
	d, ok := all[0].Send.Message.(DoThis)
	if !ok {
		t.Fatalf("%+v is no offer", all[0].Send)
	}
	return d.Task
}

// TestWhatCannotBe: each parameter is named.
func TestWhatCannotBe(t *testing.T) {
	t.Parallel()
	if err := Defaults().Check(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Options){func(o *Options) { o.Group = -1 }, func(o *Options) { o.Progress = 0 },
		func(o *Options) { o.Trigger = 2 }, func(o *Options) { o.First = -0.1 }, func(o *Options) { o.Follow = 0.5 },
		func(o *Options) { o.Checks = 0 }, func(o *Options) { o.Tail = 0 }} {
		o := Defaults()
		if change(&o); o.Check() == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
