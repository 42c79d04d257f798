package host

import (
	"context"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/sim"
	"github.com/volley-engine/volley/rdd"
)

// Host returns where the rows of an open pack are, for work within this process.
func (j *Job) Host(ctx context.Context, node int) (h rdd.Host, err error) {
	h = rdd.Host{Executors: j.cfg.Executors, Slots: j.cfg.Slots, Timeout: j.cfg.Job.EnsureDefaults().TaskTimeout}
	for e := range h.Executors {
		h.Names = append(h.Names, string(executorID(e)))
	}
	switch c := j.cluster.(type) {
	case *local:
		h.Pacer = func(executor, slot int) rdd.Pacer { return pacerOf(c.pacers(executor), slot) }
	case *sim.Virtual:
		h.Computed = j.computed(c)
	default:
		return h, fault.Newf(fault.Internal, "map", "the splits of a pack", "they are in other processes")
	}
	h.Dir, _, err = j.packs.Pack(ctx, node)
	return h, err
}

// Worked notes that work which is no step has gone on for a time.
func (j *Job) Worked(d time.Duration) {
	j.meter.worked += d
	if v, ok := j.cluster.(*sim.Virtual); ok {
		v.Pass(d)
	}
}

// How often work that is no step is told, in virtual time, that time passes.
const (
	leastTick   = 2 * time.Millisecond
	ticksInPass = 500
)

// computed returns what a virtual clock says of work that begins now.
func (j *Job) computed(v *sim.Virtual) *rdd.Computed {
	law, slots, began := j.cfg.Pace, j.cfg.Slots, v.Now()
	c := &rdd.Computed{
		Spend: func(executor, slot int, at time.Duration, rows int64) time.Duration {
			return law.Spend(executor, slot, slots, began+at, rows) - began
		},
		Arrive: func(from, to int, at time.Duration, bytes int64) time.Duration {
			return v.Arrival(from, to, began+at, bytes) - began
		},
		Tick: max(leastTick, law.Balanced()/ticksInPass),
	}
	if law.Handles() {
		c.Handle = law.Handling
	}
	return c
}
