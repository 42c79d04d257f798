package history

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/tables/consistency"
)

// Read reads the event log of a run, whose decisions must follow from the reports that it has.
func Read(path, name string) (Run, error) { return ReadAs(path, name, func(int) {}) }

// ReadAs does the same, and tells of each line that it has read how long it was.
func ReadAs(path, name string, read func(bytes int)) (Run, error) {
	f := Follow(path, name)
	err := audit.FollowFile("draw", path, func(t audit.Told, bytes int) {
		read(bytes)
		f.add(t)
	})
	if err != nil {
		return Run{}, err
	}
	c := f.Run()
	if len(c.Points) == 0 && len(c.Steps) == 0 && len(c.Ran) == 0 && c.Used == nil {
		return c, fault.Newf(fault.BadInput, "draw", path, "it has no pass whose reports are kept, no action, and no "+
			"workers on tables")
	}
	return c, nil
}

// Following puts together how a run goes from the lines of its log, as they come.
type Following struct {
	path   string
	run    Run
	log    *audit.Following
	part   []byte  // of a line whose end has not come
	rows   []int64 // of the splits of the first pack, which figures are of
	speeds map[string][]float64
	line   int     // of the last step, in the log
	batch  float64 // share of rows that a step is of, where its line has none
	failed error

	loop, turned, base int               // the last loop, its last iteration, and those of loops before it
	ofLoop, earlier    *driver.LogTables // what workers on tables have done in it, and before
}

// Follow begins to follow the log of a path.
func Follow(path, name string) *Following {
	return &Following{path: path, run: Run{Name: name}, log: audit.Follow("show", path),
		speeds: map[string][]float64{}}
}

// FollowOwn begins to follow the log of a path that this cluster writes itself.
func FollowOwn(path, name string) *Following {
	f := Follow(path, name)
	f.log = audit.FollowOwn("show", path)
	return f
}

// Write takes what has come to the log. It fails once a line makes no sense, and takes none after it.
func (f *Following) Write(raw []byte) (n int, err error) {
	n = len(raw)
	for f.failed == nil {
		line, rest, whole := bytes.Cut(raw, []byte("\n"))
		if f.part = append(f.part, line...); len(f.part) > audit.MaxLine {
			f.failed = fault.Newf(fault.BadInput, "show", f.path, "a line of it is longer than %d MiB",
				audit.MaxLine>>20)
			f.part = nil
			return n, f.failed
		}
		if !whole {
			return n, nil
		}
		var told audit.Told
		if told, f.failed = f.log.Take(append(f.part, '\n')); f.failed == nil {
			f.add(told)
		}
		f.part, raw = f.part[:0], rest
	}
	return n, f.failed
}

// Run returns how it went so far.
func (f *Following) Run() Run {
	c := f.run
	c.Points, c.Steps, c.Processed = slices.Clone(c.Points), slices.Clone(c.Steps), slices.Clone(c.Processed)
	c.Tables, c.Plan, c.Ran = slices.Clone(c.Tables), slices.Clone(c.Plan), slices.Clone(c.Ran)
	c.Speeds = nil
	for _, name := range c.Executors {
		median := Known(math.NaN())
		if all := slices.Sorted(slices.Values(f.speeds[name])); len(all) > 0 {
			median = Known(all[len(all)/2])
		}
		c.Speeds = append(c.Speeds, median)
	}
	return c
}

func (f *Following) add(t audit.Told) {
	f.run.LeftOut = f.run.LeftOut || t.Step != nil && t.Step.LeftOut || t.Evaluation != nil && t.Evaluation.LeftOut
	switch {
	case t.Header != nil:
		f.begin(t.Header)
	case t.Footer != nil:
		f.run.StoppedBy = t.Footer.StoppedBy
	case t.Iteration != nil:
		f.iteration(t.Iteration)
	case t.Plan != nil:
		f.plan(t.Plan)
	case t.Action != nil:
		f.action(t.Action)
	case t.Shuffle != nil:
		f.shuffled(t.Shuffle)
	case t.Slots != nil:
		f.did(t.Slots)
	case t.Tables != nil:
		f.used(t.Tables)
	case t.Resume != nil:
		f.resumed()
	case !t.Known:
	case t.Step != nil:
		f.run.thin()
		f.step(t)
	case t.Evaluation != nil:
		f.run.thin()
		f.pass(t)
	}
}

