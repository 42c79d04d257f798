package driver

import (
	"context"

	"github.com/volley-engine/volley/internal/plan"
)

// Journal keeps a driver's decisions: references only (plans, epochs, steps by
// digest), never weights, rows or events of single tasks. An embedded driver
// applies records at once; a daemon replicates them first.
type Journal interface {
	// Append returns once the records are applied.
	Append(ctx context.Context, records ...Record) error
}

// RecordKind is what was decided.
type RecordKind uint8

// The kinds of record.
const (
	JobBegun RecordKind = iota
	StepCommitted
	JobEnded
)

// Record is one decision.
type Record struct {
	Kind   RecordKind
	Job    plan.JobID
	Plan   plan.Digest // of JobBegun
	Step   plan.StepID // of StepCommitted
	Epoch  plan.Epoch
	Params plan.Digest
	Reason string // of JobEnded
}

// JobState is what the records of a job add up to.
type JobState struct {
	Plan   plan.Digest
	Step   plan.StepID
	Epoch  plan.Epoch
	Params plan.Digest
	Ended  string
}

// State is the deterministic state that a journal's records make. Applying the
// same records gives the same state anywhere.
type State struct {
	Jobs map[plan.JobID]JobState
}

// Apply takes one record in. A step that does not follow the last one is
// ignored: only one driver commits a given step.
func (s *State) Apply(r Record) {
	if s.Jobs == nil {
		s.Jobs = map[plan.JobID]JobState{}
	}
	j := s.Jobs[r.Job]
	switch r.Kind {
	case JobBegun:
		j = JobState{Plan: r.Plan}
	case StepCommitted:
		if r.Step <= j.Step {
			return
		}
		j.Step, j.Epoch, j.Params = r.Step, r.Epoch, r.Params
	case JobEnded:
		j.Ended = r.Reason
	}
	s.Jobs[r.Job] = j
}

// Direct is the journal of an embedded driver: it applies records at once and
// keeps nothing beyond the process. It is used by one goroutine.
type Direct struct{ State State }

// Append applies the records.
func (d *Direct) Append(_ context.Context, records ...Record) error {
	for _, r := range records {
		d.State.Apply(r)
	}
	return nil
}
