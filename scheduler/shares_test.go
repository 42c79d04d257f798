package scheduler

import (
	"math"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// worker is a job that folds on an executor's slots, step after step.
type worker struct {
	job    string
	weight float64
	work   time.Duration // of a step, on all slots
	gap    time.Duration // between two steps
	until  plan.Time     // of the gap
	left   time.Duration
	paused bool
	had    time.Duration
}

// share lets jobs run for a while, by steps of 100 µs, and says what part of
// the slots' time each had.
func share(jobs []*worker, span time.Duration) (total time.Duration) {
	const dt = 100 * time.Microsecond
	s := NewShares(2)
	for _, w := range jobs {
		s.Open(w.job, w.weight, 0)
	}
	next := plan.Time(0)
	for now := plan.Time(0); now < span; now += dt {
		event := false
		for _, w := range jobs {
			switch {
			case w.left > 0 && !w.paused:
				w.left -= dt
				w.had += dt
				if w.left <= 0 {
					s.Ended(w.job, now)
					w.until, event = now+w.gap, true
				}
			case w.left <= 0 && now >= w.until:
				w.left, event = w.work, true
				s.Began(w.job, 4, now)
			}
		}
		if event || next > 0 && now >= next {
			turns, again := s.Look(now)
			for _, t := range turns {
				for _, w := range jobs {
					if w.job == t.Job {
						w.paused = t.Pause
					}
				}
			}
			next = 0
			if again > 0 {
				next = now + again
			}
		}
	}
	for _, w := range jobs {
		total += w.had
	}
	return total
}

func TestSlotTimeFollowsWeights(t *testing.T) {
	for _, c := range []struct {
		name     string
		a, b     worker
		want     float64 // slot time of b over that of a
		busy     float64 // least part of the time that somebody folds
		accuracy float64
	}{
		{"long steps", worker{weight: 1, work: 50e6, gap: 1e6}, worker{weight: 3, work: 50e6, gap: 1e6}, 3, 0.95, 0.1},
		{"short steps", worker{weight: 1, work: 400e3, gap: 1e6}, worker{weight: 3, work: 400e3, gap: 1e6}, 3, 0.3,
			0.15},
		{"short beside long", worker{weight: 1, work: 50e6, gap: 1e6}, worker{weight: 3, work: 2e6, gap: 500e3}, 3,
			0.75, 0.1},
		{"equal weights", worker{weight: 1, work: 5e6, gap: 1e6}, worker{weight: 1, work: 30e6, gap: 1e6}, 1, 0.95,
			0.1},
		{"one to a hundred", worker{weight: 1, work: 5e6}, worker{weight: 100, work: 5e6}, 100, 0.95, 0.3},
	} {
		c.a.job, c.b.job = "a", "b"
		const span = 20 * time.Second
		busy := share([]*worker{&c.a, &c.b}, span).Seconds() / span.Seconds()
		if got := c.b.had.Seconds() / c.a.had.Seconds(); math.Abs(got/c.want-1) > c.accuracy {
			t.Errorf("%s: %.3g, want %.3g", c.name, got, c.want)
		}
		if busy < c.busy {
			t.Errorf("%s: slots are in use %.2f of the time", c.name, busy)
		}
	}
}

// TestWhatOneJobDoesNotNeedAnotherHas: a job that mostly waits for others
// costs one that does not, nothing.
func TestWhatOneJobDoesNotNeedAnotherHas(t *testing.T) {
	a, b := &worker{job: "a", weight: 1, work: 20e6}, &worker{job: "b", weight: 3, work: 1e6, gap: 100e6}
	if busy := share([]*worker{a, b}, 10*time.Second).Seconds() / 10; busy < 0.95 {
		t.Errorf("slots are in use %.2f of the time", busy)
	}
}

// TestOneJobAloneIsNeverPaused, and one that is left alone goes on.
func TestOneJobAloneIsNeverPaused(t *testing.T) {
	s := NewShares(2)
	s.Open("a", 1, 0)
	s.Began("a", 2, 0)
	if turns, again := s.Look(0); len(turns) > 0 || again > 0 {
		t.Fatalf("%v %v", turns, again)
	}
	s.Open("b", 100, 0)
	s.Began("b", 2, 0)
	s.Look(0)
	now := plan.Time(0)
	for ; now < time.Second; now += lookEvery {
		s.Look(now)
	}
	if !s.of("a").paused {
		t.Fatal("the light one is not paused")
	}
	s.Close("b", now)
	if turns, _ := s.Look(now); len(turns) != 1 || turns[0].Pause || turns[0].Job != "a" {
		t.Errorf("%v", turns)
	}
}
