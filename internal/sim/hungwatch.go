package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// An attempt of a task that has not got on for the task timeout is given up: the task is
// tried where it does not hang, and the attempt keeps its slot until it answers.

// ticks reports whether an event is that time has passed.
func ticks(ev driver.Event) bool {
	return ev.Joined == nil && ev.Lost == nil && ev.Message == nil && ev.Pack == nil && ev.Step == nil &&
		ev.Call == nil && ev.Restore == nil && ev.Signal == nil && ev.Drain == ""
}

// running returns the attempts that have not been given up.
func (t *watchedTask) running() (n int) {
	for _, o := range t.tries {
		if !o.hung {
			n++
		}
	}
	return n
}

// first returns the attempt that is waited for.
func (t *watchedTask) first() watchedTry {
	if k := slices.IndexFunc(t.tries, func(o watchedTry) bool { return !o.hung }); k >= 0 {
		return t.tries[k]
	}
	return watchedTry{}
}

// waited notes that something has moved on an executor: what has not begun there may have
// waited for its slot.
func (c *callWatch) waited(id plan.ExecutorID, now plan.Time) {
	for i := range c.tasks {
		for k := range c.tasks[i].tries {
			if o := &c.tasks[i].tries[k]; o.on == id && !o.begun {
				o.at = now
			}
		}
	}
}

// failed counts a failure of a task.
func (c *callWatch) failed(t *watchedTask, on plan.ExecutorID, kind fault.Kind) {
	t.failures++
	t.failedOn = append(t.failedOn, on)
	c.bad = c.bad || t.failures >= c.s.cfg.Schedule.MaxTaskFailures || !fault.Policy(kind).Retry
}

// giveUp gives up the attempts whose time is over. A task that hangs everywhere cannot be
// done.
func (c *callWatch) giveUp(now plan.Time) {
	for i := range c.tasks {
		t := &c.tasks[i]
		for k := range t.tries {
			o := &t.tries[k]
			if t.done || o.hung || now < o.at+c.s.cfg.TaskTimeout {
				continue
			}
			c.s.fired("given up")
			o.hung, c.moved = true, true
			c.failed(t, o.on, fault.Timeout)
			c.bad = c.bad || t.running() == 0 && !c.elsewhere(t)
		}
	}
}

// elsewhere reports whether there is an executor on which a task does not hang.
func (c *callWatch) elsewhere(t *watchedTask) bool {
	return slices.ContainsFunc(c.s.order, func(n *node) bool { return c.prepared(n.id, false) && !t.on(n.id) })
}

func (t *watchedTask) on(id plan.ExecutorID) bool {
	return slices.ContainsFunc(t.tries, func(o watchedTry) bool { return o.on == id })
}

// roomFor returns an executor with room for a task that does not hang there, and that
// has not failed with it.
func (c *callWatch) roomFor(t *watchedTask) plan.ExecutorID {
	if c.req.Pack >= 0 {
		return "" // it may wait for its home
	}
	load := c.loads()
	for _, n := range c.s.order {
		if c.prepared(n.id, false) && load[n.id] <= n.slots && !t.on(n.id) && !slices.Contains(t.failedOn, n.id) {
			return n.id
		}
	}
	return ""
}

// patient holds that an attempt without progress is given up within a second of its time,
// if only because the machine asks to be woken then.
func (c *callWatch) patient(now plan.Time) {
	for i := range c.tasks {
		for _, o := range c.tasks[i].tries {
			if late := now - o.at - c.s.cfg.TaskTimeout; !c.tasks[i].done && !o.hung && late > time.Second {
				c.s.violate("call.hung", "task %d on %s made no progress for %v, unchecked", i, o.on, now-o.at)
				return
			}
		}
	}
}

// named holds that a job which ends because a task hangs says which, and where.
func (c *callWatch) named(err error) {
	for i := range c.tasks {
		for _, o := range c.tasks[i].tries {
			if o.hung && strings.Contains(err.Error(), fmt.Sprintf("partition %d on %s", i, o.on)) {
				return
			}
		}
	}
	c.s.violate("call.hung", "the job ends because a task hangs, and does not say which: %v", err)
}
