package tables

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/rdd"
)

// still is an eager table of which nothing ever comes.
type still struct{ tableOf }

func (still) eager() bool { return true }
func (still) tick()       {}

// TestVirtualWorkersDoNotWaitForGood: where only ticks are left to happen the run ends by an error.
func TestVirtualWorkersDoNotWaitForGood(t *testing.T) {
	r := newRun(castOf(1, 1, 1), everyone, 0, 1, 1)
	r.compute(rdd.Computed{Tick: time.Millisecond})
	r.tables = []tableOf{still{}}
	r.ticksComputed()
	if err := r.awaitComputed(context.Background()); err == nil || !strings.Contains(err.Error(), "nothing is left") {
		t.Errorf("it ends by %v", err)
	}
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// handling returns the time of a run on two executors, of one slot and of two, whose work takes a millisecond a row and
// whose messages one on their way and, to be written and to be read, as long as handle says; how to send some, and what
// was noted of when things were.
func handling(handle func(bytes int64) time.Duration) (c *computed, send func(from, to, bytes int, what string),
	note func(what string), got *[]string) {
	r := newRun(castOf(3, 2, 2), everyone, 0, 1, 1)
	r.executors[0].slots = 1
	r.compute(rdd.Computed{
		Spend:  func(_, _ int, at time.Duration, rows int64) time.Duration { return at + ms(rows) },
		Arrive: func(_, _ int, at time.Duration, bytes int64) time.Duration { return at + ms(1+bytes/100) },
		Handle: handle,
	})
	c, got = r.computed, &[]string{}
	note = func(what string) { *got = append(*got, fmt.Sprintf("%s %d", what, c.now.Milliseconds())) }
	send = func(from, to, bytes int, what string) {
		c.deliver(from, to, func() int { return bytes }, func() { note(what) })
	}
	return c, send, note, got
}

// TestMessagesThatTakeNoTimeAreReadWhenTheyArrive, though a longer one is on its way.
func TestMessagesThatTakeNoTimeAreReadWhenTheyArrive(t *testing.T) {
	c, send, _, got := handling(func(int64) time.Duration { return 0 })
	c.at(0, func() { send(1, 0, 10, "small") })
	c.at(ms(1), func() { send(1, 0, 100_000, "large"); send(1, 0, 10, "next") })
	for c.next() {
	}
	if want := "[small 1 large 1002 next 1002]"; fmt.Sprint(*got) != want {
		t.Errorf("%v, want %v", *got, want)
	}
}

// TestMessagesTakeEachMomentOnce: a slot's core has no more to do than its work and its messages.
func TestMessagesTakeEachMomentOnce(t *testing.T) {
	c, send, note, got := handling(ms)
	c.spawn(func() {
		pacer := slotPacer{c, 0, 0}
		pacer.Worked(10)
		send(0, 1, 1, "out") // read of the other one goes on until 13, this is written by 14
		pacer.Worked(10)
		note("worked")
	})
	c.at(ms(2), func() { send(1, 0, 5, "in") }) // written by 7, there at 8, read by 13: the slot goes on later
	for c.next() {
	}
	if want := "[in 13 out 16 worked 26]"; fmt.Sprint(*got) != want {
		t.Errorf("%v, want %v", *got, want)
	}
}

// TestMessagesTakeTheirSlotsCores: a slot goes on later for the messages that its executor writes and reads while it
// works, or has not written yet when it begins; those of a sender are handed over in their order, and a slot that does
// not work takes them where there is one.
func TestMessagesTakeTheirSlotsCores(t *testing.T) {
	c, send, note, got := handling(ms)
	c.spawn(func() {
		pacer := slotPacer{c, 0, 0}
		pacer.Worked(10)
		note("worked")
		send(0, 1, 5, "large") // written by 15, there at 16, read by 21
		send(0, 1, 2, "small") // written by 17, there at 18, read on the other core by 20, and handed after that one
		pacer.Worked(10)       // from 17 on
		note("worked")
		pacer.Worked(1)
		note("worked")
	})
	c.at(ms(20), func() { send(1, 0, 4, "back") }) // written by 24, there at 25, read by 29: the slot goes on later
	for c.next() {
	}
	if want := "[worked 10 large 21 small 21 worked 27 back 29 worked 32]"; fmt.Sprint(*got) != want {
		t.Errorf("%v, want %v", *got, want)
	}
}
