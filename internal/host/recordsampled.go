package host

import (
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/rdd"
)

// sampled decides which of the lines that come again and again are in the log: at first each second, fourth, eighth and
// so on, as a run may be short, then about one a second, and the last.
type sampled struct {
	seen, due int           // lines, and at which number the next is written
	at        time.Duration // or when
	left      func() any    // the last, where the log does not have it
}

// How fast such lines may make a log grow.
const (
	sampledEvery  = time.Second
	sampledSecond = 64 << 10 // bytes
)

// tell writes a line, where it is due at a time on the job's clock; bytes returns about how long it is.
func (s *sampled) tell(log *driver.EventLog, now time.Duration, bytes func() int, line func() any) {
	s.seen++
	s.left = line
	if s.seen < s.due && now < s.at {
		return
	}
	s.last(log)
	s.due = 2 * s.seen
	s.at = now + max(sampledEvery, time.Duration(bytes())*time.Second/sampledSecond)
}

// last writes the last line, where the log does not have it.
func (s *sampled) last(log *driver.EventLog) {
	if s.left != nil {
		log.Write(s.left())
		s.left = nil
	}
}

// did is what the slots of executors did in a step, or a pass of the method.
type did struct {
	by    []driver.ExecutorSlots
	ended time.Duration // on the job's clock
}

// didIn returns what was done in a step; nil where that is no part of the method.
func didIn(s *driver.StepReport) *did {
	if !s.Train && !s.Work {
		return nil
	}
	return &did{by: s.Slots, ended: s.Began + s.Took}
}

// How long lines are, about.
const (
	spanBytes   = 40
	slotsBytes  = 100 // of each executor
	workerBytes = 60
	tableBytes  = 300
)

// tell writes what was done in the step of a line, where it is due.
func (r *record) tell(line int, d *did) {
	if d == nil || r.log == nil {
		return
	}
	r.slots.tell(r.log, d.ended, d.bytes, func() any { return driver.SlotsLine(line, d.by) })
}

// bytes returns about how long the line is.
func (d *did) bytes() (n int) {
	for _, e := range d.by {
		n += slotsBytes + spanBytes*len(e.Spans)
	}
	return n
}

// turn makes ready for the line of an iteration: before the first one of a loop comes what the log lacks of the loop
// before.
func (r *record) turn(c rdd.Commit) {
	if c.Loop != r.loop && r.log != nil { // whose clock begins again
		r.tables.last(r.log)
		r.loop, r.tables = c.Loop, sampled{}
	}
}

// used writes what workers on parameter tables had done at the end of the iteration of a line, where it is due.
func (r *record) used(line int, c rdd.Commit) {
	if c.Used == nil || r.log == nil {
		return
	}
	r.tables.tell(r.log, c.Took, func() int { return workerBytes*len(c.Used.Workers) + tableBytes*len(c.Used.Tables) },
		func() any { return driver.TablesLine(line, c.Used) })
}