func (f *Following) begin(h *driver.LogHeader) {
	c := &f.run
	c.Version, c.Settings = h.Version, environment(h)
	c.Job, c.Sync, c.Splits, c.Exchange = h.Job, h.Options.Sync, len(h.N), h.Options.Exchange
	if c.Sync == "absp" || c.Sync == "deadline" {
		c.Ratio = h.Options.Ratio
	}
	for _, n := range h.N {
		c.Rows += n
	}
	c.Processed, f.rows, f.batch = make([]float64, len(h.N)), h.N, h.Options.BatchFraction
	var args struct {
		MaxIterations int
		MaxTime       time.Duration
		Model         *consistency.Model // of the tables that a job is made for
		Bounded       *struct {
			Model consistency.Model
			Help  json.RawMessage
		}
	}
	if json.Unmarshal(h.Args, &args) != nil { // those of another program may be of any form
		return
	}
	c.Most, c.MostTime = args.MaxIterations, args.MaxTime
	switch b := args.Bounded; { // workers on tables train, not steps
	case b != nil && len(b.Help) > 0 && string(b.Help) != "null":
		c.Sync = "flexrr"
	case b != nil && b.Model.Exact():
		c.Sync = "ssp(0)"
	case b != nil:
		c.Sync = b.Model.String()
	case args.Model != nil:
		c.Sync = args.Model.String()
	}
	if c.Job == "als" { // whose turns are of users, or of items
		c.Most *= 2
	}
}

// iteration adds one of a loop without steps, as of workers on tables.
func (f *Following) iteration(i *driver.LogIteration) {
	f.run.thin()
	at := time.Duration(i.TookNs)
	n := f.turn(i.Loop, i.Iteration)
	f.point(Point{Iteration: n, Began: at, Ended: at}, i.Values)
	f.clock(n, i.Values)
}

// clock adds how far workers on tables were from each other, where that is known.
func (f *Following) clock(iteration int, values map[string]float64) {
	stale, ok := values["clocks_stale"]
	if !ok {
		return
	}
	slack, bounded := values["slack"]
	if !bounded {
		slack = math.NaN()
	}
	f.run.Tables = append(f.run.Tables, Clock{iteration, values["clocks_ahead"], stale, slack})
}

// point adds an objective, where there is one.
func (f *Following) point(p Point, values map[string]float64) {
	if v, ok := values["objective"]; ok && !math.IsNaN(v) {
		p.Objective = v
		f.run.Points = append(f.run.Points, p)
	}
}

// withoutLoops is the last version of logs that do not say which loop a step is of.
const withoutLoops = 8

// step adds a training step.
func (f *Following) step(t audit.Told) {
	l := t.Step
	f.saw(t)
	loop := 0 // older logs do not say it, nor is a step of none
	if f.run.Version > withoutLoops && l.Iteration > 0 {
		loop = max(1, l.Loop)
	}
	n := f.turn(loop, l.Iteration)
	f.point(Point{Began: t.Began, Ended: t.Ended, Iteration: n, Step: true, Cut: l.Cut}, l.Values)
	s := Step{Iteration: n, Cuts: count01(l.Cut), Moves: len(l.Moves), Moved: l.Moves, Why: l.Why,
		Ratio: l.Ratio, Bytes: l.Bytes, Retried: l.Retried, Missing: l.Missing,
		Reached: [2]float64{l.ShareFirst, l.ShareStop}, Stop: time.Duration(l.Phases.Compute)}
	phases := l.Phases
	s.Phases, s.First = &phases, max(0, s.Stop-time.Duration(phases.Wait))
	if l.Pack == 0 {
		if len(l.Placement) > 0 {
			f.run.Owners = l.Placement
		}
		if s.Batch = l.Batch; s.Batch == 0 {
			s.Batch = f.batch
		}
		f.covered(&s, l.C, l.Cursor)
	}
	f.took(&s, t)
}

