package abss

import "github.com/volley-engine/volley/internal/plan"

// EventKind is what happened.
type EventKind uint8

// The events of a step.
const (
	Began    EventKind = iota // the tasks have been assigned
	Progress                  // a task has processed Count rows so far
	Arrived                   // the result of a task, Count rows, is here
	Lost                      // the task's executor is gone
	Assigned                  // a lost task has been assigned to another executor
	Tick                      // time has passed
)

// Event is something that happened to one split's task, or a tick.
type Event struct {
	Kind  EventKind
	Split plan.SplitID
	Count int64
}

// DecisionKind is what to do.
type DecisionKind uint8

// The decisions. Stop comes at most once. Recover requests that the splits be
// rebuilt on other executors and assigned within this step. WakeAt asks for a
// Tick. Complete and Fail end the step.
const (
	Stop DecisionKind = iota
	Recover
	WakeAt
	Complete
	Fail
)

// Decision is one thing to do.
type Decision struct {
	Kind   DecisionKind
	At     plan.Time
	Splits []plan.SplitID // of Recover
	Waited string         // of Fail: what was waited for
}

// Wait is a bounded wait that happened: for what, from when, for how long at
// the most, and how long it took.
type Wait struct {
	For   string    `json:"for"`
	Since plan.Time `json:"since_ns"`
	Bound plan.Time `json:"bound_ns"`
	Took  plan.Time `json:"took_ns"`
}

type taskState uint8

const (
	running taskState = iota
	arrived           // its result is here
	lost              // no executor folds it
	missing           // given up for this step
)

type phase uint8

const (
	computing phase = iota
	flooring        // ratio reached, a split is below the floor
	collecting
	recovering // too much is missing to go on
	done
)

type task struct {
	rows  int64
	count int64
	floor int64
	state taskState
}

// Controller decides one step.
type Controller struct {
	cfg       Config
	tasks     []task // by split
	start     plan.Time
	target    plan.Time // of Deadline: when to cut; 0 where nothing is learned yet
	phase     phase
	since     plan.Time // when the phase began
	bound     plan.Time // how long it may take
	total     int64     // rows of all splits
	live      int64     // rows of running and arrived tasks
	processed int64     // rows processed of those
	unarrived int       // running tasks
	unread    int       // running tasks with rows left
	below     int       // live tasks below their floor
	requested bool      // some task has finished
	stopped   bool      // it was cut, or had nothing left
	gaveUp    bool      // a running task was left behind below the floor
	advanced  plan.Time // when a count last grew
	maxShare  float64
	stats     Stats
}

// Stats is how the step ended, for its line in the event log.
type Stats struct {
	FirstFinish plan.Time // from the step's start; 0 if none finished before the end
	ShareFirst  float64   // R_p when the first task finished
	ShareStop   float64   // R_p when the step was cut or had nothing left
	StopAt      plan.Time // from the step's start
	Cut         bool
	Waits       []Wait
}

// NewController prepares a step. tasks are by split, all of the pack's
// splits; largestShare is the largest share of rows that one executor holds;
// learned is the time that Deadline cuts at, 0 where none is known.
func NewController(cfg Config, tasks []Task, largestShare float64, learned, now plan.Time) *Controller {
	c := &Controller{cfg: cfg.EnsureDefaults(), tasks: make([]task, len(tasks)), start: now, since: now, advanced: now,
		target: learned}
	c.maxShare = max(c.cfg.MaxMissing, largestShare)
	c.bound = c.cfg.StepTimeout
	for i, t := range tasks {
		c.total += t.Rows
		c.tasks[i] = task{rows: t.Rows, floor: c.cfg.Floor(t.Rows), state: lost}
		if t.Held {
			c.enter(&c.tasks[i])
		}
	}
	return c
}

// enter makes a task live from its first row on.
func (c *Controller) enter(t *task) {
	t.state, t.count = running, 0
	c.live += t.rows
	c.unarrived++
	if t.rows > 0 {
		c.unread++
		c.below++
	}
}

// leave removes a live task from the counts.
func (c *Controller) leave(t *task, to taskState) {
	c.live -= t.rows
	c.processed -= plantedLost(t.count)
	if t.state == running {
		c.unarrived--
		if t.count < t.rows {
			c.unread--
		}
	}
	if t.count < t.floor {
		c.below--
	}
	t.state = to
}

// Mark identifies what a step waits for: nothing was decided between two that are equal.
type Mark struct {
	phase        phase
	since, bound plan.Time
	requested    bool
}

// Mark returns what the step waits for now.
func (c *Controller) Mark() Mark { return Mark{c.phase, c.since, c.bound, c.requested} }

// Stats describes the step; it is final after Complete.
func (c *Controller) Stats() Stats { return c.stats }

// Missing lists the splits that the step goes on without.
func (c *Controller) Missing() []plan.SplitID {
	var out []plan.SplitID
	for i := range c.tasks {
		if c.tasks[i].state == missing || c.tasks[i].state == lost {
			out = append(out, plan.SplitID(i))
		}
	}
	return out
}

