package daemon

import (
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/version"
)

// RecordKind is the kind of a decision that a driver keeps: references only (programs, plans, epochs, steps
// by digest), never weights, rows or events of single tasks. The list is append-only: kinds are kept
// as numbers.
type RecordKind uint8

// The kinds of record.
const (
	JobBegun RecordKind = iota // no longer written
	StepCommitted
	JobEnded
	JobSubmitted
	JobRestarted
	JobStarted // a process of the job is about to be started
	JobResumed // the job, which has failed or was cancelled, continues from its last checkpoint
	JobRemoved // the job, which has ended, is forgotten; its directory may be gone from now on
	TokenMade
	TokenRevoked
	CertificateSigned
	CertificateRevoked
	DriverRemoved
	LevelRaised // all drivers speak a later version of the protocol: entries may say what those before do not read
)

// Record is one decision.
type Record struct {
	Kind   RecordKind  `json:"kind"`
	Job    plan.JobID  `json:"job"`
	Plan   plan.Digest `json:"plan"` // of JobBegun
	Step   plan.StepID `json:"step,omitempty"`
	Epoch  plan.Epoch  `json:"epoch,omitempty"`
	Params plan.Digest `json:"params"`
	Reason string      `json:"reason,omitempty"` // of JobEnded
	State  string      `json:"state,omitempty"`  // of JobEnded
	Spec   *JobSpec    `json:"spec,omitempty"`   // of JobSubmitted
	Files  []MadeFile  `json:"files,omitempty"`  // of JobEnded
	Saved  []Saved     `json:"saved,omitempty"`  // of JobEnded
	Term   uint32      `json:"term,omitempty"`   // of JobStarted: counts the job's processes
	// Place is, of StepCommitted, that of this step or a later one, which a majority of several drivers has.
	Place *Place `json:"place,omitempty"`
	At    int64  `json:"at,omitempty"` // Unix nanoseconds, as the driver that decided read them

	Token  *AccessToken  `json:"token,omitempty"`  // of TokenMade
	Member *MemberSigned `json:"member,omitempty"` // of CertificateSigned
	ID     string        `json:"id,omitempty"`     // of TokenRevoked, CertificateRevoked, DriverRemoved: id, serial number
	Level  string        `json:"level,omitempty"`  // of LevelRaised
}

// JobSpec is what was submitted.
type JobSpec struct {
	Kind   string   `json:"kind"` // name of the bundled job
	Args   []string `json:"args"`
	Token  string   `json:"token"` // the job's own
	Pool   string   `json:"pool,omitempty"`
	Weight uint32   `json:"weight,omitempty"`
	// Program is the user's own, by digest; empty is the bundled jobs'.
	Program     string   `json:"program,omitempty"`
	ProgramArgs []string `json:"program_args,omitempty"`
	ProgramDir  string   `json:"program_dir,omitempty"`
	// Signed says who has submitted the program, over the network (trust.Signed).
	Signed []byte `json:"signed,omitempty"`
	Owner  string `json:"owner,omitempty"` // who has submitted it
	// Priority decides which queued job is started first: the higher.
	Priority int32 `json:"priority,omitempty"`
	// Timeout is how long the job may take from its first start on; 0 is no limit.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Restarts is how often the job's process is started again that was killed or ended without a report; nil is as the
	// driver has it. Drivers before volley/6 do not know of it.
	Restarts *uint32 `json:"restarts,omitempty"`
}

// MadeFile is an output file of a job, by its path in the job's directory.
type MadeFile struct {
	Path   string      `json:"path"`
	Size   int64       `json:"size"`
	SHA256 plan.Digest `json:"sha256"`
}

// Saved is a dataset that a job has saved, wherever it lies.
type Saved struct {
	Dir  string `json:"dir"`
	Rows int64  `json:"rows"` // that the job has added last
}

// JobState is the state that the records of a job make.
type JobState struct {
	Spec      JobSpec     `json:"spec"`
	Plan      plan.Digest `json:"plan"`
	Step      plan.StepID `json:"step"`
	Epoch     plan.Epoch  `json:"epoch"`
	Params    plan.Digest `json:"params"`
	Restarts  uint32      `json:"restarts"`
	Term      uint32      `json:"term"`              // of the job's last process
	Started   int64       `json:"started,omitempty"` // when the first process was, since it was submitted or resumed
	Submitted int64       `json:"submitted"`
	Resumed   int64       `json:"resumed,omitempty"` // when it last was
	EndedAt   int64       `json:"ended_at"`
	State     string      `json:"state"` // empty while it has not ended
	Ended     string      `json:"ended"` // why
	Files     []MadeFile  `json:"files,omitempty"`
	Saved     []Saved     `json:"saved,omitempty"`
	// Place is the last that a majority of several drivers is known to have.
	Place *Place `json:"place,omitempty"`
}

