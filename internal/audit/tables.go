package audit

import (
	"slices"
	"unicode/utf8"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
)

// ticked is what a line of tables is held against: the last iteration, and the line of tables before.
type ticked struct {
	line, loop, iteration int // of the iteration; a line of 0 is that it has its line of tables
	values                map[string]float64
	before                *driver.LogTables // nil where it is of no loop, or of another
	of                    int               // the loop that it is of
}

// turned notes an iteration.
func (t *ticked) turned(line, loop, iteration int, values map[string]float64) {
	if t.line, t.loop, t.iteration, t.values = line, loop, iteration, values; loop != t.of {
		t.before = nil
	}
}

// What is more than there can be: of items, reads and the like, of time, and of clocks that a worker is ahead of one
// that all have finished, beside those of an iteration and its reports that wait.
const (
	mostCounted = 1 << 50
	mostTime    = 1 << 58 // nanoseconds: nine years
	mostWaiting = 66
	mostName    = 400 // bytes
)

// tables checks what a line says of workers on tables: it must be of the last iteration, follow from the line before,
// and hold what tables allow.
func (v *verifier) tables(l *driver.LogTables, line int) {
	of := &v.tick
	v.fact(of.line > 0 && l.Line == of.line, whole, v.turn.Iteration, line, "it is of line %d, the last iteration of "+
		"line %d", l.Line, of.line)
	v.fact(l.Clock >= of.iteration && of.follows(l), whole, of.iteration, line, "clock %d of %d workers on %d tables",
		l.Clock, len(l.Workers), len(l.Tables))
	ofSplits := slices.ContainsFunc(v.packs, func(p *ledger) bool { return len(p.rows) == len(l.Workers) })
	v.fact(ofSplits && len(l.Tables) <= driver.MostTables, whole, of.iteration, line, "%d workers on %d tables",
		len(l.Workers), len(l.Tables))
	v.fact(sized(l.HelpingBytes) && sized(l.StateBytes) && apart(l.Executors), whole, of.iteration,
		line, "%d executors, and %d and %d bytes", len(l.Executors), l.HelpingBytes, l.StateBytes)
	v.workersOf(l, line)
	v.tablesOf(l, line)
	of.line, of.before, of.of = 0, l, of.loop
}

// follows reports whether a line can come after the one before it of the same loop.
func (t *ticked) follows(l *driver.LogTables) bool {
	if t.before == nil {
		return true
	}
	return l.Clock > t.before.Clock && len(l.Workers) == len(t.before.Workers) && len(l.Tables) == len(t.before.Tables)
}

func (v *verifier) workersOf(l *driver.LogTables, line int) {
	shared, taken := int64(0), int64(0)
	for k, w := range l.Workers {
		at, clock := w[0], w[1]
		ok := at >= 0 && at < int64(len(l.Executors))
		ok = ok && clock >= int64(l.Clock) && clock <= 3*int64(l.Clock)+mostWaiting
		ok = ok && w[2] <= mostTime && w[3] <= mostTime && w[6] <= w[5]
		for i, n := range w {
			ok = ok && n >= 0 && (i == 2 || i == 3 || n <= mostCounted)
		}
		v.fact(ok, whole, v.tick.iteration, line, "worker %d: %v", k, w)
		shared, taken = max(shared, w[5]), max(taken, w[7])
	}
	v.fact(taken == 0 || shared > 0, whole, v.tick.iteration, line, "items are done for others, and none is shared")
}

func (v *verifier) tablesOf(l *driver.LogTables, line int) {
	oldest, slack, free := 0, 0, false
	for i := range l.Tables {
		t := &l.Tables[i]
		v.fact(sensible(t), whole, v.tick.iteration, line, "the table %q", t.Name)
		slack, free = max(slack, t.Slack), free || t.Slack < 0
		for age, n := range t.Reads {
			if n > 0 {
				oldest = max(oldest, age)
				v.fact(t.Slack < 0 || age <= t.Slack, stale, v.tick.iteration, line, "%d reads of the table %q have "+
					"missed updates of %d clocks, its slack is %d", n, t.Name, age, t.Slack)
			}
		}
	}
	if len(l.Tables) == driver.MostTables { // there may be others
		return
	}
	most, known := v.tick.values["clocks_stale"]
	v.fact(!known || float64(oldest) == min(most, plan.Ages-1), derived, v.tick.iteration, line, "reads have missed "+
		"updates of up to %d clocks, clocks_stale is %v", oldest, most)
	said, bounded := v.tick.values["slack"]
	v.fact(known || !free && slack == 0, derived, v.tick.iteration, line, "a slack of %d, and the iteration has "+
		"none", slack)
	v.fact(!known || free != bounded && (free || float64(slack) == said), derived, v.tick.iteration, line, "a slack "+
		"of %d, "+
		"of the iteration %v", slack, said)
}

// sensible reports whether a table can be what is said of it.
func sensible(t *driver.LogTable) bool {
	ok := len(t.Name) <= mostName && utf8.ValidString(t.Name) && t.Slack >= -1 && t.Waits >= 0 && t.Waits <= mostCounted
	ok = ok && t.Rows >= 0 && sized(t.Bytes) && t.Bytes >= t.Rows && (t.Rows > 0 || t.Bytes == 0)
	ok = ok && len(t.Reads) == plan.Ages && len(t.Sent) == int(plan.SentKinds)
	for _, n := range t.Reads {
		ok = ok && n >= 0 && n <= mostCounted
	}
	for _, n := range t.Sent {
		ok = ok && sized(n)
	}
	return ok
}

// apart reports whether executors are each there once, with slots that have had time.
func apart(all []driver.LogTablesOn) bool {
	seen := map[string]bool{}
	for _, e := range all {
		slots := e.Slots >= 0 && e.Slots <= plan.MostSlots
		slots = slots && e.BusyNs >= 0 && e.BusyNs <= mostTime && e.WaitedNs >= 0 && e.WaitedNs <= mostTime
		if seen[e.Name] || e.Name == "" || len(e.Name) > mostName || !slots {
			return false
		}
		seen[e.Name] = true
	}
	return true
}