// pass adds a pass over all rows: one of the method is a step, too; of others those that found an objective.
func (f *Following) pass(t audit.Told) {
	e := t.Evaluation
	p := Point{Began: t.Began, Ended: t.Ended, Iteration: e.Iteration, Step: e.Work}
	values := map[string]float64{}
	if e.Commit != nil {
		turn := f.turn(e.Commit.Loop, e.Commit.Iteration)
		if values = e.Commit.Values; e.Objective == nil { // with one it has the program's own count
			p.Iteration = turn
		}
		f.clock(p.Iteration, values)
	}
	if e.Objective != nil {
		values = map[string]float64{"objective": *e.Objective}
	}
	f.point(p, values)
	if f.saw(t); !e.Work {
		return
	}
	f.run.passes = true
	s := Step{Iteration: p.Iteration, Why: e.Why}
	if e.Pack == 0 {
		f.covered(&s, e.C, nil)
	}
	f.took(&s, t)
}

// covered notes which part of the first pack's splits a step has folded.
func (f *Following) covered(s *Step, counts, cursors []int64) {
	if len(counts) != len(f.rows) || cursors != nil && len(cursors) != len(f.rows) {
		return // an older log is as it is
	}
	s.Shares, s.Share = make([]float64, len(f.rows)), 1
	sum := 0.0
	for i, n := range f.rows {
		s.Shares[i] = 1
		if n > 0 {
			s.Shares[i] = float64(counts[i]) / float64(n)
			if cursors != nil {
				s.Cursors = append(s.Cursors, float64(cursors[i])/float64(n))
			}
		}
		sum += s.Shares[i]
		f.run.Processed[i] += s.Shares[i]
	}
	f.run.covered++
	if len(f.rows) > 0 {
		s.Share = sum / float64(len(f.rows))
	}
	s.Owns = f.ofExecutors()
}

// ofExecutors adds the rows of splits up by who owns them; nil where that is not known.
func (f *Following) ofExecutors() []int64 {
	if len(f.run.Owners) != len(f.rows) || len(f.run.Executors) == 0 {
		return nil
	}
	sums := make([]int64, len(f.run.Executors))
	for i, n := range f.rows {
		if of := f.run.Owners[i]; of >= 0 && of < len(sums) {
			sums[of] += n
		}
	}
	return sums
}

// took notes when a step was, and what executors did in it.
func (f *Following) took(s *Step, t audit.Told) {
	s.Number, s.Of, s.Began, s.Ended = f.steps()+1, 1, t.Began, t.Ended
	s.Took = s.Ended - s.Began
	s.Longest = s.Took
	if r := t.Report; r != nil {
		for _, e := range r.Slots {
			s.Executors = append(s.Executors, Work{Busy: e.Busy, Arrived: e.Arrived, Helped: e.Helped})
		}
	}
	f.run.Last, f.line = s, t.Number
	kept := *s
	kept.Cursors, kept.Moved, kept.Missing = nil, nil, nil
	kept.Shares = slices.Clone(s.Shares)
	f.run.Steps = append(f.run.Steps, kept)
}

// mostSpeeds is how many of an executor's speeds are kept, the last ones.
const mostSpeeds = 512

// saw takes the executors, and the speeds that they were seen to have.
func (f *Following) saw(t audit.Told) {
	if len(t.Executors) > 0 {
		f.known(t.Executors, t.Lost)
	}
	for _, s := range t.Speeds {
		if s.RowsPerSecond > 0 && s.Executor < len(f.run.Executors) {
			f.speed(f.run.Executors[s.Executor], s.RowsPerSecond)
		}
	}
}

// known takes the executors that there are, and which of them are lost.
func (f *Following) known(names, lost []string) {
	before := f.run.Executors
	if len(before) > len(names) || !slices.Equal(before, names[:len(before)]) {
		for i := range f.run.Steps { // whose places are of others now
			f.run.Steps[i].Owns = nil
		}
	}
	f.run.Executors, f.run.Lost = names, lost
	for _, name := range lost {
		if _, known := f.run.gone[name]; !known {
			f.run.gone = maps.Clone(f.run.gone) // who draws may have that of before
			if f.run.gone == nil {
				f.run.gone = map[string]int{}
			}
			f.run.gone[name] = f.steps() + 1
		}
	}
}

// steps returns how many there were before the one in hand.
func (f *Following) steps() int {
	if n := len(f.run.Steps); n > 0 {
		return f.run.Steps[n-1].Number
	}
	return 0
}

// speed takes how many rows a second an executor was seen to fold.
func (f *Following) speed(executor string, rows float64) {
	all := append(f.speeds[executor], rows)
	f.speeds[executor] = all[max(0, len(all)-mostSpeeds):]
}

func count01(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
