package history

import (
	"encoding/json"
	"math"
	"time"

	"github.com/volley-engine/volley/driver"
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

// Run is how a run went. However long it was, what is kept of it is bounded (see thin.go).
type Run struct {
	Name      string        `json:"name"`
	Job       string        `json:"job"`
	Sync      string        `json:"sync"`
	Version   int           `json:"version"`  // of the log
	Ratio     float64       `json:"ratio"`    // share of all rows at which a step may end
	Exchange  string        `json:"exchange"` // how splits move
	Executors []string      `json:"executors"`
	Lost      []string      `json:"lost,omitempty"` // of them, at the end
	Speeds    []Known       `json:"speeds"`         // rows a second that each executor folds, the median of its last results
	Splits    int           `json:"splits"`
	Rows      int64         `json:"rows"`
	Points    []Point       `json:"points"`
	Steps     []Step        `json:"steps"`
	Tables    []Clock       `json:"tables,omitempty"`
	Used      *Use          `json:"tables_used,omitempty"`      // by workers on them, as it was told last
	Processed []float64     `json:"processed,omitempty"`        // how often the rows of each split were folded in steps
	StoppedBy string        `json:"stopped_by"`                 // empty is that the log has no end
	Last      *Step         `json:"-"`                          // step, by itself
	Told      *Step         `json:"-"`                          // the last whose slots are known
	LeftOut   bool          `json:"reports_left_out,omitempty"` // its log does not have what executors reported
	Most      int           `json:"most_iterations"`            // that it may make; 0 is not known
	MostTime  time.Duration `json:"most_time_ns"`               // that it may take; 0 is not known
	// Goes is that the run is known to go on, and Partial that its log is not read to its end.
	Goes     bool                `json:"-"`
	Partial  bool                `json:"-"`
	Plan     []Operation         `json:"plan,omitempty"`
	Ran      []driver.LogTasksOn `json:"tasks_on,omitempty"` // what each executor's tasks have come to
	Ended    time.Duration       `json:"-"`                  // the last action
	Settings []Setting           `json:"environment,omitempty"`
	Owners   []int               `json:"owners,omitempty"` // place of each split's executor in Executors, as they are now
	gone     map[string]int      // step by which executors were lost
	covered  int                 // steps that Processed is of
	passes   bool                // steps are passes of a method, or some are
}

// Point is an objective that a step, an evaluation or an iteration of a loop without steps has found.
type Point struct {
	Began     time.Duration `json:"began_ns"` // on the job's clock
	Ended     time.Duration `json:"ended_ns"`
	Iteration int           `json:"iteration"`
	Objective float64       `json:"objective"`
	Step      bool          `json:"step"` // which has found it itself
	Cut       bool          `json:"cut"`
}

// Clock is how workers on parameter tables were from each other at the end of one.
type Clock struct {
	Iteration int     `json:"iteration"`
	Ahead     float64 `json:"ahead"` // the fastest, of the slowest, in clocks
	Stale     float64 `json:"stale"` // the oldest value that was read
	Slack     float64 `json:"-"`     // NaN where there is no bound
}

// Step is a step of a run, or several in a row, where it is too long to keep each.
type Step struct {
	Number    int                 `json:"number"` // of the last of them, from 1
	Of        int                 `json:"of"`     // how many
	Began     time.Duration       `json:"began_ns"`
	Ended     time.Duration       `json:"ended_ns"`
	Took      time.Duration       `json:"took_ns"` // together
	Iteration int                 `json:"iteration"`
	Cuts      int                 `json:"cuts"`                // how many ended before every row was processed
	Share     float64             `json:"share"`               // the mean share of splits' rows
	Shares    []float64           `json:"shares,omitempty"`    // of each split's rows, the least
	Moves     int                 `json:"moves"`               // of splits, that begin after them
	Phases    *driver.LogPhases   `json:"phases_ns,omitempty"` // together
	Bytes     int64               `json:"bytes,omitempty"`     // together
	Retried   int                 `json:"retried,omitempty"`   // tasks
	Owns      []int64             `json:"owns,omitempty"`      // rows of each executor's splits
	Batch     float64             `json:"batch,omitempty"`     // share of them that a step is of; 0 is all
	Ratio     float64             `json:"ratio,omitempty"`     // that auto has chosen
	Why       string              `json:"why,omitempty"`       // auto has chosen so
	Executors []Work              `json:"work,omitempty"`      // what each did in the longest of them
	Longest   time.Duration       `json:"longest_ns"`          // of them
	First     time.Duration       `json:"first_ns,omitempty"`  // when the first executor had finished, in the longest
	Stop      time.Duration       `json:"stop_ns,omitempty"`   // when that one was to end
	Reached   [2]float64          `json:"reached"`             // shares of all rows processed at both
	Cursors   []float64           `json:"-"`                   // where each split began, as a share of its rows
	Moved     []driver.LogMove    `json:"-"`
	Missing   []int               `json:"-"`
	Slots     []driver.LogSlotsOf `json:"-"` // what each executor's did
}

// Work is what an executor did in a step.
type Work struct {
	Busy    time.Duration `json:"busy_ns"`    // folding what was merged
	Arrived time.Duration `json:"arrived_ns"` // when its last result was here, since the step began
	Helped  int64         `json:"helped"`     // rows that it folded of splits of others
}

// objective returns the last one; false where there is none.
func (c *Run) objective() (p Point, known bool) {
	if len(c.Points) == 0 {
		return p, false
	}
	return c.Points[len(c.Points)-1], true
}

// Left returns for about how long the run goes on to its limits, where it goes on as before and no other rule ends it;
// false where that is not known.
func (c *Run) Left() (left time.Duration, known bool) {
	p, some := c.objective()
	if !some || c.Partial || c.StoppedBy != "" {
		return 0, false
	}
	from := c.Points[max(0, len(c.Points)-recent)]
	if made := p.Iteration - from.Iteration; made > 0 && c.Most > p.Iteration {
		left, known = (p.Ended-from.Ended)/time.Duration(made)*time.Duration(c.Most-p.Iteration), true
	}
	if rest := c.MostTime - p.Ended; c.MostTime > 0 && (!known || rest < left) {
		left, known = max(0, rest), true
	}
	return left, known
}

// Iteration returns the last that is known; 0 is none.
func (c *Run) Iteration() int {
	p, _ := c.objective()
	return p.Iteration
}

// recent is by how many of the last objectives it is estimated how long a run takes.
const recent = 20

// took returns when the last of all that is known had ended.
func (c *Run) took() (last time.Duration) {
	if n := len(c.Points); n > 0 {
		last = c.Points[n-1].Ended
	}
	if n := len(c.Steps); n > 0 {
		last = max(last, c.Steps[n-1].Ended)
	}
	return last
}

// counted returns how many steps there were, how many were cut, and the mean of their shares.
func (c *Run) counted() (steps, cut int, share float64) {
	for i := range c.Steps {
		s := &c.Steps[i]
		steps, cut, share = steps+s.Of, cut+s.Cuts, share+float64(s.Of)*s.Share
	}
	return steps, cut, share / float64(max(1, steps))
}
