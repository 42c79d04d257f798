package train

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
)

// Ending is what a run has come to, for the one that resumes it: it may do so when the loop is over.
type Ending struct {
	StoppedBy  string // empty while it goes on, and, of all but k-means, where its limit of iterations ends it
	Iterations int
	Rules      string        // that it has ended by, as Rules.String has them
	MaxTime    time.Duration // its limit of time; 0 is none
}

// Rules are what ends a run by itself. A run that has ended by some is not resumed under others: what it has come to
// says nothing of them.
type Rules struct {
	Tol     float64
	Target  *float64
	Stop    StopRule      // of linear models
	MaxTime time.Duration // a run that it has ended goes on under a longer one
	Most    int           // iterations, where those that they have ended cannot go on
}

// String returns the rules as options, but for limits under which a run goes on.
func (r Rules) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "--tol %g", r.Tol)
	if r.Target != nil {
		fmt.Fprintf(&b, " --target %g", *r.Target)
	}
	if r.Stop != "" {
		fmt.Fprintf(&b, " --stop %s", r.Stop)
	}
	if r.Most > 0 {
		fmt.Fprintf(&b, " --max-iterations %d", r.Most)
	}
	if r.Most > 0 && r.MaxTime > 0 {
		fmt.Fprintf(&b, " --max-time %v", r.MaxTime)
	}
	return b.String()
}

// MarshalBinary lays it out.
func (e Ending) MarshalBinary() ([]byte, error) {
	type plain Ending
	return json.Marshal(plain(e))
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (e *Ending) UnmarshalBinary(raw []byte) error {
	type plain Ending
	return json.Unmarshal(raw, (*plain)(e))
}

// Reopen has a run go on that its limit of time had ended, where there is a longer one now, or none.
func (t *Training) Reopen() bool {
	longer := t.rules.MaxTime == 0 || t.rules.MaxTime > t.Ending.MaxTime
	if t.Ending.StoppedBy != "max-time" || t.rules.Most > 0 || !longer {
		return false
	}
	t.Ending.StoppedBy = ""
	return true
}

// Under sets the rules that end the run.
func (t *Training) Under(rules Rules) { t.rules = rules }

// SameRules returns an error where a run that has ended is resumed under other rules than those it has ended by.
func (t *Training) SameRules() error {
	e := t.Ending
	if e.StoppedBy == "" || e.Rules == t.rules.String() {
		return nil
	}
	err := fault.Newf(fault.Usage, "resume", "the run", "it has ended (%s) under %s; now it is %s", e.StoppedBy,
		e.Rules,
		t.rules)
	if e.StoppedBy == "max-time" && t.rules.Most == 0 {
		return err.WithHint(fmt.Sprintf("a --max-time of more than %v has it go on", e.MaxTime))
	}
	return err.WithHint("resume it under the same, or begin another, from its model (--init, --centers)")
}

// Ends notes why the run ends; its loop may have turns left.
func (t *Training) Ends(why string) {
	t.Ending.StoppedBy, t.Ending.Rules, t.Ending.MaxTime = why, t.rules.String(), t.rules.MaxTime
}

// End makes a turn the run's last, and notes why.
func (t *Training) End(it *rdd.Iteration, why string) {
	t.Ends(why)
	it.Stop()
}

// WhyEnded returns why a run has ended: what stopped it, its limit, or the user.
func (t *Training) WhyEnded() string {
	s := t.Summary
	s.Iterations = max(s.Iterations, t.Ending.Iterations)
	if s.StoppedBy = t.Ending.StoppedBy; s.StoppedBy == "" {
		s.StoppedBy = "max-iterations"
	}
	if t.Session.Interrupted() {
		s.StoppedBy = "interrupted"
	}
	s.Converged = s.StoppedBy == "tolerance"
	return s.StoppedBy
}
