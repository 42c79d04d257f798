package sim

import "fmt"

// Violation is one thing that an oracle has found to be against SEMANTICS. The
// oracle is named after the line that it holds.
type Violation struct {
	Oracle string
	Text   string
}

// String returns the violation on one line.
func (v Violation) String() string { return v.Oracle + ": " + v.Text }

// violate notes what an oracle has found.
func (s *Sim) violate(oracle, format string, args ...any) {
	if s.opt.Trace != nil {
		s.opt.Trace("!!! " + oracle + ": " + fmt.Sprintf(format, args...))
	}
	if len(s.result.Violations) < 10 || oracle == s.opt.Until {
		s.result.Violations = append(s.result.Violations,
			Violation{oracle, fmt.Sprintf("step %d: ", s.result.Steps) + fmt.Sprintf(format, args...)})
	}
}