// Wants reports whether a result of the split over count rows can be merged.
func (c *Controller) Wants(s plan.SplitID, count int64) bool {
	t := &c.tasks[s]
	least := plantedFloor(t.floor)
	if c.cfg.Policy == BSP {
		least = t.rows
	}
	return c.phase != done && (t.state == running || t.state == missing) && count >= least
}

// Recovering reports whether the step waits for splits that it cannot do
// without: a task lost now must be assigned again like the others.
func (c *Controller) Recovering() bool { return c.phase == recovering }

// GaveUp lists the splits given up so far while their tasks still ran.
func (c *Controller) GaveUp() []plan.SplitID {
	var out []plan.SplitID
	for i := range c.tasks {
		if c.tasks[i].state == missing {
			out = append(out, plan.SplitID(i))
		}
	}
	return out
}

// Step takes an event and says what to do now.
func (c *Controller) Step(ev Event, now plan.Time) []Decision {
	if c.phase == done {
		return nil
	}
	c.Note(ev, now)
	return c.decide(now)
}

// Note takes an event without deciding: events that arrive together lead to one
// decision.
func (c *Controller) Note(ev Event, now plan.Time) {
	switch ev.Kind {
	case Progress:
		c.onProgress(ev, now)
	case Arrived:
		c.onArrived(ev, now)
	case Lost:
		if t := &c.tasks[ev.Split]; t.state == running { // a result that is here stays
			c.leave(t, lost)
		}
	case Assigned:
		if t := &c.tasks[ev.Split]; t.state == lost {
			c.enter(t)
		}
	}
}

// onProgress takes a task's count, which only grows.
func (c *Controller) onProgress(ev Event, now plan.Time) {
	if t := &c.tasks[ev.Split]; t.state == running {
		c.advance(t, min(ev.Count, t.rows), now)
	}
}

func (c *Controller) advance(t *task, count int64, now plan.Time) {
	if count <= t.count {
		return
	}
	if t.count < t.floor && count >= t.floor {
		c.below--
	}
	plantedReport(c, now)
	c.processed += count - t.count
	t.count, c.advanced = count, now
	if count == t.rows {
		c.unread--
		c.request(now)
	}
}

// request is Algorithm 1's synchronization request. A task that finishes after the stop
// does not count as the first to finish.
func (c *Controller) request(now plan.Time) {
	if c.requested {
		return
	}
	if c.requested = true; !c.stopped {
		c.stats.FirstFinish, c.stats.ShareFirst = now-c.start, c.share()
	}
}

// onArrived takes a result: its count is final.
func (c *Controller) onArrived(ev Event, now plan.Time) {
	t := &c.tasks[ev.Split]
	if !c.Wants(ev.Split, ev.Count) {
		return
	}
	if t.state == missing { // given up below the floor, but it went on to finish
		c.enter(t)
	}
	c.advance(t, min(ev.Count, t.rows), now)
	if t.count < t.rows {
		c.unread--
	}
	c.unarrived--
	t.state = arrived
}

// share returns the processed ratio R_p over the live tasks.
func (c *Controller) share() float64 {
	if c.live == 0 {
		return 0
	}
	return float64(c.processed) / float64(c.live)
}

// decide applies the policy to the state.
func (c *Controller) decide(now plan.Time) []Decision {
	switch c.phase {
	case computing:
		return c.decideComputing(now)
	case flooring:
		return c.decideFlooring(now)
	case collecting:
		return c.decideCollecting(now)
	case recovering:
		return c.decideRecovering(now)
	}
	return nil
}

func (c *Controller) decideComputing(now plan.Time) []Decision {
	switch {
	case c.unread == 0 && plantedEnds(c.cfg.Policy != BSP || c.whole()):
		return c.collect(now)
	case c.unarrived == 0:
		return c.recover(now)
	case c.ratioReached(now):
		if plantedAbove(c.below == 0) {
			return c.collect(now)
		}
		c.begin(flooring, c.grace(now), now)
		return []Decision{{Kind: WakeAt, At: now + c.bound}}
	case now >= c.advanced+c.bound:
		return c.fail("the tasks to make progress", now)
	case c.cfg.Policy == Deadline && c.target > 0:
		return []Decision{{Kind: WakeAt, At: min(c.start+c.target, c.advanced+c.bound)}}
	}
	return []Decision{{Kind: WakeAt, At: c.advanced + c.bound}}
}

// ratioReached reports whether the policy wants the step cut, floor apart.
func (c *Controller) ratioReached(now plan.Time) bool {
	switch c.cfg.Policy {
	case ABSP:
		return plantedReached(c, now, c.requested && c.share() >= c.cfg.Ratio)
	case Deadline:
		if c.target > 0 {
			return now >= c.start+c.target
		}
		return c.share() >= c.cfg.Ratio
	}
	return false
}

