package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/volley-engine/volley/internal/plan"
)

// records are seeded decisions about a few jobs.
func records(seed uint64, n int) []Record {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([]Record, n)
	for i := range out {
		r := Record{Kind: RecordKind(rng.IntN(int(JobRemoved) + 1)),
			Job: plan.JobID(fmt.Sprintf("job-%06d", rng.IntN(5))), At: int64(i)}
		switch r.Kind {
		case JobSubmitted:
			r.Spec = &JobSpec{Kind: "logistic", Args: []string{"--reg", fmt.Sprint(i)}, Token: fmt.Sprint(i)}
		case StepCommitted:
			r.Step, r.Epoch = plan.StepID(rng.IntN(50)), plan.Epoch(i)
		case JobEnded:
			r.State = JobDone
		}
		out[i] = r
	}
	return out
}

func entry(t *testing.T, rs ...Record) *raft.Log {
	t.Helper()
	raw, err := json.Marshal(rs)
	if err != nil {
		t.Fatal(err)
	}
	return &raft.Log{Data: raw}
}

func stateOf(t *testing.T, m *machine) []byte {
	t.Helper()
	raw, err := json.Marshal(m.copy())
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestTheReplicatedStateIsDeterministic: the same records give the same bytes,
// however they are batched, and through a snapshot in the middle.
func TestTheReplicatedStateIsDeterministic(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		rs := records(seed, 300)
		one, batched, restored := &machine{}, &machine{}, &machine{}
		for i, r := range rs {
			one.Apply(entry(t, r))
			if i == len(rs)/2 {
				s, err := one.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				if err := restored.Restore(io.NopCloser(bytes.NewReader(s.(snapshot)))); err != nil {
					t.Fatal(err)
				}
			} else if i > len(rs)/2 {
				restored.Apply(entry(t, r))
			}
		}
		for from := 0; from < len(rs); from += 7 {
			batched.Apply(entry(t, rs[from:min(from+7, len(rs))]...))
		}
		want := stateOf(t, one)
		if got := stateOf(t, batched); !bytes.Equal(got, want) {
			t.Errorf("seed %d, batched: %s, want %s", seed, got, want)
		}
		if got := stateOf(t, restored); !bytes.Equal(got, want) {
			t.Errorf("seed %d, restored: %s, want %s", seed, got, want)
		}
	}
}

// TestTheJournalAppliedTwice: steps and ends do not count twice.
func TestTheJournalAppliedTwice(t *testing.T) {
	var s State
	spec := &JobSpec{Kind: "logistic"}
	rs := []Record{{Kind: JobSubmitted, Job: "a", Spec: spec, At: 1},
		{Kind: StepCommitted, Job: "a", Step: 1, Epoch: 3}, {Kind: StepCommitted, Job: "a", Step: 2, Epoch: 4},
		{Kind: JobEnded, Job: "a", State: JobDone, At: 9}}
	for range 2 {
		for _, r := range rs {
			s.Apply(r)
		}
	}
	if j := s.Jobs["a"]; j.Step != 2 || j.Epoch != 4 || j.State != JobDone || j.Submitted != 1 || j.EndedAt != 9 {
		t.Errorf("%+v", j)
	}
	s.Apply(Record{Kind: StepCommitted, Job: "a", Step: 7})
	if s.Jobs["a"].Step != 2 {
		t.Error("a step was committed after the end")
	}
}

// TestTheJournalSurvivesItsProcess: opened again, it has what was appended.
func TestTheJournalSurvivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	var want []byte
	for life := range 3 {
		r, err := OpenRaft(dir, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		if got := stateOf(t, r.fsm); life > 0 && !bytes.Equal(got, want) {
			t.Errorf("life %d: %s, want %s", life, got, want)
		}
		if _, err := OpenRaft(dir, hclog.NewNullLogger()); err == nil {
			t.Error("two drivers opened one journal")
		}
		if err := r.Append(context.Background(), records(uint64(life), 50)...); err != nil {
			t.Fatal(err)
		}
		if life == 1 {
			if err := r.raft.Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
		}
		want = stateOf(t, r.fsm)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
