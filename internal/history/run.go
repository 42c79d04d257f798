package history

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/fault"
)

// Known is a number that may not be there: NaN, which JSON has as null.
type Known float64

// MarshalJSON writes null where there is none.
func (k Known) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(k)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(k))
}

// Run is how a run went, pass by pass.
type Run struct {
	Name      string   `json:"name"`
	Job       string   `json:"job"`
	Sync      string   `json:"sync"`
	Executors []string `json:"executors"`
	Speeds    []Known  `json:"speeds"` // rows a second that each executor folds, the median of its results
	Splits    int      `json:"splits"`
	Rows      int64    `json:"rows"`
	Passes    []Pass   `json:"passes"`
	StoppedBy string   `json:"stopped_by"` // empty is that the log has no end
}

// Pass is a step of a run, an evaluation, or an iteration of a loop without steps.
type Pass struct {
	Began     time.Duration     `json:"began_ns"` // on the job's clock
	Ended     time.Duration     `json:"ended_ns"`
	Step      bool              `json:"step"`
	Iteration int               `json:"iteration"`
	Objective Known             `json:"objective"`
	Cut       bool              `json:"cut"`
	Shares    []float64         `json:"shares,omitempty"`  // of each split's rows
	Busy      []time.Duration   `json:"busy_ns,omitempty"` // of each executor, by its rows and its speed
	Owns      []int64           `json:"owns,omitempty"`    // rows of each executor's splits
	Batch     float64           `json:"batch,omitempty"`   // share of them that the step is of; 0 is all
	Phases    *driver.LogPhases `json:"phases_ns,omitempty"`
	Bytes     int64             `json:"bytes,omitempty"`
	Moves     int               `json:"moves"`         // of splits, that begin after it
	Why       string            `json:"why,omitempty"` // what auto chose, and why
}

// Took returns how long it took.
func (p *Pass) Took() time.Duration { return p.Ended - p.Began }

// Steps returns a run's steps, without its evaluations.
func (c *Run) Steps() (out []Pass) {
	for _, p := range c.Passes {
		if p.Step {
			out = append(out, p)
		}
	}
	return out
}

// Read reads the event log of a run, whose decisions must follow from the reports that it has.
func Read(path, name string) (Run, error) {
	l, r, err := audit.ReadVerified("draw", path)
	if err != nil {
		return Run{}, err
	}
	c := &reading{report: r, rows: map[int][]int64{0: l.Header.N}}
	c.Name, c.Job, c.Sync, c.Splits = name, l.Header.Job, l.Header.Options.Sync, len(l.Header.N)
	for _, n := range l.Header.N {
		c.Rows += n
	}
	for _, line := range l.Lines {
		c.add(line)
	}
	if l.Footer != nil {
		c.StoppedBy = l.Footer.StoppedBy
	}
	c.speeds(r.Speeds)
	if len(c.Passes) == 0 {
		return c.Run, fault.Newf(fault.BadInput, "draw", path, "it has no pass whose reports are kept")
	}
	return c.Run, nil
}

// reading puts together how a run went.
type reading struct {
	Run
	report *audit.Report
	rows   map[int][]int64 // of the splits of each pack
	owner  []int           // of each split
	others bool            // executors came or went
}

// speeds takes the speeds that executors were seen to have, by their places among all. Where these have changed, as
// some came or went, they are left out.
func (c *reading) speeds(seen []audit.Speed) {
	by := map[int][]float64{}
	for _, s := range seen {
		if s.RowsPerSecond > 0 {
			by[s.Executor] = append(by[s.Executor], s.RowsPerSecond)
		}
	}
	if len(c.Executors) == 0 {
		for e := range len(by) {
			c.Executors = append(c.Executors, fmt.Sprintf("executor %d", e))
		}
	}
	for e := range c.Executors {
		median := Known(math.NaN())
		if all := by[e]; len(all) > 0 && !c.others {
			slices.Sort(all)
			median = Known(all[len(all)/2])
		}
		c.Speeds = append(c.Speeds, median)
	}
}

func (c *reading) add(line audit.Line) {
	began, ended, known := c.report.Took(line.Number)
	p := Pass{Began: began, Ended: ended, Objective: Known(math.NaN()), Busy: c.report.Busy(line.Number)}
	switch {
	case line.Pack != nil:
		c.rows[line.Pack.Pack] = line.Pack.N
	case line.Iteration != nil:
		c.iteration(line.Iteration)
	case !known:
	case line.Step != nil:
		c.step(&p, line.Step)
	case line.Evaluation != nil:
		c.pass(&p, line.Evaluation)
	}
}

// iteration adds one of a loop without steps, as of workers on tables.
func (c *reading) iteration(i *driver.LogIteration) {
	p := Pass{Iteration: i.Iteration, Began: time.Duration(i.TookNs), Ended: time.Duration(i.TookNs),
		Objective: Known(math.NaN())}
	if note(&p, i.Values); !math.IsNaN(float64(p.Objective)) {
		c.Passes = append(c.Passes, p)
	}
}

// step adds a training step.
func (c *reading) step(p *Pass, s *driver.LogStep) {
	p.Step, p.Iteration, p.Cut, p.Moves, p.Why = true, s.Iteration, s.Cut, len(s.Moves), s.Why
	phases := s.Phases
	p.Phases, p.Bytes = &phases, s.Bytes
	note(p, s.Values)
	if len(s.Executors) > 0 {
		c.others = c.others || len(c.Executors) > 0 && !slices.Equal(c.Executors, s.Executors)
		c.Executors = s.Executors
	}
	if s.Pack == 0 {
		if len(s.Placement) > 0 {
			c.owner = s.Placement
		}
		p.Shares = sharesOf(s.C, c.rows[0])
		p.Owns, p.Batch = c.ofExecutors(c.rows[0]), s.Batch
	}
	c.Passes = append(c.Passes, *p)
}

// ofExecutors adds up a number of splits' by who owns them; nil where that is not known.
func (c *reading) ofExecutors(splits []int64) []int64 {
	if len(c.owner) != len(splits) || len(c.Executors) == 0 {
		return nil
	}
	sums := make([]int64, len(c.Executors))
	for i, n := range splits {
		if of := c.owner[i]; of >= 0 && of < len(sums) {
			sums[of] += n
		}
	}
	return sums
}

// pass adds a pass over all rows: one of the method is a step, too; of others those that found an objective.
func (c *reading) pass(p *Pass, e *driver.LogEvaluation) {
	p.Step, p.Iteration = e.Work, e.Iteration
	if e.Commit != nil {
		p.Iteration = e.Commit.Iteration
		note(p, e.Commit.Values)
	}
	if e.Objective != nil {
		p.Objective = Known(*e.Objective)
	}
	if e.Work && e.Pack == 0 {
		p.Shares, p.Owns = sharesOf(e.C, c.rows[0]), c.ofExecutors(c.rows[0])
	}
	if e.Work || !math.IsNaN(float64(p.Objective)) {
		c.Passes = append(c.Passes, *p)
	}
}

// note takes the objective of an iteration, where it has one.
func note(p *Pass, values map[string]float64) {
	if v, ok := values["objective"]; ok {
		p.Objective = Known(v)
	}
}

// sharesOf returns which part of each split's rows was folded.
func sharesOf(counts, rows []int64) (shares []float64) {
	for i, n := range rows {
		share := 1.0
		if n > 0 {
			share = float64(counts[i]) / float64(n)
		}
		shares = append(shares, share)
	}
	return shares
}