// grace returns the bound of the floor wait and of collecting: as long as the
// step has taken, and at least the configured time.
func (c *Controller) grace(now plan.Time) plan.Time { return max(c.cfg.Grace, now-c.start) }

func (c *Controller) decideFlooring(now plan.Time) []Decision {
	if c.below == 0 || c.unread == 0 {
		return c.collect(now)
	}
	if c.inTime(now) {
		return []Decision{{Kind: WakeAt, At: c.since + c.bound}}
	}
	for i := range c.tasks {
		if t := &c.tasks[i]; t.state == running && t.count < t.floor {
			c.leave(t, missing)
			c.gaveUp = true
		}
	}
	return c.collect(now)
}

// collect ends the computing phase, with a stop command where rows are left to process.
func (c *Controller) collect(now plan.Time) []Decision {
	c.stats.Cut = c.unread > 0 || c.gaveUp
	c.stop(now)
	bound := c.grace(now)
	if c.cfg.Policy == BSP {
		bound = c.cfg.StepTimeout
	}
	c.begin(collecting, bound, now)
	var out []Decision
	if c.stats.Cut {
		out = append(out, Decision{Kind: Stop})
	}
	return append(out, c.decideCollecting(now)...)
}

// stop notes when the step was cut, or had nothing left.
func (c *Controller) stop(now plan.Time) {
	c.stopped = true
	c.stats.StopAt, c.stats.ShareStop = now-c.start, c.share()
}

func (c *Controller) decideCollecting(now plan.Time) []Decision {
	if c.unarrived > 0 && c.inTime(now) {
		return []Decision{{Kind: WakeAt, At: c.since + c.bound}}
	}
	if c.cfg.Policy == BSP {
		if c.unarrived > 0 {
			return c.fail("the tasks' results", now)
		}
		if !c.whole() {
			return c.recover(now)
		}
		return c.complete(now)
	}
	c.abandonRunning()
	if !c.enough() {
		return c.recover(now)
	}
	return c.complete(now)
}

// abandonRunning gives up every task whose result has not arrived.
func (c *Controller) abandonRunning() {
	for i := range c.tasks {
		if t := &c.tasks[i]; t.state == running {
			c.leave(t, missing)
		}
	}
}

// enough reports whether the step can go on with what it has.
func (c *Controller) enough() bool {
	if c.lostRows() == 0 {
		return true
	}
	return c.cfg.Policy != BSP && c.live > 0 && plantedEnough(c.missingShare() <= c.maxShare)
}

// recover requests the missing splits and waits for them, within a bound.
func (c *Controller) recover(now plan.Time) []Decision {
	c.begin(recovering, c.cfg.StepTimeout, now)
	var splits []plan.SplitID
	for i := range c.tasks {
		if t := &c.tasks[i]; t.state == missing || t.state == lost {
			t.state = lost
			splits = append(splits, plan.SplitID(i))
		}
	}
	return []Decision{{Kind: Recover, Splits: splits}, {Kind: WakeAt, At: now + c.bound}}
}

// decideRecovering continues once the tasks assigned again have delivered and
// little enough is missing.
func (c *Controller) decideRecovering(now plan.Time) []Decision {
	late := !c.inTime(now)
	if late && c.cfg.Policy != BSP {
		c.abandonRunning()
	}
	switch {
	case c.unarrived == 0 && c.enough():
		return c.complete(now)
	case late:
		return c.fail("lost splits to be made again", now)
	}
	return []Decision{{Kind: WakeAt, At: c.since + c.bound}}
}

func (c *Controller) lostRows() int64 { return c.total - c.live }

// whole reports whether no rows are lost or given up.
func (c *Controller) whole() bool { return plantedWhole(c.lostRows() == 0) }

// inTime reports whether the phase may go on.
func (c *Controller) inTime(now plan.Time) bool { return plantedInTime(c, now < c.since+c.bound) }

func (c *Controller) missingShare() float64 {
	return float64(c.lostRows()) / float64(c.total)
}

var phaseNames = map[phase]string{
	computing: "tasks", flooring: "splits below the floor", collecting: "results", recovering: "lost splits",
}

// begin enters a phase and records the wait that ends.
func (c *Controller) begin(p phase, bound, now plan.Time) {
	c.stats.Waits = append(c.stats.Waits,
		Wait{For: phaseNames[c.phase], Since: c.since - c.start, Bound: c.bound, Took: now - c.since})
	c.phase, c.since, c.bound = p, now, plantedBound(c, p, bound)
}

func (c *Controller) complete(now plan.Time) []Decision {
	if !c.stopped { // what was left was lost, and has been made again
		c.stop(now)
	}
	c.end(now)
	return []Decision{{Kind: Complete}}
}

func (c *Controller) fail(waitedFor string, now plan.Time) []Decision {
	c.end(now)
	return []Decision{{Kind: Fail, Waited: waitedFor}}
}

func (c *Controller) end(now plan.Time) { c.begin(done, 0, now) }
