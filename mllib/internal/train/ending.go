package train

import (
	"encoding/binary"

	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
)

// Ending is what a run has come to, for the one that resumes it: it may do so when the loop is over.
type Ending struct {
	StoppedBy  string // empty while it goes on, and where its limit ends it
	Iterations int
}

// MarshalBinary lays it out, the number of iterations first.
func (e Ending) MarshalBinary() ([]byte, error) {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(e.Iterations)), e.StoppedBy...), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (e *Ending) UnmarshalBinary(raw []byte) error {
	if len(raw) < 8 {
		return num.ErrCutShort
	}
	e.Iterations, e.StoppedBy = int(binary.LittleEndian.Uint64(raw)), string(raw[8:])
	return nil
}

// End makes a turn the run's last, and notes why.
func (t *Training) End(it *rdd.Iteration, why string) {
	t.Ending.StoppedBy = why
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