// State is the deterministic state that a journal's records make. Applying the
// same records gives the same state anywhere.
type State struct {
	Jobs map[plan.JobID]JobState `json:"jobs"`
	// Last is the highest number of any job. It never falls: the number and directory of a
	// removed job are never used again.
	Last int `json:"last"`
	// Access is who may do what.
	Access Access `json:"access"`
	// Level is the version of the protocol that all drivers are known to speak; empty is volley/5. It never falls.
	Level string `json:"level,omitempty"`
}

// reads returns an error where the state needs a later version of the protocol than this driver speaks.
func (s *State) reads() error {
	if s.Level == "" || version.AtLeast(version.Newest, s.Level) {
		return nil
	}
	return fault.Newf(fault.BadInput, "read", "the journal", "it is of %s, and this driver, of volley %s, speaks no "+
		"more than %s", s.Level, version.Module, version.Newest).WithHint("upgrade this driver")
}

// Apply applies one record. A step that does not follow the last one is ignored, and so is a
// record after a job's end, unless the job is resumed or removed: only one driver commits a
// given step.
func (s *State) Apply(r Record) {
	if s.Jobs == nil {
		s.Jobs = map[plan.JobID]JobState{}
	}
	if r.Kind == LevelRaised {
		s.raise(r.Level)
		return
	}
	if r.Kind >= TokenMade {
		s.Access.apply(r)
		return
	}
	j, known := s.Jobs[r.Job]
	if !known && r.Kind != JobSubmitted && r.Kind != JobBegun {
		return // of a job that was not submitted
	}
	if j.State != "" {
		s.applyToEnded(j, r)
		return
	}
	switch r.Kind {
	case JobSubmitted:
		if known || r.Spec == nil {
			return
		}
		j = JobState{Spec: *r.Spec, Submitted: r.At}
	case JobBegun:
		j.Plan = r.Plan
	case StepCommitted:
		if r.Step <= j.Step {
			return
		}
		j.Step, j.Epoch, j.Params = r.Step, r.Epoch, r.Params
		if r.Place != nil {
			j.Place = r.Place
		}
	case JobRestarted:
		j.Restarts++
	case JobStarted:
		j.Term = max(j.Term, r.Term)
		if j.Started == 0 {
			j.Started = r.At
		}
	case JobEnded:
		j.Ended, j.State, j.EndedAt, j.Files, j.Saved = r.Reason, r.State, r.At, r.Files, r.Saved
	}
	s.Jobs[r.Job] = j
	s.Last = max(s.Last, jobNumber(string(r.Job)))
}

// raise notes that all drivers speak a version of the protocol.
func (s *State) raise(level string) {
	if s.Level == "" || version.AtLeast(level, s.Level) {
		s.Level = level
	}
}

// applyToEnded applies a record of a job that has ended.
func (s *State) applyToEnded(j JobState, r Record) {
	switch {
	case r.Kind == JobRemoved:
		delete(s.Jobs, r.Job)
	case r.Kind == JobResumed && j.State != JobDone:
		j.State, j.Ended, j.EndedAt, j.Files, j.Saved, j.Restarts, j.Resumed = "", "", 0, nil, nil, 0, r.At
		j.Started = 0
		s.Jobs[r.Job] = j
	case r.Kind == JobBegun:
		j.Plan = r.Plan
		s.Jobs[r.Job] = j
	}
}

// upgrade fills in what a state of an earlier version lacks.
func (s *State) upgrade() {
	for id := range s.Jobs {
		s.Last = max(s.Last, jobNumber(string(id)))
	}
}

// Clone returns a copy that shares no mutable data.
func (s *State) Clone() State {
	out := State{Jobs: make(map[plan.JobID]JobState, len(s.Jobs)), Last: s.Last, Access: s.Access.clone(),
		Level: s.Level}
	for id, j := range s.Jobs {
		j.Spec.Args = slices.Clone(j.Spec.Args)
		out.Jobs[id] = j
	}
	return out
}
